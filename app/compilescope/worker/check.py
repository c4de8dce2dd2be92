"""Calls the compiled side beside the eager one, from the same state and random streams, and keeps how they differ."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import nn

from compilescope.worker import layout
from compilescope.worker.accuracy import Norm, apart
from compilescope.worker.entries import seed_all
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs, Source, mapped, signature
from compilescope.worker.models import copy_state, on_host, put_back, state
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.numerics import FEW_FLIPS, Difference, compare
from compilescope.worker.steps import Recipe, Side

FEWEST_CALLS, MOST_CALLS = 3, 8
# of calls that take longer, one must do: what a second would tell is not worth the wait
SLOW_CALL_S = 1.0
OF_ALL, OF_TRAINING, OF_STATE = ("outputs", "inputs"), ("loss", "gradients"), ("buffers",)
# parts that err by the size of all together: a gradient that is nearly zero is the sum of some that are not
COMMON_SCALE = ("gradients",)
RANDOM_SEED = 20_000
# so many times as large, a difference of the same kind takes the place of an earlier one
LARGER = 1.5


@dataclass(kw_only=True)
class Outcome:
    """What one call left: its output, its inputs and the model's buffers after the call, loss and gradients where it
    was a training step."""

    outputs: Any
    inputs: Any
    buffers: Any = None
    loss: Any = None
    gradients: Any = None

    def part(self, subject: str) -> Any:
        return getattr(self, subject)

    def copied(self) -> Outcome:
        """The same in memory of its own."""
        parts = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Outcome(**mapped(parts, lambda tensor: tensor.detach().clone()))


@dataclass(kw_only=True, eq=False)
class Call:
    """What one call was made with. `scale`: where the loss scale stood. `state`: what calls change of the model, as it
    was before, in the host's memory, once that is kept for a second look."""

    inputs: Inputs
    seed: int
    scale: dict[str, Any] | None = None
    state: list[torch.Tensor] | None = None


@dataclass(kw_only=True)
class Finding:
    """The worst of one subject over all calls, with the call that was so for a second look.

    `gap`: how far the two are apart, as shares of the values. `spread`: how eager differs from itself, None where that
    was not tried or could not be; `spread_share` as a share of the values. `layout`: what differs although values are
    equal. `unseen`: a part that could not be looked into. `flips`: of the call with the most whole numbers that differ.
    """

    difference: Difference
    call: Call | None = None
    gap: Norm = field(default_factory=Norm)
    spread: Difference | None = None
    spread_share: float = 0.0
    layout: tuple[str, ...] = ()
    unseen: str = ""
    flips: Difference = field(default_factory=Difference)


class Checker:
    """Calls both sides with the same new inputs each time, at least three times, until their shapes repeat.

    Where eager is slow, once will do.
    """

    def __init__(self, eager: Side, compiled: Side, source: Source, *, seed: int) -> None:
        self._eager = eager
        self._compiled = compiled
        self._source = source
        self._seed = seed + RANDOM_SEED
        has_buffers = any(True for _ in eager.model.buffers())
        training = OF_TRAINING if eager.recipe.training else ()
        self._subjects = (*OF_ALL, *training, *(OF_STATE if has_buffers else ()))
        self._is_shared = eager.model is compiled.model
        self.findings = {subject: Finding(difference=Difference()) for subject in self._subjects}
        self._reference = duplicate_model(eager.model)
        self.draws_random_numbers = False
        self.calls = 0
        self._has_repeated = False
        self._is_slow = False

    @property
    def kept(self) -> list[Call]:
        """The calls that are kept for a second look, with their inputs."""
        return list(dict.fromkeys(row.call for row in self.findings.values() if row.call))

    def run(self, first: Inputs) -> None:
        """The calls that belong to the compile story; `first` is what the first calls took."""
        seen = {signature(first)}
        while self.calls < MOST_CALLS:
            inputs = self._source.make()
            key = signature(inputs)
            self._check(inputs)
            if (self.calls >= FEWEST_CALLS or self._is_slow) and key in seen:
                break
            seen.add(key)
        # a third model must not count in anyone's memory
        self._reference = None

    def add(self, inputs: Inputs) -> None:
        """One call more, of another size; both sides have been called with it."""
        self._reference = duplicate_model(self._eager.model)
        self._check(inputs)
        self._reference = None

    def _check(self, inputs: Inputs) -> None:
        self._align()
        scaler = self._eager.scaler
        call = Call(inputs=inputs, seed=self._seed + self.calls, scale=scaler.state_dict() if scaler else None)
        if not self._compare(call) and not self._has_repeated:
            self._has_repeated = True
            self._repeat_eager(call)
        self.calls += 1

    def _compare(self, call: Call) -> bool:
        """Make the call on both sides; whether all parts were bitwise equal."""
        before = random_state(self._eager.recipe.device, seed=call.seed)
        model, recipe = self._eager.model, self._eager.recipe
        start = on_host(changing(model, recipe)) if self._is_shared else None
        began = perf_counter()
        own = perform(self._eager, call)
        self._is_slow |= perf_counter() - began > SLOW_CALL_S
        self.draws_random_numbers |= before != random_state(self._eager.recipe.device)
        expected = own
        if start is not None:
            # one model for both: what eager left is kept, and undone before the other's call
            expected = own.copied()
            with stateful(recipe):
                put_back(start, changing(model, recipe))
        actual = perform(self._compiled, call)
        equal = True
        if not self.calls:
            self._note_layout(own, actual)
        for subject in self._subjects:
            one, two = expected.part(subject), actual.part(subject)
            difference = compare(one, two, subject)
            equal &= difference.equal
            self.findings[subject].unseen = self.findings[subject].unseen or difference.unseen
            is_common = subject in COMMON_SCALE
            gap = gap_of(one, two, common=is_common) if difference.is_rounding else Norm()
            self._note(subject, difference, gap, call)
        if call in self.kept:
            call.state = start if self._reference is None else on_host(changing(self._reference, recipe))
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
                gap = gap_of(one.part(subject), two.part(subject), common=subject in COMMON_SCALE)
                finding.spread_share = gap.rms

    def _note_layout(self, expected: Outcome, actual: Outcome) -> None:
        trees = [{"inputs": outcome.inputs, "outputs": outcome.outputs} for outcome in (expected, actual)]
        self.findings["outputs"].layout = tuple(layout.differences(*trees))

    def _note(self, subject: str, difference: Difference, gap: Norm, call: Call) -> None:
        """Keep a difference that is worse than those before it, with its call where that wants a second look."""
        worst = self.findings[subject]
        if difference.flipped > worst.flips.flipped:
            worst.flips = difference
        rank, kept = _rank(difference, gap), _rank(worst.difference, worst.gap)
        # a copy of the state is not worth a little more of the same
        if rank[0] > kept[0] or (rank[0] == kept[0] and rank[1] > (LARGER if rank[0] else 1.0) * kept[1]):
            worst.difference, worst.gap, worst.call = difference, gap, None if difference.close else call


def perform(side: Side, call: Call) -> Outcome:
    """Make one call on one side, from the call's random streams and its loss scale."""
    inputs = side.take(call.inputs)
    if side.scaler is not None and call.scale is not None:
        side.scaler.load_state_dict(call.scale)
    seed_all(call.seed)
    with side.ready():
        output = side.bound(inputs)()
    side.synchronize()
    return Outcome(
        outputs=output,
        inputs=inputs.tree,
        buffers=dict(side.model.named_buffers()),
        loss=side.last_loss,
        gradients=side.gradients() if side.recipe.training else None,
    )


def gap_of(one: Any, two: Any, *, common: bool) -> Norm:
    """`apart`, for what no arithmetic can be done with as nothing: `compare` has named it."""
    return attempt(lambda: apart(one, two, common=common), Norm())


def changing(model: nn.Module, recipe: Recipe) -> Iterator[torch.Tensor]:
    """What a call may change of a model."""
    return state(model) if recipe.training else model.buffers()


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


def _rank(difference: Difference, gap: Norm) -> tuple[int, float]:
    """How bad a difference is: its kind, and how much of it. Rounding counts as a share of the values, since what is
    rounding to a large one is an error to a small one."""
    if difference.close:
        return 0, difference.max_abs_error or (0.0 if difference.equal else 1e-300)
    if difference.is_fault:
        return 4, 0.0
    if difference.flipped > FEW_FLIPS:
        return 3, difference.flipped
    return (2, gap.peak) if difference.is_rounding else (1, difference.flipped)
