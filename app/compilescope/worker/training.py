"""A training step as one function, in plain words that the compiler can follow where the step itself is compiled.

A graph break that the step brings along, such as that at `loss.backward()`, is told with its line in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# of the model's inputs: its output and the loss
Step = Callable[..., tuple[Any, torch.Tensor]]


def with_loss(
    call: Callable[..., Any], loss_of: Callable[[Any], torch.Tensor], device: str, dtype: torch.dtype | None
) -> Step:
    """The forward pass and its loss, under autocast to `dtype` unless that is None."""

    def forward(*args: Any, **kwargs: Any) -> tuple[Any, torch.Tensor]:
        if dtype is None:
            output = call(*args, **kwargs)
            return output, loss_of(output)
        with torch.autocast(device, dtype=dtype):
            output = call(*args, **kwargs)
            loss = loss_of(output)
        return output, loss

    return forward


def training_step(forward: Step, optimizer: torch.optim.Optimizer | None, scaler: torch.amp.GradScaler | None) -> Step:
    """Forward, loss, backward and optimizer; returns output and loss. `zero_grad` comes before it, never compiled."""

    def step(*args: Any, **kwargs: Any) -> tuple[Any, torch.Tensor]:
        output, loss = forward(*args, **kwargs)
        if scaler is not None and optimizer is not None:
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()  # type: ignore[no-untyped-call]
            if optimizer is not None:
                optimizer.step()
        return output, loss.detach()

    return step
