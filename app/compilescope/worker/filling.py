"""How many calls fill a block of a clock, how many lead it in, and whether blocks can follow each other in a queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter  # by name: a script may put a clock of its own in its place

from compilescope.domain.statistics import median
from compilescope.worker.blocks import Block, Timed, joined
from compilescope.worker.clocks import Clock

LEAD_S = 0.001
# calls of a block, so that the slow first ones do not decide its median, as long as a block stays as short as this
FEWEST_CALLS, MOST_BLOCK_S = 5, 0.020
# a call that fills a block many times over by itself, whatever went before it
LONG_CALL_S = 1.0
MOST_CALLS = 1_000_000
# where each call is alone, how long a block may take with all that puts inputs and state back
MOST_ALONE_S = 0.25
# blocks are queued where the host needs no more than this share of a call's time to launch it: behind another block it
# would hide launches that a loop has to wait for, and be faster than the loop. Beside blocks longer than this a pause
# is nothing
MOST_LAUNCH_SHARE, MOST_QUEUED_S = 0.7, 0.1
LAUNCHES = 5


class Filling:
    """Blocks of one clock. `restores`: each call is alone, with inputs and state put back before it."""

    def __init__(self, clock: Clock, *, restores: bool) -> None:
        self._clock = clock
        self._restores = restores
        self._each = restores

    @property
    def each(self) -> bool:
        """Whether calls are told one by one."""
        return self._each

    def calibrate(self, sides: Sequence[Timed]) -> None:
        """How many calls fill a block, and how many the first millisecond."""
        self._each = self._restores
        for timed in sides:
            with timed.side.ready():
                self._calibrate(timed)
        self._each = self._restores or all(timed.per_call >= self._clock.each_from_s for timed in sides)

    def can_queue(self, sides: Sequence[Timed]) -> bool:
        """Whether blocks that follow each other without a pause are worth what a loop gets, and need no wait."""
        if self._each or not self._clock.queues:
            return False
        return all(
            timed.launch_s <= MOST_LAUNCH_SHARE * timed.per_call
            and timed.per_call * timed.calls <= MOST_QUEUED_S
            # whether a step was skipped is known on the device alone
            and timed.side.scaler is None
            for timed in sides
        )

    def time(self, timed: Timed, calls: int) -> Block:
        restore = timed.restore if self._restores else None
        return self._clock.time(timed.call, calls, timed.side.synchronize, each=self._each, restore=restore)

    def full_block(self, timed: Timed) -> Block:
        """A block that was planned on too slow a moment is made longer, now and for the next ones."""
        began = perf_counter()
        block = self.time(timed, timed.calls)
        if self._restores:
            if block.wall_s * block.calls < self._clock.block_s:
                timed.calls = self._planned(block.wall_s, (perf_counter() - began) / block.calls)
            return block
        while block.wall_s * block.calls < self._clock.block_s:
            timed.calls = _calls_for(self._clock.block_s * 1.03, block.wall_s)
            block = joined(block, self.time(timed, max(timed.calls - block.calls, 1)))
        return block

    def learn(self, timed: Timed, block: Block) -> None:
        """Where a block was queued, the next ones are longer if it was too short; how long the writes over a cache took
        is not known there."""
        if not self._clock.flushes and block.seconds * block.calls < self._clock.block_s:
            timed.calls = _calls_for(self._clock.block_s * 1.03, block.seconds)

    def _calibrate(self, timed: Timed) -> None:
        calls = 1
        while True:
            per_call, whole = self._try(timed, calls)
            longest = max(per_call, whole) if self._restores else per_call
            if longest * calls >= self._clock.block_s / 4 or calls >= MOST_CALLS:
                break
            calls = min(calls * 4, MOST_CALLS)
        # a busy moment makes calls look long, and blocks built on that would be short
        if per_call < LONG_CALL_S:
            tries = [self._try(timed, calls) for _ in range(2)]
            per_call, whole = (min(found) for found in zip((per_call, whole), *tries, strict=True))
        timed.per_call = per_call
        timed.calls = self._planned(per_call, whole)
        timed.lead = _calls_for(LEAD_S, per_call) if per_call < LONG_CALL_S else 0
        if self._restores:
            # after a wait and a restore, no call leads in another one
            timed.lead = min(timed.lead, 1)
        elif self._clock.queues:
            timed.launch_s = _launch_s(timed)

    def _try(self, timed: Timed, calls: int) -> tuple[float, float]:
        """Seconds of a call, without and with all that is around it."""
        began = perf_counter()
        per_call = self.time(timed, calls).wall_s
        return per_call, (perf_counter() - began) / calls

    def _planned(self, per_call: float, whole: float) -> int:
        by_clock = _calls_for(self._clock.block_s * 1.03, per_call)
        calls = max(by_clock, min(FEWEST_CALLS, _calls_for(MOST_BLOCK_S, per_call)))
        return min(calls, _calls_for(MOST_ALONE_S, whole)) if self._restores else calls


def _launch_s(timed: Timed) -> float:
    """How long a call keeps the host while the device has nothing else to do."""
    took = []
    for _ in range(LAUNCHES):
        timed.side.synchronize()
        began = perf_counter()
        timed.call()
        took.append(perf_counter() - began)
    timed.side.synchronize()
    return median(took)


def _calls_for(seconds: float, per_call: float) -> int:
    return max(1, min(math.ceil(seconds / max(per_call, 1e-9)), MOST_CALLS))
