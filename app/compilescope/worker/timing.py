"""Interleaved timing of two sides: time per call back to back, and latency, of the same calls or after them."""

from __future__ import annotations

import collections
import contextlib
import gc
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter  # by name: a script may put a clock of its own in its place

from compilescope.domain.events import Event, Measured, Samples
from compilescope.domain.statistics import Pairs, expected_half_width
from compilescope.worker import noise
from compilescope.worker.blocks import MOST_LATENCIES, Block, Timed, undisturbed
from compilescope.worker.clocks import Clock, clock_for
from compilescope.worker.environment import attempt
from compilescope.worker.filling import Filling
from compilescope.worker.inputs import Inputs
from compilescope.worker.nvml import Card, card_of
from compilescope.worker.state import Undo
from compilescope.worker.steps import Side
from compilescope.worker.voids import Voids, Watch

CHUNK_S = 0.25
FEWEST_PAIRS = 20
LATENCY_SHARE = 0.15
LATENCIES_AT_ONCE = 200
# blocks that wait in the device's queue behind the one that runs
AHEAD = 2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long to time one shape, and how surely. `interval` is a half width relative to the speedup."""

    budget_s: float
    interval: float
    shape: int = 0


@dataclass(frozen=True, kw_only=True)
class Started:
    """A block whose calls have been made. `read` waits for their end."""

    timed: Timed
    watch: Watch
    read: Callable[[], Block]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A block that has ended. `fault`: why it does not count, a kind and a sentence. `mhz`: the GPU's clock."""

    timed: Timed
    block: Block
    fault: tuple[str, str]
    mhz: int | None


class Timer:
    """Times pairs of blocks, eager beside compiled, and tells them in chunks between the blocks.

    `undos`: by side, what makes inputs and state as they were before a call. Where there is one that has something to
    do, each timed call of both sides is alone, with everything put back before it. State must be as it was when they
    were made, and is so in the end.
    """

    def __init__(
        self,
        sides: Sequence[tuple[Side, Inputs]],
        emit: Callable[[Event], None],
        compiles_seen: Callable[[], int],
        first_block: int = 0,
        clock: Clock | None = None,
        undos: Mapping[str, Undo] | None = None,
        card: Card | None = None,
    ) -> None:
        known = undos or {}
        self._timed = [
            Timed(side=side, call=side.bound(inputs), undo=known.get(side.name) or None) for side, inputs in sides
        ]
        self._restores = any(timed.undo for timed in self._timed)
        self._emit = emit
        self._compiles_seen = compiles_seen
        self._clock = clock or clock_for(sides[0][0].recipe.device, l2_flush=False)
        self._card = card or attempt(lambda: card_of(sides[0][0].recipe.device), None)
        self._block = first_block
        self._told = first_block
        self._shape = 0
        self._pairs: tuple[list[float], list[float]] = ([], [])
        self._voids = Voids(emit)
        self._filling = Filling(self._clock, restores=self._restores)
        self._ahead = 0
        self._started: collections.deque[Started] = collections.deque()
        self._ended: list[Ended] = []
        self._mhz: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
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
        return self._clock.name != "wall" and not self._clock.flushes and not self._ahead

    @property
    def _queued(self) -> bool | None:
        return self._ahead > 0 if self._clock.name == "cuda_event" else None

    def run(self, plan: Plan) -> None:
        """Time until the interval is narrow enough or the budget is spent."""
        self._shape = plan.shape
        with undisturbed(), self._put_back():
            self._filling.calibrate(self._timed)
            self._ahead = AHEAD if self._filling.can_queue(self._timed) else 0
            share = 0.0 if self._filling.each else LATENCY_SHARE
            stop = self._back_to_back(plan, plan.budget_s * (1 - share))
            self._tell_latencies()
            self._emit(
                Measured(
                    shape=plan.shape,
                    stop=stop,
                    l2_flush=self._l2_flush,
                    restored=self._restores,
                    queued=self._queued,
                )
            )
            for doubt in noise.wandering(self._mhz["eager"], self._mhz["compiled"]):
                self._emit(doubt)
            if not self._filling.each:
                self._latency(plan.budget_s * share)

    @contextlib.contextmanager
    def _put_back(self) -> Iterator[None]:
        """What comes after the timing sees what the first timed call saw."""
        try:
            yield
        finally:
            for timed in self._timed:
                timed.restore()

    def _back_to_back(self, plan: Plan, budget: float) -> str:
        began = told = perf_counter()
        least = min(1.5, budget / 2)
        while True:
            self._pair()
            now = perf_counter()
            if now - told >= CHUNK_S:
                self._tell()
                if now - began >= least and self._is_narrow(plan.interval):
                    return self._finish("interval")
                gc.collect(0)
                told = perf_counter()
            if self._voids.are_too_many:
                self._voids.tell()
                return self._finish("budget")
            if now - began >= budget and (len(self._pairs[0]) >= 2 or now - began >= 3 * budget):
                return self._finish("budget")

    def _finish(self, stop: str) -> str:
        while self._started:
            self._end()
        self._tell()
        return stop

    def _pair(self) -> None:
        """One block of each side, one right after the other; those are judged that have ended."""
        for timed in self._timed:
            self._start(timed)
            while len(self._started) > self._ahead:
                self._end()

    def _start(self, timed: Timed) -> None:
        watch = Watch(timed.side, self._compiles_seen)
        with timed.side.ready():
            for _ in range(timed.lead):
                timed.restore()
                timed.call()
            if self._ahead:
                read = self._clock.queue(timed.call, timed.calls)
            else:
                block = self._filling.full_block(timed)
                read = lambda: block  # noqa: E731 - a block that has ended
        watch.end()
        self._started.append(Started(timed=timed, watch=watch, read=read))

    def _end(self) -> None:
        """Wait for the oldest block that was started; with the last of a pair, the pair is judged."""
        started = self._started.popleft()
        timed = started.timed
        # a queued block runs now, another one has just ended; the question takes some microseconds
        mhz = self._card.clock_mhz() if self._card else None
        block = started.read()
        if self._ahead:
            self._filling.learn(timed, block)
        timed.restore()
        self._ended.append(Ended(timed=timed, block=block, fault=started.watch.fault(timed.undo), mhz=mhz))
        if len(self._ended) == len(self._timed):
            self._judge()

    def _judge(self) -> None:
        ended, self._ended = self._ended, []
        for one in ended:
            one.timed.seconds.append(one.block.seconds)
            one.timed.wall_s.append(one.block.wall_s)
            one.timed.counts.append(one.block.calls)
            one.timed.mhz.append(one.mhz)
        counts = self._voids.take(self._block, [(one.timed.side, one.fault) for one in ended])
        self._block += 1
        if not counts:
            return
        for one in ended:
            one.timed.keep(one.block.each_s, self._rng)
            self._mhz[one.timed.side.name] += [one.mhz] if one.mhz else []
        if all(one.block.seconds > 0 for one in ended):
            for series, one in zip(self._pairs, (ended[0], ended[-1]), strict=True):
                series.append(one.block.seconds)

    def _tell(self) -> None:
        for timed in self._timed:
            if timed.seconds:
                self._emit(self._chunk(timed, "back_to_back", self._told))
                timed.forget()
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
            clock_mhz=tuple(mhz for mhz in timed.mhz if mhz) if all(timed.mhz) else (),
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
