"""How a block of calls is timed: by the wall clock, by CUDA events, or by CUDA events around each call."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter  # by name: a script may put a clock of its own in its place
from typing import Any, Protocol

import torch

from compilescope.worker.blocks import Block
from compilescope.worker.environment import attempt

# where the size of the cache is not told: as much as triton.testing.do_bench writes
UNKNOWN_CACHE_BYTES = 256 * 2**20


class Clock(Protocol):
    """Times `calls` calls, one after the other; `synchronize` waits for the device. `name` is the samples' clock."""

    name: str
    flushes: bool

    def time(self, call: Callable[[], Any], calls: int, synchronize: Callable[[], None]) -> Block: ...

    def flush(self) -> None:
        """Before a call that is timed by itself."""


class WallClock:
    """For the CPU, where a call has ended when it returns. `read`: the time now, in seconds."""

    name, flushes = "wall", False

    def __init__(self, read: Callable[[], float] = perf_counter) -> None:
        self._read = read

    def time(self, call: Callable[[], Any], calls: int, synchronize: Callable[[], None]) -> Block:
        rounds, read = range(calls), self._read
        synchronize()
        began = read()
        for _ in rounds:
            call()
        took = (read() - began) / calls
        return Block(seconds=took, wall_s=took, calls=calls)

    def flush(self) -> None:
        return


class EventClock:
    """CUDA events around the whole block: what a loop or a busy server gets, with the wall clock beside it."""

    name, flushes = "cuda_event", False

    def time(self, call: Callable[[], Any], calls: int, synchronize: Callable[[], None]) -> Block:
        rounds = range(calls)
        start, end = _event(), _event()
        synchronize()
        began = perf_counter()
        start.record()
        for _ in rounds:
            call()
        end.record()
        synchronize()
        wall = (perf_counter() - began) / calls
        return Block(seconds=start.elapsed_time(end) / 1e3 / calls, wall_s=wall, calls=calls)

    def flush(self) -> None:
        return


class FlushedEventClock:
    """CUDA events around each call, and before each a write over the whole L2 cache, as triton.testing.do_bench does.

    The write is outside of the events, and in `wall_s`, which then says how long a block takes and no more.
    """

    name, flushes = "cuda_event", True

    def __init__(self, device: torch.device) -> None:
        size = attempt(lambda: int(torch.cuda.get_device_properties(device).L2_cache_size), 0)
        self._buffer = torch.empty((size or UNKNOWN_CACHE_BYTES) // 4, dtype=torch.int32, device=device)

    def time(self, call: Callable[[], Any], calls: int, synchronize: Callable[[], None]) -> Block:
        pairs = [(_event(), _event()) for _ in range(calls)]
        write = self._buffer.zero_
        synchronize()
        began = perf_counter()
        for start, end in pairs:
            write()
            start.record()
            call()
            end.record()
        synchronize()
        wall = (perf_counter() - began) / calls
        seconds = sum(start.elapsed_time(end) for start, end in pairs) / 1e3 / calls
        return Block(seconds=seconds, wall_s=wall, calls=calls)

    def flush(self) -> None:
        self._buffer.zero_()


def clock_for(device: torch.device, *, l2_flush: bool) -> Clock:
    """The clock of a device. Only CUDA has an L2 cache that can be flushed, and events that leave the flush out."""
    if device.type != "cuda":
        return WallClock()
    return FlushedEventClock(device) if l2_flush else EventClock()


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
