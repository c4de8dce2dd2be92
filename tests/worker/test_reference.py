"""Calls in double precision: of models that cast, hold constants, draw random numbers, or train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from compilescope.worker.inputs import Inputs
from compilescope.worker.reference import NoReferenceError, attempted, need_room, widened_inputs
from compilescope.worker.steps import Recipe, mean_square

CONSTANT = torch.arange(4).float()


class Casting(nn.Module):
    """Casts down and up again, adds a constant of the module's file, and makes tensors as it goes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(4, dtype=torch.float32)
        total += self.layer(x.half().float()).sum(0)
        return (total + CONSTANT * torch.ones(4)).bfloat16()


def twice(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The call in double precision."""
    result: torch.Tensor = attempted(lambda: model.double()(widened_inputs(Inputs(args=(x,))).args[0]))
    return result


def test_that_a_model_that_casts_is_computed_in_double_precision_throughout() -> None:
    model, x = Casting(), torch.rand(3, 4)
    layer = nn.Linear(4, 4).double()
    layer.load_state_dict(model.layer.state_dict())
    exact = layer(x.double()).sum(0) + CONSTANT

    found = twice(model, x)

    assert found.dtype is torch.float64
    torch.testing.assert_close(found, exact, rtol=1e-12, atol=1e-12)
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: F.dropout(x, 0.5, training=True),
        lambda x: x + torch.randn_like(x),
        lambda x: x + torch.empty_like(x).uniform_(),
        lambda x: x + torch.rand(x.shape),
    ],
)
@pytest.mark.parametrize("grad", [True, False])
def test_that_its_random_numbers_are_those_of_eager(draw: Callable[[torch.Tensor], torch.Tensor], grad: bool) -> None:
    x = torch.rand(64)
    torch.manual_seed(1)
    with torch.set_grad_enabled(grad):
        expected = draw(x.clone().requires_grad_(grad))
    torch.manual_seed(1)
    with torch.set_grad_enabled(grad):
        found: torch.Tensor = attempted(lambda: draw(x.double().requires_grad_(grad)))

    assert found.dtype is torch.float64
    torch.testing.assert_close(found.float(), expected)


def test_that_a_training_step_has_loss_and_gradients_in_double_precision() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).double()
    target = torch.randint(0, 5, (8,))

    def step() -> tuple[torch.Tensor, Any]:
        inputs = widened_inputs(Inputs(args=(torch.randn(8, 3, 8, 8), target)))
        assert inputs.args[1].dtype is torch.int64
        output = model(inputs.args[0])
        loss = F.cross_entropy(output.float(), inputs.args[1]) + mean_square(output)
        loss.backward()
        return loss, [parameter.grad for parameter in model.parameters()]

    loss, gradients = attempted(step)

    assert loss.dtype is torch.float64
    assert all(gradient.dtype is torch.float64 for gradient in gradients)


def test_that_a_failure_is_a_clause_that_says_what_failed() -> None:
    def fails() -> None:
        raise TypeError("only float32 is taken\nand more")

    with pytest.raises(NoReferenceError, match=r"fails in it \(TypeError: only float32 is taken\)"):
        attempted(fails)
    with pytest.raises(NoReferenceError, match="looks at the bits"):
        attempted(lambda: torch.ones(2).view(torch.int32).view(torch.float32))


def test_that_too_little_room_is_told_with_its_size() -> None:
    recipe = Recipe(
        training=True,
        precision="fp32",
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=torch.optim.AdamW,
    )

    with pytest.raises(NoReferenceError, match=r"needs about 200000\.0 GB"):
        need_room(recipe, nn.Linear(2, 2), Inputs(), peak_bytes=10**14)
