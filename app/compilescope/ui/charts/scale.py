"""The unit in which a chart shows times: one whose numbers are short."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TimeUnit:
    """`per_second`: what a value in seconds is multiplied by."""

    name: str
    per_second: float


UNITS = (
    TimeUnit(name="s", per_second=1.0),
    TimeUnit(name="ms", per_second=1e3),
    TimeUnit(name="µs", per_second=1e6),
    TimeUnit(name="ns", per_second=1e9),
)


def unit_for(seconds: float) -> TimeUnit:
    """The largest unit in which such a time is at least one."""
    return next((unit for unit in UNITS if seconds * unit.per_second >= 1), UNITS[-1] if seconds > 0 else UNITS[1])
