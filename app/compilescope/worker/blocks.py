"""Blocks of timed calls, the side that they are of, and what keeps the interpreter away from them."""

from __future__ import annotations

import contextlib
import gc
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilescope.worker.state import Undo
from compilescope.worker.steps import Side

MOST_LATENCIES = 2000


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one block took, per call.

    `each_s`: the calls one by one, where each was waited for and the block is none the longer for it; else empty.
    """

    seconds: float
    wall_s: float
    calls: int
    each_s: tuple[float, ...] = ()


def joined(one: Block, two: Block) -> Block:
    """Both as one block."""
    calls = one.calls + two.calls
    return Block(
        seconds=(one.seconds * one.calls + two.seconds * two.calls) / calls,
        wall_s=(one.wall_s * one.calls + two.wall_s * two.calls) / calls,
        calls=calls,
        each_s=one.each_s + two.each_s,
    )


@dataclass(kw_only=True)
class Timed:
    """One side with its fixed inputs, ready to be timed.

    `lead`: calls before the clock starts. `per_call`: about how long one takes, in seconds, and `launch_s` how long it
    keeps the host. `latencies`: a fair choice of the `seen` calls that blocks told one by one, as many as are kept.
    `undo`: what makes inputs and state as they were before a call; None where a call changes nothing.
    """

    side: Side
    call: Callable[[], Any]
    undo: Undo | None = None
    calls: int = 1
    lead: int = 1
    per_call: float = 0.0
    launch_s: float = 0.0
    seconds: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    mhz: list[int | None] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    seen: int = 0

    def forget(self) -> None:
        """Blocks that were told."""
        self.seconds, self.wall_s, self.counts, self.mhz = [], [], [], []

    def restore(self) -> None:
        if self.undo:
            self.undo.put_back()

    def keep(self, each_s: Sequence[float], rng: random.Random) -> None:
        """Reservoir sampling (Vitter 1985, algorithm R): each call that was seen is kept with the same chance."""
        for seconds in each_s:
            self.seen += 1
            if len(self.latencies) < MOST_LATENCIES:
                self.latencies.append(seconds)
            elif (place := rng.randrange(self.seen)) < MOST_LATENCIES:
                self.latencies[place] = seconds


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
