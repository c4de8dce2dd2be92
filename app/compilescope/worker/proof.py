"""Proof that two models are alike before one of them is compiled: the same results, and the same time.

What differs here is how the two were made, and no work of the compiler's; a speedup between them would mean nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from compilescope.domain.events import Warning
from compilescope.domain.statistics import Interval, Pairs, quick_interval
from compilescope.worker.clocks import Clock, clock_for
from compilescope.worker.entries import random_streams, seed_all, set_random_streams
from compilescope.worker.inputs import Inputs
from compilescope.worker.models import state as parameters_and_buffers
from compilescope.worker.models import storage_bytes
from compilescope.worker.pair import Pair
from compilescope.worker.results import distance, held
from compilescope.worker.state import State, Undo, all_but_parameters, every
from compilescope.worker.steps import Recipe, Side

# an estimate nearer to 1 is taken for the machine's own unrest, whatever its interval says
TOLERATED = 0.03
# a round: about so long, in so many pairs of blocks; doubled until the interval is settled or it takes too long
ROUND_S, MOST_PAIRS, BLOCK_S, ENOUGH_S, MOST_S = 0.15, 16, 0.002, 1.0, 4.0
# fewer say nothing on a busy machine; of long calls, as few as give an interval
FEWEST_PAIRS, FEWEST_SLOW, LONG_CALL_S = 7, 3, 0.05
# an interval that is wider and reaches over 1 says nothing
UNSETTLED = 0.1
# a second call before the timing, and copies of the parameters, where they cost little
SLOW_CALL_S, MOST_PARAMETER_BYTES = 1.0, 64 * 2**20
# calls of eager to see how it differs from itself, which may by chance be so much less than from the other model
REPEATS, OWN_SPREAD = 2, 10.0


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Whether two models are alike, uncompiled. `ratio`: the first one's time over the second's, between `low` and
    `high`. `outputs_equal`: bit for bit; None where the model itself gives other results each time. `detail`: a
    sentence about it.
    """

    is_alike: bool
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    outputs_equal: bool | None = None
    detail: str = ""


def not_comparable(proof: Proof) -> Warning:
    return Warning(
        code="not_comparable",
        message=f"The two models are not alike before anything is compiled: {proof.detail} So no speedup is told.",
        hint="What the script keeps outside of its model, or does only the first time, may differ.",
    )


def rebuilt(proof: Proof) -> Warning:
    return Warning(
        code="pair_rebuilt",
        message=f"The first two models were not alike before anything was compiled: {proof.detail} "
        "What is timed are two that were built another way.",
        hint="",
    )


def plain_sides(pair: Pair, recipe: Recipe) -> tuple[Side, Side]:
    """Both sides of a pair as they are before anything is compiled; of a training step all but the optimizer's part."""
    without = dataclasses.replace(recipe, optimizer=None)
    sides = []
    for name, instance in (("eager", pair.eager), ("compiled", pair.compiled)):
        side = Side(name, instance.model, instance.model, without)
        side.own, side.home = instance.globals(), instance.at_home
        sides.append(side)
    return sides[0], sides[1]


def prove(eager: Side, plain: Side, inputs: Mapping[str, Inputs], *, seed: int) -> Proof:
    """Call both, uncompiled, from the same seed and state, and time one beside the other.

    `inputs`: those of each side, by name, made in the mode of its calls (see `Side.take`). State and random streams
    are as before when this returns. What the models raise goes through.
    """
    streams = random_streams()
    with _uncompiled(), contextlib.ExitStack() as stack:
        trials = []
        for side in (eager, plain):
            trial = _Trial(side, inputs[side.name], seed)
            stack.callback(trial.end)
            trials.append(trial)
        try:
            equal = _same_outputs(*trials)
            if equal is False:
                detail = "Uncompiled, the two models give different results from the same inputs and state."
                return Proof(is_alike=False, outputs_equal=False, detail=detail)
            interval, is_same = _same_time(*trials)
        finally:
            set_random_streams(streams)
    return Proof(
        is_alike=is_same,
        ratio=interval.value if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        outputs_equal=equal,
        detail=_detail(equal, interval, is_same=is_same),
    )


def _detail(equal: bool | None, interval: Interval | None, *, is_same: bool) -> str:
    results = "give the same bits" if equal else "vary from call to call alike"
    if interval is None:
        return f"Uncompiled, the two models {results}."
    time = f"the second takes {1 / interval.value:.3f} times as long as the first"
    span = f"{1 / interval.high:.3f} to {1 / interval.low:.3f}"
    return f"Uncompiled, the two models {results}, {'and' if is_same else 'but'} {time} ({span})."


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Nothing is compiled, also where the script does so itself, and no garbage is collected meanwhile."""
    with contextlib.ExitStack() as stack:
        # without the compiler there is nothing to keep away, and to ask for a stance would import it
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        if gc.isenabled():
            gc.disable()
            stack.callback(gc.enable)
        yield


class _Trial:
    """One side, with the state that it had before."""

    def __init__(self, side: Side, inputs: Inputs, seed: int) -> None:
        self.side = side
        self._seed = seed
        self._step = side.bound(inputs)
        self._took = math.inf
        self._undo: Undo | None = None
        # of large models parameters are watched only: that a call changes one is rare, and told by nobody else's copy
        size = storage_bytes(parameters_and_buffers(side.model))
        self._choice = every if side.optimizer is not None or size <= MOST_PARAMETER_BYTES else all_but_parameters
        self._roots = side.roots(inputs)
        self._state = self._now()

    def _now(self) -> State:
        own = self.side.own
        return State(self._roots, copies=self._choice, follows=lambda cls: cls.__module__ in own)

    def end(self) -> None:
        self.again()
        if self.side.recipe.training:
            self.side.release()

    def again(self) -> None:
        """Back to the state before the first call."""
        self._state.put_back()

    def call(self) -> Any:
        """What one call gives from this seed."""
        seed_all(self._seed)
        with self.side.ready():
            began = perf_counter()
            output = self._one()
            self.side.synchronize()
            self._took = min(self._took, perf_counter() - began)
            result = {"output": output}
            if self.side.recipe.training:
                result |= {"loss": self.side.last_loss, "gradients": self.side.gradients()}
            return held(result)

    def _one(self) -> Any:
        if self.side.recipe.training and self.side.optimizer is None:
            # nobody else does, and they would add up
            self.side.model.zero_grad(set_to_none=True)
        return self._step()

    def prepare(self) -> float:
        """Learn what a call changes; about how long one takes."""
        if self._took >= SLOW_CALL_S:
            self._undo = Undo(self._state)
            return self._took
        # what the first call does once for all is no part of it
        base = self._now()
        try:
            self.call()
        except Exception:
            # such as a step through the graph of the one before; from the start it must work
            self.again()
            base = self._state
            self.call()
        self._undo = Undo(base)
        return self._took

    def time(self, clock: Clock, calls: int) -> float:
        """Seconds a call, of a block of so many."""
        with self.side.ready():
            restore = self._undo.put_back if self._undo else None
            if restore is None and self._took < LONG_CALL_S:
                # the first call after the other side's finds its data in the cache
                self._one()
            return clock.time(self._one, calls, self.side.synchronize, restore=restore).seconds


def _same_outputs(eager: _Trial, plain: _Trial) -> bool | None:
    """Whether both give the same bits; None where eager itself does not, and differs as much."""
    for _ in range(2):
        # the second time, since what a first call imports or makes once for all may have moved the random streams
        one = eager.call()
        if eager.side.model is plain.side.model:
            eager.again()
        two = plain.call()
        if distance(one, two) == 0:
            return True
        eager.again()
        plain.again()
    repeats = []
    for _ in range(REPEATS):
        repeats.append(eager.call())
        eager.again()
    own = max(distance(first, second) for first, second in itertools.combinations((one, *repeats), 2))
    other = distance(one, two)
    return None if own > 0 and other <= OWN_SPREAD * own else False


def _same_time(eager: _Trial, plain: _Trial) -> tuple[Interval | None, bool]:
    """The ratio of their times, and whether it may be 1: only what two series deny is denied, so that a busy machine
    gives no false alarm."""
    per_call = max(eager.prepare(), plain.prepare())
    if per_call >= SLOW_CALL_S:
        # what some pairs of such calls would tell is not worth the wait
        return None, True
    clock = clock_for(eager.side.recipe.device, l2_flush=False)
    calls = max(1, math.ceil(BLOCK_S / max(per_call, 1e-6)))
    fewest = FEWEST_PAIRS if per_call < LONG_CALL_S else FEWEST_SLOW
    more = max(fewest, min(MOST_PAIRS, int(ROUND_S / (2 * max(per_call, BLOCK_S)))))
    series = _Series(eager, plain, clock, calls)
    enough = max(ENOUGH_S, min(16 * per_call, MOST_S))
    began, is_denied = perf_counter(), False
    while True:
        series.extend(more)
        interval = quick_interval(series.pairs)
        if interval is None or abs(interval.value - 1) <= TOLERATED:
            return interval, True
        if not interval.contains(1.0):
            if is_denied:
                return interval, False
            # once more, of which nothing has been seen yet
            is_denied, began, series = True, perf_counter(), _Series(eager, plain, clock, calls)
        elif interval.half_width <= UNSETTLED or perf_counter() - began > enough:
            return interval, True
        else:
            more *= 2


class _Series:
    """Neighbouring blocks of both."""

    def __init__(self, eager: _Trial, plain: _Trial, clock: Clock, calls: int) -> None:
        self._trials = (eager, plain)
        self._clock = clock
        self._calls = calls
        self._seconds: tuple[list[float], list[float]] = ([], [])

    def extend(self, count: int) -> None:
        for index in range(count):
            blocks = [0.0, 0.0]
            for place in (0, 1) if index % 2 == 0 else (1, 0):
                blocks[place] = self._trials[place].time(self._clock, self._calls)
            if all(block > 0 for block in blocks):
                for row, block in zip(self._seconds, blocks, strict=True):
                    row.append(block)

    @property
    def pairs(self) -> Pairs:
        return Pairs(eager=self._seconds[0], compiled=self._seconds[1], clock=self._clock.name)
