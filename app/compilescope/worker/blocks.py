"""A block of timed calls."""

from __future__ import annotations

from dataclasses import dataclass


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
