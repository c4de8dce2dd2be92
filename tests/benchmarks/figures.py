"""How a benchmark tells its figures: one line each, against its target, and an exit status."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measured value and the most that it may be; no target where it is only told."""

    name: str
    value: float
    unit: str
    most: float | None = None

    @property
    def holds(self) -> bool:
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        text = f"{self.name:<52} {self.value:10.2f} {self.unit:<4}"
        if self.most is None:
            return text
        return f"{text} at most {self.most:g} {self.unit}: {'pass' if self.holds else 'FAIL'}"


def report(title: str, figures: Sequence[Figure]) -> int:
    """Print the figures; the exit status."""
    print(title)
    for figure in figures:
        print("  " + str(figure).rstrip())
    return 0 if all(figure.holds for figure in figures) else 1


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile of values, the next larger one."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
