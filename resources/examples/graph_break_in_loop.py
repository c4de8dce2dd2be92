"""A graph break inside a loop costs the whole function: only the calls within it are still compiled.

Look at the break: it is marked as being in a loop. The early exit reads a number from a tensor, `.item()`, in every
round. Count rounds on tensors, or check after the loop, and the model is one graph.
"""

import torch
from torch import nn


class Refine(nn.Module):
    """One round of refinement."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.tanh(self.linear(x))


class Model(nn.Module):
    """Refines an estimate, and stops early when it has grown too large."""

    def __init__(self, width: int, rounds: int) -> None:
        super().__init__()
        self.refine = Refine(width)
        self.rounds = rounds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            x = self.refine(x)
            if x.abs().max().item() > 1e4:
                break
        return x


def get_init_inputs() -> list[int]:
    return [128, 6]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128)]
