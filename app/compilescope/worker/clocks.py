"""How a block of calls is timed: by the wall clock, by CUDA events, or by CUDA events around each call."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from time import perf_counter  # by name: a script may put a clock of its own in its place
from typing import Any, Protocol

import torch

from compilescope.domain.statistics import median
from compilescope.worker.blocks import Block
from compilescope.worker.environment import attempt

# what triton.testing.do_bench writes: more than the caches of today's cards, and long enough for the host to run ahead
# of short calls, which would else be timed at the pace of their launches
FLUSH_BYTES = 256 * 2**20
# on a GPU, blocks follow each other without a pause: in one the card rests, and then runs at a higher clock than under
# steady load (seen on an H200: a product in fp32 1 % faster than by do_bench, which queues a second's calls at once)
QUEUES = True


Call = Callable[[], Any]
Wait = Callable[[], None]


class Clock(Protocol):
    """Times `calls` calls, one after the other; `synchronize` waits for the device. `name` is the samples' clock.

    `block_s`: how long a block should take. `each_from_s`: calls as long as that can be told one by one, each waited
    for, without making a block any longer. `each`: to do so; both sides are timed alike. `restore`: makes everything
    as it was before a call; where it is given each call is alone, between two waits, and the block is worth their
    median. `queues`: whether blocks may follow each other without a pause.
    """

    name: str
    flushes: bool
    queues: bool
    block_s: float
    each_from_s: float

    def time(
        self, call: Call, calls: int, synchronize: Wait, *, each: bool = False, restore: Wait | None = None
    ) -> Block: ...

    def queue(self, call: Call, calls: int) -> Callable[[], Block]:
        """Start a block without waiting for the one before it. What is returned waits for its end, and tells it."""

    def flush(self) -> None:
        """Before a call that is timed by itself."""


class WallClock:
    """For the CPU, where a call has ended when it returns. `read`: the time now, in seconds.

    The speed of a shared processor wanders within some ten milliseconds, and the two sides of a pair of short blocks
    meet more of the same of it: with blocks of three calls of 3 ms instead of seven, equal sides differed by 0.5 to
    0.6 % from process to process instead of 0.6 to 0.8.

    Where calls are told one by one, a block is worth their median: the first calls after the other side's find its data
    in the cache and their own memory given back (seen: the second call of a pointwise model twice as long).
    """

    name, flushes, queues, block_s = "wall", False, False, 0.010
    # reading the clock is nothing beside such a call
    each_from_s = 1e-4

    def __init__(self, read: Callable[[], float] = perf_counter) -> None:
        self._read = read

    def time(
        self, call: Call, calls: int, synchronize: Wait, *, each: bool = False, restore: Wait | None = None
    ) -> Block:
        if restore is not None:
            return self._time_alone(call, calls, synchronize, restore)
        rounds, read = range(calls), self._read
        synchronize()
        if each:
            return self._time_each(call, calls)
        began = read()
        for _ in rounds:
            call()
        took = (read() - began) / calls
        return Block(seconds=took, wall_s=took, calls=calls)

    def _time_each(self, call: Call, calls: int) -> Block:
        read = self._read
        times = [read()]
        for _ in range(calls):
            call()
            times.append(read())
        took = (times[-1] - times[0]) / calls
        told = tuple(after - before for before, after in itertools.pairwise(times))
        return Block(seconds=median(told), wall_s=took, calls=calls, each_s=told)

    def _time_alone(self, call: Call, calls: int, synchronize: Wait, restore: Wait) -> Block:
        read, told = self._read, []
        for _ in range(calls):
            restore()
            synchronize()
            began = read()
            call()
            synchronize()
            told.append(read() - began)
        return Block(seconds=median(told), wall_s=sum(told) / calls, calls=calls, each_s=tuple(told))

    def queue(self, call: Call, calls: int) -> Callable[[], Block]:
        block = self.time(call, calls, lambda: None)
        return lambda: block

    def flush(self) -> None:
        return


class EventClock:
    """CUDA events around the whole block: what a loop or a busy server gets, with the wall clock beside it."""

    name, flushes, block_s = "cuda_event", False, 0.020
    # a block by itself, also when it is half as long for once
    each_from_s = 0.040

    def __init__(self, *, queues: bool = True) -> None:
        self.queues = queues

    def time(
        self, call: Call, calls: int, synchronize: Wait, *, each: bool = False, restore: Wait | None = None
    ) -> Block:
        if restore is not None:
            return _time_alone(call, calls, synchronize, restore)
        synchronize()
        began = perf_counter()
        start, end = self._record(call, calls)
        synchronize()
        wall = (perf_counter() - began) / calls
        told = (wall,) if each and calls == 1 else ()
        return Block(seconds=start.elapsed_time(end) / 1e3 / calls, wall_s=wall, calls=calls, each_s=told)

    def queue(self, call: Call, calls: int) -> Callable[[], Block]:
        start, end = self._record(call, calls)

        def read() -> Block:
            end.synchronize()
            seconds = start.elapsed_time(end) / 1e3 / calls
            return Block(seconds=seconds, wall_s=seconds, calls=calls)

        return read

    def flush(self) -> None:
        return

    @staticmethod
    def _record(call: Call, calls: int) -> tuple[Any, Any]:
        rounds = range(calls)
        start, end = _event(), _event()
        start.record()
        for _ in rounds:
            call()
        end.record()
        return start, end


class FlushedEventClock:
    """CUDA events around each call, and before each a write over the whole L2 cache, as triton.testing.do_bench does.

    The write is outside of the events, and in `wall_s`, which then says how long a block takes and no more. A block is
    worth the median of its calls, as do_bench's result is: the card's clock moves in steps, and a mean over some calls
    lies between two of them. Nor does the block begin with a wait, after which the first calls are slower. (On an H200
    below its power limit the medians of both agreed within 0.1 %, where means after a wait gave 0.5 % more.)
    """

    name, flushes, block_s = "cuda_event", True, 0.020
    each_from_s = math.inf

    def __init__(self, device: torch.device, *, queues: bool = True) -> None:
        self.queues = queues
        cache = attempt(lambda: int(torch.cuda.get_device_properties(device).L2_cache_size), 0)

        def buffer(size: int) -> torch.Tensor:
            return torch.empty(size // 4, dtype=torch.int32, device=device)

        try:
            self._buffer = buffer(max(cache, FLUSH_BYTES))
        except RuntimeError:
            # the card is nearly full; what the cache holds is enough for all but short calls
            if not cache:
                raise
            self._buffer = buffer(cache)

    def time(
        self,
        call: Call,
        calls: int,
        synchronize: Wait,
        *,
        each: bool = False,  # noqa: ARG002 - with a flush before each call, none is as long as by itself
        restore: Wait | None = None,
    ) -> Block:
        if restore is not None:
            return _time_alone(call, calls, synchronize, restore, self.flush)
        began = perf_counter()
        pairs = self._record(call, calls)
        synchronize()
        wall = (perf_counter() - began) / calls
        return Block(seconds=_median_s(pairs), wall_s=wall, calls=calls)

    def queue(self, call: Call, calls: int) -> Callable[[], Block]:
        pairs = self._record(call, calls)

        def read() -> Block:
            pairs[-1][1].synchronize()
            seconds = _median_s(pairs)
            return Block(seconds=seconds, wall_s=seconds, calls=calls)

        return read

    def _record(self, call: Call, calls: int) -> list[tuple[Any, Any]]:
        pairs = [(_event(), _event()) for _ in range(calls)]
        write = self._buffer.zero_
        for start, end in pairs:
            write()
            start.record()
            call()
            end.record()
        return pairs

    def flush(self) -> None:
        self._buffer.zero_()


def clock_for(device: torch.device, *, l2_flush: bool, queue: bool | None = None) -> Clock:
    """The clock of a device. Only CUDA has an L2 cache that can be flushed, events that leave the flush out, and a
    queue. `queue`: whether blocks follow each other without a pause; None for the device's default."""
    if device.type != "cuda":
        return WallClock()
    queues = QUEUES if queue is None else queue
    return FlushedEventClock(device, queues=queues) if l2_flush else EventClock(queues=queues)


def _time_alone(call: Call, calls: int, synchronize: Wait, *before: Wait) -> Block:
    """Each call by events of its own, after a wait for what goes before it: behind that its launches would hide."""
    start, end = _event(), _event()
    told, waited = [], []
    for _ in range(calls):
        for prepare in before:
            prepare()
        synchronize()
        began = perf_counter()
        start.record()
        call()
        end.record()
        synchronize()
        waited.append(perf_counter() - began)
        told.append(start.elapsed_time(end) / 1e3)
    return Block(seconds=median(told), wall_s=sum(waited) / calls, calls=calls, each_s=tuple(waited))


def _median_s(pairs: Sequence[tuple[Any, Any]]) -> float:
    return median([start.elapsed_time(end) for start, end in pairs]) / 1e3


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
