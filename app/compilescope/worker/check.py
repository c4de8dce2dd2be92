"""Calls the compiled side beside the eager one, from the same state and random streams, and keeps how they differ."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import nn

from compilescope.worker import layout
from compilescope.worker.accuracy import Norm, apart
from compilescope.worker.entries import seed_all
from compilescope.worker.inputs import Inputs, Source, signature
from compilescope.worker.models import copy_state, state
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.numerics import Difference, compare
from compilescope.worker.steps import Recipe, Side

FEWEST_CALLS, MOST_CALLS = 3, 8
# of calls that take longer, one must do: what a second would tell is not worth the wait
SLOW_CALL_S = 1.0
SUBJECTS = ("outputs", "inputs", "loss", "gradients")
# parts that err by the size of all together: a gradient that is nearly zero is the sum of some that are not
COMMON_SCALE = ("gradients",)
RANDOM_SEED = 20_000


@dataclass(kw_only=True)
class Outcome:
    """What one call left: its output, its inputs after the call, loss and gradients where it was a training step."""

    outputs: Any
    inputs: Any
    loss: Any = None
    gradients: Any = None

    def part(self, subject: str) -> Any:
        return getattr(self, subject)


@dataclass(frozen=True, kw_only=True)
class Call:
    """What one call was made with."""

    inputs: Inputs
    seed: int


@dataclass(kw_only=True)
class Finding:
    """The worst of one subject over all calls, with the first call that was so for a second look.

    `gap`: how far the two are apart, as shares of the values. `spread`: how eager differs from itself, None where that
    was not tried or could not be; `spread_share` as a share of the values. `layout`: what differs although values are
    equal.
    """

    difference: Difference
    call: Call | None = None
    gap: Norm = field(default_factory=Norm)
    spread: Difference | None = None
    spread_share: float = 0.0
    layout: tuple[str, ...] = ()


class Checker:
    """Calls both sides with the same new inputs each time, at least three times, until their shapes repeat.

    Where eager is slow, once will do.
    """

    def __init__(self, eager: Side, compiled: Side, source: Source, *, seed: int) -> None:
        self._eager = eager
        self._compiled = compiled
        self._source = source
        self._seed = seed + RANDOM_SEED
        self._subjects = SUBJECTS if eager.recipe.training else SUBJECTS[:2]
        self.findings = {subject: Finding(difference=Difference()) for subject in self._subjects}
        self._reference = duplicate_model(eager.model)
        # the state that the first call with a difference began from, kept in the host's memory
        self.state: list[torch.Tensor] | None = None
        self.draws_random_numbers = False
        self.calls = 0
        self._has_repeated = False
        self._is_slow = False

    def run(self, first: Inputs) -> None:
        """The calls that belong to the compile story; `first` is what the first calls took."""
        seen = {signature(first)}
        while self.calls < MOST_CALLS:
            inputs = self._source.make()
            key = signature(inputs)
            self._check(Call(inputs=inputs, seed=self._seed + self.calls))
            self.calls += 1
            if (self.calls >= FEWEST_CALLS or self._is_slow) and key in seen:
                break
            seen.add(key)
        # a third model must not count in anyone's memory
        self._reference = None

    def _check(self, call: Call) -> None:
        self._align()
        if not self._compare(call) and not self._has_repeated:
            self._has_repeated = True
            self._repeat_eager(call)

    def _compare(self, call: Call) -> bool:
        """Make the call on both sides; whether all parts were bitwise equal."""
        before = random_state(self._eager.recipe.device, seed=call.seed)
        began = perf_counter()
        expected = perform(self._eager, call)
        self._is_slow |= perf_counter() - began > SLOW_CALL_S
        self.draws_random_numbers |= before != random_state(self._eager.recipe.device)
        actual = perform(self._compiled, call)
        equal = True
        if not self.calls:
            self._note_layout(expected, actual)
        for subject in self._subjects:
            difference = compare(expected.part(subject), actual.part(subject), subject)
            equal &= difference.equal
            if self._note(subject, difference, call) and difference.is_rounding:
                gap = apart(expected.part(subject), actual.part(subject), common=subject in COMMON_SCALE)
                self.findings[subject].gap = gap
            if not difference.close and self.state is None and self._reference is not None:
                self.state = [tensor.detach().to("cpu", copy=True) for tensor in state(self._reference)]
        return equal

    def _align(self) -> None:
        """The same parameters and buffers on both sides, so that errors do not add up over calls."""
        with stateful(self._eager.recipe):
            copy_state(self._eager.model, self._compiled.model)
            if self._reference is not None:
                copy_state(self._eager.model, self._reference)

    def _repeat_eager(self, call: Call) -> None:
        """Eager twice from the call's own start tells whether the model is deterministic."""
        if self._reference is None:
            return
        models = [duplicate_model(self._reference) for _ in range(2)]
        if any(model is None for model in models):
            return
        one, two = (perform(twin(self._eager, model), call) for model in models if model is not None)
        for subject, finding in self.findings.items():
            finding.spread = compare(one.part(subject), two.part(subject), subject)
            if not finding.spread.equal:
                gap = apart(one.part(subject), two.part(subject), common=subject in COMMON_SCALE)
                finding.spread_share = gap.rms

    def _note_layout(self, expected: Outcome, actual: Outcome) -> None:
        trees = [{"inputs": outcome.inputs, "outputs": outcome.outputs} for outcome in (expected, actual)]
        self.findings["outputs"].layout = tuple(layout.differences(*trees))

    def _note(self, subject: str, difference: Difference, call: Call) -> bool:
        """Keep a difference that is the worst so far; whether it was."""
        worst = self.findings[subject]
        if _rank(difference) <= _rank(worst.difference):
            return False
        if worst.call is None or _rank(difference)[0] > _rank(worst.difference)[0]:
            worst.call = call
        worst.difference = difference
        return True


def perform(side: Side, call: Call) -> Outcome:
    """Make one call on one side, from the call's random streams."""
    inputs = side.take(call.inputs)
    seed_all(call.seed)
    with side.ready():
        output = side.bound(inputs)()
    side.synchronize()
    return Outcome(
        outputs=output,
        inputs=inputs.tree,
        loss=side.last_loss,
        gradients=side.gradients() if side.recipe.training else None,
    )


def twin(side: Side, model: nn.Module, recipe: Recipe | None = None) -> Side:
    """A side like this one with another, eager model."""
    other = Side(side.name, model, model, recipe or side.recipe)
    other.stance = side.stance
    return other


def random_state(device: torch.device, seed: int | None = None) -> bytes:
    """Where torch's random streams stand; with a seed, where they stand after seeding."""
    if seed is not None:
        seed_all(seed)
    state = torch.get_rng_state().numpy().tobytes()
    if device.type == "cuda":
        state += torch.cuda.get_rng_state(device).numpy().tobytes()
    return state


def stateful(recipe: Recipe) -> contextlib.AbstractContextManager[Any]:
    """The mode in which state may be written: inference tensors take no change outside of inference mode."""
    return torch.no_grad() if recipe.training else recipe.without_gradients()


def _rank(difference: Difference) -> tuple[int, float]:
    fault = 0 if difference.close else 1 if difference.is_rounding else 2
    return fault, difference.max_abs_error or (0.0 if difference.equal else 1e-300)
