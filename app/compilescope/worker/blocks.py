"""A block of timed calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one block took, per call."""

    seconds: float
    wall_s: float
    calls: int


def joined(one: Block, two: Block) -> Block:
    """Both as one block."""
    calls = one.calls + two.calls
    return Block(
        seconds=(one.seconds * one.calls + two.seconds * two.calls) / calls,
        wall_s=(one.wall_s * one.calls + two.wall_s * two.calls) / calls,
        calls=calls,
    )
