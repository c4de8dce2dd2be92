"""Axes of the printed charts: round ticks, one unit, thin lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from compilescope.report.pdf import look
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

TICK_ROOM = 14.0


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: values from `low` to `high` on points from `left` to `right`."""

    low: float
    high: float
    left: float
    right: float

    def x(self, value: float) -> float:
        # an axis of one value has it at its left end
        return self.left + (value - self.low) / ((self.high - self.low) or 1.0) * (self.right - self.left)

    def ticks(self, about: int = 6) -> list[float]:
        """Round values within the axis."""
        step = round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]

    def draw(self, painter: QPainter, fonts: Fonts, area: QRectF, unit: str, factor: float = 1.0) -> None:
        """Grid lines through `area`, and the tick labels below it; a value's label is the value over `factor`."""
        scaled = Axis(self.low / factor, self.high / factor, self.left, self.right)
        ticks = scaled.ticks()
        labels = tick_labels(ticks)
        if unit and labels:
            labels[-1] += unit if unit == "×" else f" {unit}"
        for value, label in zip(ticks, labels, strict=True):
            x = scaled.x(value)
            line(painter, x, area.top(), x, area.bottom(), look.HAIRLINE, 0.5)
            box = TextBox(label, fonts.tiny)
            box.draw(painter, min(x - box.width / 2, self.right - box.width), area.bottom() + 2.0, look.MUTED)


def round_step(rough: float) -> float:
    """The round number (1, 2 or 5 and zeros) at or above `rough`."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.9999)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """All with the decimals that tell them apart."""
    if len(ticks) < 2:
        return [f"{value:g}" for value in ticks]
    step = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:.{decimals}f}" if abs(value) < 1e4 else f"{value:,.0f}".replace(",", "\u202f") for value in ticks]


def line(painter: QPainter, x1: float, y1: float, x2: float, y2: float, color: str, width: float) -> None:
    painter.setPen(QPen(QColor(color), width))
    painter.drawLine(QPointF(x1, y1), QPointF(x2, y2))


def spread(positions: list[float], least: float = 10.0) -> list[float]:
    """Positions of labels, moved apart where they would cover each other."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    found = list(positions)
    for before, after in itertools.pairwise(order):
        found[after] = max(found[after], found[before] + least)
    return found
