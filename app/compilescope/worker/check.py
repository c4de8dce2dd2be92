"""Calls the compiled side beside the eager one, one call after the other, and keeps how they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

from compilescope.worker import layout
from compilescope.worker.effects import OF_STEP, Before, align, values
from compilescope.worker.entries import seed_all
from compilescope.worker.inputs import Inputs, mapped, signature
from compilescope.worker.numerics import Difference, compare, parts
from compilescope.worker.reach import Path
from compilescope.worker.steps import Side
from compilescope.worker.updates import compare_updates, update

FEWEST_CALLS, MOST_CALLS = 3, 8
# of calls that take longer, one must do: what a second would tell is not worth the wait
SLOW_CALL_S = 1.0
OF_ALL, OF_TRAINING = ("outputs", "inputs", "state"), ("loss", "gradients")
# parts that err by the size of all together: a gradient that is nearly zero is the sum of some that are not
COMMON_SCALE = ("gradients",)
RANDOM_SEED = 20_000
# so many times as large, a difference of the same kind takes the place of an earlier one
LARGER = 1.5


@dataclass(kw_only=True)
class Outcome:
    """What one call left: its output, its inputs and the model's buffers after the call, and by path what else it
    changed; loss, gradients and what the optimizer wrote, where it was a training step."""

    outputs: Any
    inputs: Any
    buffers: Any = None
    state: Any = None
    loss: Any = None
    gradients: Any = None
    input_gradients: Any = None
    update: Any = None

    def part(self, subject: str) -> Any:
        return getattr(self, subject.replace(" ", "_"))

    def copied(self, device: torch.device | None = None) -> Outcome:
        """The same in memory of its own."""
        rows = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Outcome(**mapped(rows, lambda tensor: _copied(tensor, device)))


def _copied(tensor: torch.Tensor, device: torch.device | None) -> torch.Tensor:
    with torch.no_grad():
        twin = tensor.detach()
        return twin.clone() if device is None or twin.device == device else twin.to(device)


@dataclass(kw_only=True, eq=False)
class Call:
    """What one call was made with, by side: its inputs, and what was there before it.

    `scale`: where the loss scale stood. `shape`: the size of a sweep, None for the first. `places`: where either side
    changed its state. `eager`: what eager left, in the host's memory, once the call is kept for a second look.
    """

    inputs: Mapping[str, Inputs]
    seed: int
    scale: dict[str, Any] | None = None
    shape: int | None = None
    before: dict[str, Before] = field(default_factory=dict)
    places: tuple[Path, ...] = ()
    eager: Outcome | None = None


@dataclass(kw_only=True)
class Finding:
    """The worst of one subject over all calls of one size, with the call that was so for a second look.

    `layout`: what differs although values are equal. `unseen`: a part that could not be looked into. `holds_values`:
    whether there was anything to compare; `has_effects`: whether calls left anything beside what they returned.
    """

    difference: Difference = field(default_factory=Difference)
    call: Call | None = None
    layout: tuple[str, ...] = ()
    unseen: str = ""
    holds_values: bool = False
    has_effects: bool = False
    calls: int = 0


class Checker:
    """Calls both sides with the same new inputs each time, at least three times, until their shapes repeat.

    Where eager is slow, once will do. Nothing is restored between calls; tensors of state are aligned. `first`: the
    side that is called first each time.
    """

    def __init__(
        self,
        eager: Side,
        compiled: Side,
        make_inputs: Callable[[], Mapping[str, Inputs]],
        *,
        seed: int,
        first: str = "eager",
    ) -> None:
        self._eager = eager
        self._compiled = compiled
        self._order = (eager, compiled) if first == "eager" else (compiled, eager)
        self._make_inputs = make_inputs
        self._seed = seed + RANDOM_SEED
        self._is_shared = eager.model is compiled.model
        self.findings: dict[tuple[int | None, str], Finding] = {}
        self.draws_random_numbers = False
        self.calls = 0
        self._is_slow = False

    @property
    def kept(self) -> list[Call]:
        """The calls that are kept for a second look, with their inputs."""
        return list(dict.fromkeys(row.call for row in self.findings.values() if row.call))

    def begin(self, call: Call, outcomes: Mapping[str, Outcome]) -> None:
        """The first call of each side, made elsewhere; with one model for both they began from two states."""
        if not self._is_shared:
            self._compare(call, outcomes)
            self.calls += 1

    def run(self, first: Inputs) -> None:
        """The calls that belong to the compile story; `first` is what the first calls took."""
        seen, made = {signature(first)}, 0
        while made < MOST_CALLS:
            inputs = self._make_inputs()
            key = signature(inputs["eager"])
            self._check(inputs, None)
            made += 1
            if (made >= FEWEST_CALLS or self._is_slow) and key in seen:
                break
            seen.add(key)

    def add(self, inputs: Mapping[str, Inputs], shape: int) -> None:
        """One call more, of another size of a sweep; both sides have been called with it."""
        self._check(inputs, shape)

    def _check(self, inputs: Mapping[str, Inputs], shape: int | None) -> None:
        align(self._eager, self._compiled)
        scaler = self._eager.scaler
        call = Call(
            inputs=inputs, seed=self._seed + self.calls, scale=scaler.state_dict() if scaler else None, shape=shape
        )
        outcomes = {}
        for side in self._order:
            began, drawn = perf_counter(), random_state(side.recipe.device, seed=call.seed)
            outcomes[side.name] = perform(side, call)
            if side is self._eager:
                self._is_slow |= perf_counter() - began > SLOW_CALL_S
                self.draws_random_numbers |= drawn != random_state(side.recipe.device)
            if self._is_shared and len(outcomes) == 1:
                outcomes = {side.name: self._undone(side, call, outcomes[side.name])}
        self._compare(call, outcomes)
        self.calls += 1

    def _undone(self, side: Side, call: Call, left: Outcome) -> Outcome:
        """One model for both: what the first side left, kept, and undone before the other's call."""
        before = call.before[side.name]
        call.places = tuple(before.changed())
        left.state = values(side, before.inputs, call.places) if call.places else None
        kept = left.copied()
        before.put_back(leaves_out=OF_STEP)
        return kept

    def _compare(self, call: Call, outcomes: Mapping[str, Outcome]) -> None:
        """Note how the two differ; both sides still hold what they left."""
        expected, actual = outcomes["eager"], outcomes["compiled"]
        if not self.calls:
            trees = [{"inputs": outcome.inputs, "outputs": outcome.outputs} for outcome in (expected, actual)]
            self._finding(call, "outputs").layout = tuple(layout.differences(*trees))
        if not call.places:
            call.places = tuple(path for before in call.before.values() for path in before.changed())
            for side in (self._eager, self._compiled):
                inputs = call.before[side.name].inputs if side.name in call.before else None
                if inputs is not None and call.places:
                    outcomes[side.name].state = values(side, inputs, call.places)
        for subject in subjects(self._eager, expected):
            finding = self._finding(call, subject)
            finding.calls += 1
            finding.has_effects |= bool(call.places) or self._eager.recipe.training
            finding.holds_values |= holds_values(expected.part(subject)) or holds_values(actual.part(subject))
            difference = compared(subject, expected, actual, call)
            finding.unseen = finding.unseen or difference.unseen
            self._note(finding, difference, call)
        if call in self.kept:
            # what is in the optimizer is judged by gradients, and would be large
            call.eager = dataclasses.replace(expected, update=None).copied(torch.device("cpu"))
        else:
            call.before = {}

    def _finding(self, call: Call, subject: str) -> Finding:
        return self.findings.setdefault((call.shape, subject), Finding())

    def _note(self, worst: Finding, difference: Difference, call: Call) -> None:
        """Keep a difference that is worse than those before it, with its call where that wants a second look."""
        rank, kept = difference.rank, worst.difference.rank
        # a copy of the state is not worth a little more of the same
        if rank[0] > kept[0] or (rank[0] == kept[0] and rank[1] > (LARGER if rank[0] else 1.0) * kept[1]):
            worst.difference, worst.call = difference, None if difference.close else call


def perform(side: Side, call: Call) -> Outcome:
    """Make one call on one side, from the call's random streams and its loss scale.

    What was there before it is kept in the call, once.
    """
    inputs = side.take(call.inputs[side.name])
    if side.scaler is not None and call.scale is not None:
        side.scaler.load_state_dict(call.scale)
    if side.name not in call.before:
        call.before[side.name] = Before(side, inputs)
    seed_all(call.seed)
    with side.ready():
        output = side.bound(inputs)()
    side.synchronize()
    return outcome(side, inputs, output, call.places)


def outcome(side: Side, inputs: Inputs, output: Any, places: tuple[Path, ...] = ()) -> Outcome:
    """What a call has just left."""
    training = side.recipe.training
    return Outcome(
        outputs=output,
        inputs=inputs.tree,
        buffers=dict(side.model.named_buffers()),
        state=values(side, inputs, places) if places else None,
        loss=side.last_loss,
        gradients=side.gradients() if training else None,
        input_gradients=side.input_gradients(inputs) if training else None,
        update=update(side) if training and side.optimizer is not None else None,
    )


def subjects(side: Side, expected: Outcome) -> Iterator[str]:
    """What there is to compare."""
    yield from OF_ALL
    if expected.buffers:
        yield "buffers"
    if side.recipe.training:
        yield from OF_TRAINING
        if expected.input_gradients:
            yield "input gradients"
        if side.optimizer is not None:
            yield "update"


def compared(subject: str, expected: Outcome, actual: Outcome, call: Call) -> Difference:
    """How one part of two outcomes compares."""
    one, two = expected.part(subject), actual.part(subject)
    if subject == "update":
        before = call.before["eager"].parameters() if "eager" in call.before else {}
        return compare_updates(before, one or {}, two or {})
    return compare(one, two, subject, common=subject in COMMON_SCALE)


def holds_values(part: Any) -> bool:
    """Whether there is a tensor or a number in it, or what cannot be looked into."""
    return any(
        leaf is not None and not isinstance(leaf, (str, bytes, dict, list, tuple)) for _, leaf in parts(part, "")
    )


def random_state(device: torch.device, seed: int | None = None) -> bytes:
    """Where torch's random streams stand; with a seed, where they stand after seeding."""
    if seed is not None:
        seed_all(seed)
    state = torch.get_rng_state().numpy().tobytes()
    if device.type == "cuda":
        state += torch.cuda.get_rng_state(device).numpy().tobytes()
    return state
