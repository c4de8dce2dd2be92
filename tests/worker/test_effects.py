"""What calls change beyond what they return, and what an optimizer makes of gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from compilescope.worker.effects import Before, align, values
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.updates import compare_updates, update, with_gradients

NOTES: dict[str, Any] = {"calls": 0}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("total", torch.zeros(2))
        self.calls, self.seen, self.last = 0, [], None

    def forward(self, x: torch.Tensor, notes: dict[str, Any] | None = None) -> torch.Tensor:
        y = self.layer(x)
        self.calls += 1
        self.last = y.detach()
        self.seen.append((self.calls, y.detach()))
        self.total.add_(1)
        NOTES["calls"] += 1
        if notes is not None:
            notes["mean"] = y.mean()
        return y


def side(model: nn.Module, *, training: bool = False, name: str = "eager") -> Side:
    recipe = Recipe(
        training=training, precision="fp32", device=torch.device("cpu"), loss=mean_square, optimizer=torch.optim.Adam
    )
    found = Side(name, model, model, recipe)
    found.own = {"script": {"NOTES": NOTES}}
    return found


def called(which: Side, inputs: Inputs) -> None:
    with which.ready():
        which.bound(inputs)()


def test_that_what_a_call_changes_is_found_by_path_and_put_back() -> None:
    one = side(Model())
    inputs = Inputs(args=(torch.ones(1, 2), {}))
    before = Before(one, inputs)

    called(one, inputs)
    found = values(one, inputs, before.changed())

    assert found["model.calls"] == 1
    assert found["model.seen[0][0]"] == 1
    assert {"model.last", "model.seen[0][1]"} <= found.keys()
    assert any(key.startswith("globals") and "calls" in key for key in found)
    assert not any("total" in key for key in found)  # a buffer is compared as one
    assert before.put_back()
    assert (one.model.calls, one.model.seen, inputs.args[1]) == (0, [], {})


def test_that_numbers_are_aligned_only_where_that_is_asked_for() -> None:
    model = Model()
    one, two = side(model), side(copy.deepcopy(model), name="compiled")
    for calls, which in ((3, one), (1, two)):
        for _ in range(calls):
            called(which, Inputs(args=(torch.ones(1, 2),)))

    assert align(one, two)
    assert (two.model.calls, float(two.model.total[0])) == (1, 3.0)
    assert align(one, two, numbers=True)
    assert (two.model.calls, len(two.model.seen)) == (3, 3)
    assert two.model.seen[0][1] is not one.model.seen[0][1]


def test_that_an_optimizer_s_own_numbers_are_never_made_alike() -> None:
    model = Model()
    one, two = side(model, training=True), side(copy.deepcopy(model), training=True, name="compiled")
    assert two.optimizer is not None
    two.optimizer.param_groups[0]["lr"] = 0.5

    align(one, two, numbers=True)

    assert two.optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(("factor", "close"), [(1.0, True), (1.01, False)])
def test_that_an_update_is_judged_by_eager_s_optimizer_with_the_same_gradients(factor: float, close: bool) -> None:
    model = Model()
    one, two = side(model, training=True), side(copy.deepcopy(model), training=True)
    assert two.optimizer is not None
    two.optimizer.param_groups[0]["lr"] *= factor
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    # as small as rounding, where Adam's first step is as long as any
    tiny = {name: torch.full_like(parameter, 1e-9) for name, parameter in model.named_parameters()}
    turned = {name: -gradient for name, gradient in tiny.items()}

    expected = {name: value.clone() for name, value in with_gradients(one, turned).items()}
    with_gradients(two, turned)

    assert compare_updates(before, expected, update(two)).close is close
