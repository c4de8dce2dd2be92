"""Numbers as people read them: always with a unit, never with more digits than they carry."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_FIGURE = re.compile(r"\d+(\.\d+)?")


def duration(seconds: float | None) -> str:
    """A time with three significant digits: "840 ns", "12.4 ms", "3.21 s", "4 min 10 s", "2 h 5 min"."""
    if seconds is None:
        return "–"
    if seconds < 0:
        return "−" + duration(-seconds)
    if round(seconds) >= 3600:
        hours, rest = divmod(round(seconds / 60), 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    if round(seconds) >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor * 0.9995:
            return f"{significant(seconds / factor)} {unit}"
    return f"{significant(seconds / 1e-9)} ns" if seconds else "0 s"


def clock(seconds: float) -> str:
    """A time that goes on, in whole seconds: "8 s", "2 min 5 s"."""
    return f"{int(seconds)} s" if seconds < 120 else duration(int(seconds))


def duration_range(seconds: Sequence[float]) -> str:
    """The shortest and the longest: "24.6–35.8 ms"; one time alone where they read the same."""
    if not seconds:
        return duration(None)
    low, high = duration(min(seconds)), duration(max(seconds))
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    shares_unit = unit == high.rpartition(" ")[2] and " " not in number
    return f"{number}–{high}" if shares_unit else f"{low} – {high}"


def milliseconds(seconds: float | None) -> str:
    """A time in milliseconds, for columns that are compared down the page."""
    return "–" if seconds is None else significant(seconds * 1e3)


def size(count: int | None) -> str:
    """Bytes in binary units."""
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{significant(value)} {unit}"
        value /= 1024
    return f"{significant(value)} TiB"


def ratio(value: float | None) -> str:
    """A speedup: "1.84×"."""
    return "–" if value is None else f"{value:.3f}×" if 0.9 < value < 1.1 else f"{significant(value)}×"


def speedup(value: float | None, half_width: float | None = None) -> str:
    """A ratio with what it is uncertain by, both to the same digit: "1.84× ± 0.02"."""
    if value is None or half_width is None:
        return ratio(value)
    if half_width > value / 2:
        # digits would claim what nobody knows
        return f"{significant(value, 2)}× (unsettled)"
    if half_width < 0.0005:
        return f"{value:.3f}× ± <0.001"
    decimals = min(max(1 - math.floor(math.log10(half_width)), 0), 3)
    return f"{value:.{decimals}f}× ± {half_width:.{decimals}f}"


def percent(value: float | None) -> str:
    """A share of one: 0.0123 is "1.2 %"."""
    return "–" if value is None else f"{value * 100:.1f} %"


def count(value: int | float | None) -> str:
    """A whole number with narrow spaces between thousands."""
    return "–" if value is None else f"{round(value):,}".replace(",", "\u202f")


def plural(number: int, noun: str, many: str = "") -> str:
    """ "1 graph break", "3 graph breaks"."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never in exponent form."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    whole = len(str(int(abs(rounded)))) if abs(rounded) >= 1 else 0
    if whole:
        return f"{rounded:.{max(digits - whole, 0)}f}"
    decimals = digits
    probe = abs(rounded)
    while probe < 0.1:
        probe *= 10
        decimals += 1
    return f"{rounded:.{decimals}f}"


def without_figures(text: str) -> str:
    """What two messages have in common that differ in their figures alone."""
    return _FIGURE.sub("#", text)
