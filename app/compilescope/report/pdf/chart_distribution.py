"""How the times of both sides spread: a histogram and a box for each, on one axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from compilescope.domain import statistics, units
from compilescope.report.blocks import DistributionChart
from compilescope.report.numbers import TIMES
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import TICK_ROOM, Axis, line
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

HISTOGRAM = 34.0
BOX = 14.0
LEFT = 92.0
BINS = 72


def distribution_piece(chart: DistributionChart, fonts: Fonts, width: float) -> Piece:
    sides = (("Eager", chart.eager, look.EAGER), ("Compiled", chart.compiled, look.COMPILED))
    body = 2 * (HISTOGRAM + BOX + 4.0)
    low, high = _range(chart)
    factor, unit = next(((factor, unit) for factor, unit in TIMES if high >= factor), TIMES[-1])
    beyond = sum(value > high for value in (*chart.eager, *chart.compiled))

    def draw(painter: QPainter, x: float, y: float) -> None:
        axis = Axis(low, high, x + LEFT, x + width)
        axis.draw(painter, fonts, QRectF(x + LEFT, y, width - LEFT, body), f"{unit} per call", factor)
        for index, (name, values, color) in enumerate(sides):
            top = y + index * (HISTOGRAM + BOX + 4.0)
            TextBox(name, fonts.small_bold).draw(painter, x, top + HISTOGRAM - 14.0, look.TEXT)
            _histogram(painter, axis, values, QRectF(x + LEFT, top, width - LEFT, HISTOGRAM), color)
            _box(painter, axis, values, top + HISTOGRAM + BOX / 2 + 1.0, color)
        if beyond:
            note = TextBox(f"{units.plural(beyond, 'slower block')} beyond the axis", fonts.tiny)
            note.draw(painter, x + LEFT, y + body + 10.5, look.MUTED)

    return Piece(height=body + TICK_ROOM + (8.0 if beyond else 0.0), draw=draw)


def _range(chart: DistributionChart) -> tuple[float, float]:
    """All but the slowest hundredth, which would press the rest into a corner."""
    lows = [min(values) for values in (chart.eager, chart.compiled)]
    highs = [min(max(values), 1.3 * statistics.quantile(values, 0.99)) for values in (chart.eager, chart.compiled)]
    low, high = min(lows), max(highs)
    room = 0.04 * (high - low) or 0.05 * high
    return max(low - room, 0.0), high + room


def _histogram(painter: QPainter, axis: Axis, values: Sequence[float], area: QRectF, color: str) -> None:
    counts = [0] * BINS
    for value in values:
        if axis.low <= value <= axis.high:
            counts[min(int((value - axis.low) / (axis.high - axis.low) * BINS), BINS - 1)] += 1
    tallest = max(counts)
    if not tallest:
        return
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(color))
    step, scale = area.width() / BINS, (area.height() - 4.0) / tallest
    for start, heights in _stretches(counts):
        # the outline in one piece: bars side by side would show seams
        left = area.left() + start * step
        points = [QPointF(left, area.bottom())]
        for index, count in enumerate(heights):
            top = area.bottom() - count * scale
            points += [QPointF(left + index * step, top), QPointF(left + (index + 1) * step, top)]
        points.append(QPointF(left + len(heights) * step, area.bottom()))
        painter.drawPolygon(QPolygonF(points))


def _stretches(counts: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Runs of bins that hold something: the first bin of each, and its counts."""
    for filled, group in itertools.groupby(enumerate(counts), key=lambda pair: pair[1] > 0):
        pairs = list(group)
        if filled:
            yield pairs[0][0], [count for _, count in pairs]


def _box(painter: QPainter, axis: Axis, values: Sequence[float], y: float, color: str) -> None:
    p05, p25, p50, p75, p95 = (axis.x(statistics.quantile(values, share)) for share in (0.05, 0.25, 0.5, 0.75, 0.95))
    line(painter, p05, y, p95, y, color, 0.8)
    for end in (p05, p95):
        line(painter, end, y - 2.5, end, y + 2.5, color, 0.8)
    painter.setPen(QPen(QColor(color), 0.8))
    painter.setBrush(QColor("#ffffff"))
    painter.drawRect(QRectF(p25, y - 4.0, max(p75 - p25, 0.6), 8.0))
    line(painter, p50, y - 4.0, p50, y + 4.0, color, 1.6)
