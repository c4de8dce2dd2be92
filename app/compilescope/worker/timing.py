"""Interleaved timing of two sides: time per call back to back, and latency, of the same calls or after them."""

from __future__ import annotations

import contextlib
import gc
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter  # by name: a script may put a clock of its own in its place

import torch

from compilescope.domain.events import Event, Measured, Samples, Void, Warning
from compilescope.domain.statistics import Pairs, expected_half_width
from compilescope.worker.blocks import MOST_LATENCIES, Block, Timed, joined
from compilescope.worker.clocks import Clock, clock_for
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Side

LEAD_S = 0.001
# calls of a block, so that the slow first ones do not decide its median, as long as a block stays as short as this
FEWEST_CALLS, MOST_BLOCK_S = 5, 0.020
# a call that fills a block many times over by itself, whatever went before it
LONG_CALL_S = 1.0
CHUNK_S = 0.25
FEWEST_PAIRS = 20
MOST_CALLS = 1_000_000
LATENCY_SHARE = 0.15
LATENCIES_AT_ONCE = 200
# blocks in a row that do not count, and how long they take, until it is given up
VOIDS_IN_A_ROW, VOID_S = 8, 0.4


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long to time one shape, and how surely. `interval` is a half width relative to the speedup."""

    budget_s: float
    interval: float
    shape: int = 0


class Timer:
    """Times pairs of blocks, eager beside compiled, and tells them in chunks between the blocks."""

    def __init__(
        self,
        sides: Sequence[tuple[Side, Inputs]],
        emit: Callable[[Event], None],
        compiles_seen: Callable[[], int],
        first_block: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._timed = [Timed(side=side, call=side.bound(inputs)) for side, inputs in sides]
        self._emit = emit
        self._compiles_seen = compiles_seen
        self._clock = clock or clock_for(sides[0][0].recipe.device, l2_flush=False)
        self._block = first_block
        self._told = first_block
        self._shape = 0
        self._pairs: tuple[list[float], list[float]] = ([], [])
        self._voids = 0
        self._void_since = 0.0
        self._void_compiles = False
        self._each = False
        self._asked_at = 0
        self._rng = random.Random(0)

    @property
    def next_block(self) -> int:
        return self._block

    @property
    def _l2_flush(self) -> bool | None:
        return self._clock.flushes if self._clock.name == "cuda_event" else None

    @property
    def _shows_wall(self) -> bool:
        """Whether the wall clock tells of calls alone, beside a clock of the device's."""
        return self._clock.name != "wall" and not self._clock.flushes

    def run(self, plan: Plan) -> None:
        """Time until the interval is narrow enough or the budget is spent."""
        self._shape = plan.shape
        with undisturbed():
            for timed in self._timed:
                self._calibrate(timed)
            self._each = all(timed.per_call >= self._clock.each_from_s for timed in self._timed)
            share = 0.0 if self._each else LATENCY_SHARE
            stop = self._back_to_back(plan, plan.budget_s * (1 - share))
            self._tell_latencies()
            self._emit(Measured(shape=plan.shape, stop=stop, l2_flush=self._l2_flush))
            if not self._each:
                self._latency(plan.budget_s * share)

    def _calibrate(self, timed: Timed) -> None:
        """How many calls fill a block, and how many the first millisecond."""
        block_s = self._clock.block_s
        with timed.side.ready():
            per_call, calls = 0.0, 1
            while True:
                per_call = self._time(timed, calls).wall_s
                if per_call * calls >= block_s / 4 or calls >= MOST_CALLS:
                    break
                calls = min(calls * 4, MOST_CALLS)
            # a busy moment makes calls look long, and blocks built on that would be short
            if per_call < LONG_CALL_S:
                per_call = min(per_call, *(self._time(timed, calls).wall_s for _ in range(2)))
        timed.per_call = per_call
        timed.calls = max(_calls_for(block_s * 1.03, per_call), min(FEWEST_CALLS, _calls_for(MOST_BLOCK_S, per_call)))
        timed.lead = _calls_for(LEAD_S, per_call) if per_call < LONG_CALL_S else 0

    def _back_to_back(self, plan: Plan, budget: float) -> str:
        began = told = perf_counter()
        least = min(1.5, budget / 2)
        while True:
            self._pair()
            now = perf_counter()
            if now - told >= CHUNK_S:
                self._tell()
                if now - began >= least and self._is_narrow(plan.interval):
                    return "interval"
                gc.collect(0)
                told = perf_counter()
            if self._voids >= VOIDS_IN_A_ROW and now - self._void_since >= VOID_S:
                self._warn_of_voids()
                return self._finish("budget")
            if now - began >= budget and (len(self._pairs[0]) >= 2 or now - began >= 3 * budget):
                return self._finish("budget")

    def _finish(self, stop: str) -> str:
        self._tell()
        return stop

    def _pair(self) -> None:
        """One block of each side, one right after the other."""
        blocks, reasons = [], []
        for timed in self._timed:
            before, scale = self._compiles_seen(), _scale(timed.side)
            with timed.side.ready():
                for _ in range(timed.lead):
                    timed.call()
                block = self._full_block(timed)
            blocks.append(block)
            timed.seconds.append(block.seconds)
            timed.wall_s.append(block.wall_s)
            timed.counts.append(block.calls)
            reasons.append(_fault(timed.side, self._compiles_seen() - before, scale))
        self._judge(blocks, reasons)
        self._block += 1

    def _full_block(self, timed: Timed) -> Block:
        """A block that was planned on too slow a moment is made longer, now and for the next ones."""
        block = self._time(timed, timed.calls)
        while block.wall_s * block.calls < self._clock.block_s:
            timed.calls = _calls_for(self._clock.block_s * 1.03, block.wall_s)
            more = self._time(timed, max(timed.calls - block.calls, 1))
            block = joined(block, more)
        return block

    def _judge(self, blocks: Sequence[Block], reasons: Sequence[str]) -> None:
        if any(reasons):
            if not self._voids:
                self._void_since, self._void_compiles = perf_counter(), False
            self._voids += 1
            self._void_compiles |= any("compiled again" in reason for reason in reasons)
            for timed, reason in zip(self._timed, reasons, strict=True):
                if reason:
                    self._emit(Void(block=self._block, side=timed.side.name, reason=reason))
            return
        self._voids = 0
        for timed, block in zip(self._timed, blocks, strict=True):
            timed.keep(block.each_s, self._rng)
        if all(block.seconds > 0 for block in blocks):
            for series, block in zip(self._pairs, (blocks[0], blocks[-1]), strict=True):
                series.append(block.seconds)

    def _time(self, timed: Timed, calls: int) -> Block:
        return self._clock.time(timed.call, calls, timed.side.synchronize, each=self._each)

    def _tell(self) -> None:
        for timed in self._timed:
            if timed.seconds:
                self._emit(self._chunk(timed, "back_to_back", self._told))
                timed.seconds, timed.wall_s, timed.counts = [], [], []
        self._told = self._block

    def _tell_latencies(self) -> None:
        """Those of the calls that blocks told one by one."""
        for timed in self._timed:
            for first in range(0, len(timed.latencies), LATENCIES_AT_ONCE):
                timed.seconds = timed.latencies[first : first + LATENCIES_AT_ONCE]
                self._emit(self._chunk(timed, "latency", first))
            timed.seconds = []

    def _chunk(self, timed: Timed, measure: str, block: int) -> Samples:
        return Samples(
            side=timed.side.name,
            shape=self._shape,
            block=block,
            measure=measure,
            clock=self._clock.name if measure == "back_to_back" else "wall",
            seconds=tuple(timed.seconds),
            wall_s=tuple(timed.wall_s) if self._shows_wall and measure == "back_to_back" else (),
            calls=tuple(timed.counts),
        )

    def _is_narrow(self, interval: float) -> bool:
        pairs = len(self._pairs[0])
        # each question reads all pairs, and some percent more of them hardly change the answer
        if pairs < max(FEWEST_PAIRS, 1.05 * self._asked_at):
            return False
        self._asked_at = pairs
        eager, compiled = self._pairs
        half_width = expected_half_width(Pairs(eager=eager, compiled=compiled, clock=self._clock.name))
        return half_width is not None and half_width <= interval

    def _latency(self, budget: float) -> None:
        """Calls that are waited for one by one, in alternating blocks, until the time or the count is reached."""
        began = perf_counter()
        counts = [0 for _ in self._timed]
        while perf_counter() - began < budget and min(counts) < MOST_LATENCIES:
            for index, timed in enumerate(self._timed):
                calls = min(timed.calls, LATENCIES_AT_ONCE)
                self._time_each(timed, calls)
                self._emit(self._chunk(timed, "latency", counts[index]))
                counts[index] += calls
                timed.seconds = []

    def _time_each(self, timed: Timed, calls: int) -> None:
        clock, call, wait = perf_counter, timed.call, timed.side.synchronize
        flush, flushes = self._clock.flush, self._clock.flushes
        with timed.side.ready():
            for _ in range(min(timed.lead, calls)):
                call()
            wait()
            for _ in range(calls):
                if flushes:
                    flush()
                    wait()
                began = clock()
                call()
                wait()
                timed.seconds.append(clock() - began)
        timed.wall_s, timed.counts = [], []

    def _warn_of_voids(self) -> None:
        if not self._void_compiles:
            self._emit(
                Warning(
                    code="no_step_counts",
                    message="The timing was given up: one step after the other was skipped, or its loss not finite.",
                    hint="A step that changes no weight takes another time. Look at the loss, or choose another "
                    "precision.",
                )
            )
            return
        self._emit(
            Warning(
                code="recompiles_while_timed",
                message="The compiled model went on recompiling during the timing, so there is no steady state.",
                hint="The recompiles name the value that changes from call to call.",
            )
        )


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection while this holds; what lives now is left out of later ones."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _calls_for(seconds: float, per_call: float) -> int:
    return max(1, min(math.ceil(seconds / max(per_call, 1e-9)), MOST_CALLS))


def _scale(side: Side) -> float | None:
    return side.scaler.get_scale() if side.scaler is not None else None


def _fault(side: Side, compiles: int, scale: float | None) -> str:
    """Why the block that has just ended does not count; empty where it does."""
    if compiles:
        return f"The {side.name} model compiled again during the block."
    if scale is not None and (_scale(side) or 0.0) < scale:
        return "The gradient scaler skipped an optimizer step."
    if side.last_loss is not None and not bool(torch.isfinite(side.last_loss).all()):
        return "The loss is not finite."
    return ""
