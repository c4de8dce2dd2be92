"""The check itself: what it keeps for a second look, and what a side made anew takes over."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import nn

from compilescope.worker.check import Call, Checker, perform
from compilescope.worker.inputs import Inputs, Source
from compilescope.worker.steps import Recipe, Side, mean_square


def recipe(*, training: bool = False, precision: str = "fp32") -> Recipe:
    return Recipe(
        training=training,
        precision=precision,
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=torch.optim.SGD,
    )


def checked(
    change: Callable[[torch.Tensor], torch.Tensor], make: Callable[[], list[torch.Tensor]] = lambda: [torch.randn(4, 3)]
) -> Checker:
    """A linear layer beside one whose output is changed."""
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    other = copy.deepcopy(model)
    sides = [Side("eager", model, model, recipe()), Side("compiled", other, lambda x: change(other(x)), recipe())]
    source = Source(make, torch.device("cpu"))
    checker = Checker(sides[0], sides[1], lambda: dict.fromkeys(("eager", "compiled"), source.make()), seed=0)
    checker.run(source.make())
    return checker


def test_that_no_call_is_kept_where_results_are_close() -> None:
    assert checked(lambda y: y * (1 + 1e-7)).kept == []


def test_that_the_call_with_the_largest_error_is_kept_with_the_state_it_began_from() -> None:
    errors = iter([1e-3, 2.0, 1e-2])

    checker = checked(lambda y: y + next(errors))

    (call,) = checker.kept
    finding = checker.findings[None, "outputs"]
    assert finding.call is call and finding.difference.max_abs_error == pytest.approx(2.0)
    assert call.before.keys() == {"eager", "compiled"}
    assert all(before.put_back() for before in call.before.values())


def test_that_a_small_share_of_large_values_takes_no_place_of_a_large_share_of_small_ones() -> None:
    # the second call's values are a thousand times as large, and its error, a rounding, ten times
    calls = iter([(1.0, 1e-2), (1e3, 1e-1), (1.0, 0.0)])

    def changed(y: torch.Tensor) -> torch.Tensor:
        return y + next(calls)[1]

    scales = iter([1.0, 1.0, 1e3, 1.0])
    checker = checked(changed, make=lambda: [torch.randn(4, 3) * next(scales)])

    assert checker.findings[None, "outputs"].difference.max_abs_error == pytest.approx(1e-2, rel=1e-3)


def test_that_a_call_is_made_again_at_the_loss_scale_it_had() -> None:
    model = nn.Linear(2, 2)
    side = Side("eager", model, model, recipe(training=True, precision="fp16"))
    assert side.scaler is not None
    scale = {**side.scaler.state_dict(), "scale": 128.0}

    perform(side, Call(inputs={"eager": Inputs(args=(torch.ones(1, 2),))}, seed=0, scale=scale))

    assert side.scaler.get_scale() == 128.0


def test_that_gradients_of_what_no_optimizer_takes_are_those_of_one_step() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    of_first = dataclasses.replace(
        recipe(training=True), optimizer=lambda parameters: torch.optim.SGD(list(parameters)[:2], lr=0.0)
    )
    side = Side("eager", model, model, of_first)
    step = side.bound(Inputs(args=(torch.ones(1, 2),)))

    step()
    once = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    step()

    assert len(once) == 4
    for before, (_, after) in zip(once, side.gradients().items(), strict=True):
        assert after is not None and torch.equal(before, after)
