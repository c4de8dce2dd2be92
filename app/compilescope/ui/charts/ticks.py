"""Round numbers along an axis of time."""

from __future__ import annotations

import math
from itertools import pairwise

from compilescope.ui.charts.scale import unit_for


def step_for(span: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10, 20 … that divides a span into at most so many parts."""
    if span <= 0 or most < 1:
        return 1.0
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next((factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9)), 10 * power)


def rounded_up(value: float, parts: int) -> float:
    """The next multiple of a round step, of which there are at most so many up to the value."""
    step = step_for(value, parts)
    return math.ceil(value / step - 1e-9) * step


def ticks(begin: float, end: float, most: int) -> list[float]:
    """Multiples of a round step from `begin` to `end`."""
    step = step_for(end - begin, most)
    first = math.ceil(begin / step - 1e-9)
    last = math.floor(end / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def time_labels(values: list[float]) -> list[str]:
    """Tick texts in one unit for all, as short as the distance of the ticks allows."""
    distance = min((b - a for a, b in pairwise(values)), default=max(values, default=1.0))
    unit = unit_for(max((abs(value) for value in values), default=1.0))
    # ticks a few microseconds apart, seconds from zero, need the finer unit's digits
    decimals = max(0, -math.floor(math.log10(max(distance * unit.per_second, 1e-12)) + 1e-9))
    return [f"{value * unit.per_second:.{decimals}f} {unit.name}" if value else f"0 {unit.name}" for value in values]
