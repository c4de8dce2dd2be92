"""Figures for a column of a table: one unit and one number of decimals for all, so that they compare down the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compilescope.domain import units

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
SIZES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def times(values: Sequence[float | None]) -> tuple[str, list[str]]:
    """The unit and the texts of seconds."""
    return _scaled(values, TIMES)


def sizes(values: Sequence[float | None]) -> tuple[str, list[str]]:
    """The unit and the texts of bytes."""
    return _scaled(values, SIZES)


# by the unit of a kind of figures
SCALED = {"s": times, "B": sizes}


def ratios(values: Sequence[float | None], half_widths: Sequence[float | None]) -> int:
    """The decimals that speedups of such uncertainty carry, the same for all of a column."""
    known = sorted(half for half, value in zip(half_widths, values, strict=True) if half and value)
    if not known:
        return 2
    return min(max(1 - math.floor(math.log10(known[len(known) // 2])), 1), 3)


def _scaled(values: Sequence[float | None], scales: Sequence[tuple[float, str]]) -> tuple[str, list[str]]:
    known = sorted(abs(value) for value in values if value)
    middle = known[len(known) // 2] if known else 1.0
    factor, unit = next(((factor, unit) for factor, unit in scales if middle >= factor), scales[-1])
    return unit, _texts([None if value is None else value / factor for value in values])


def _texts(values: Sequence[float | None], digits: int = 3) -> list[str]:
    known = [abs(value) for value in values if value]
    if not known:
        return ["–" if value is None else "0" for value in values]
    # three digits for the middle one and for smaller ones too, while they do not make the others absurd
    middle = sorted(known)[len(known) // 2]
    decimals = max(_decimals(middle, digits), min(_decimals(min(known), digits), 3), 0)
    return ["–" if value is None else _text(value, decimals) for value in values]


def _decimals(value: float, digits: int) -> int:
    return digits - 1 - math.floor(math.log10(value))


def _text(value: float, decimals: int) -> str:
    if decimals == 0:
        return units.count(value)
    whole, _, rest = f"{value:.{decimals}f}".partition(".")
    sign = "−" if whole.startswith("-") else ""
    return f"{sign}{units.count(int(whole.lstrip('-')))}.{rest}"
