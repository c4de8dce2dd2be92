"""Time per call of both sides over the sizes of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from compilescope.report.blocks import SweepChart
from compilescope.report.numbers import TIMES
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import line, round_step, spread, tick_labels
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

HEIGHT, LEFT, GAP = 110.0, 40.0, 6.0
RADIUS = 2.6


def sweep_piece(chart: SweepChart, fonts: Fonts, width: float) -> Piece:
    highest = max(value for side in (chart.eager, chart.compiled) for value in side if value) * 1.05
    factor, unit = next(((factor, unit) for factor, unit in TIMES if highest >= factor), TIMES[-1])
    sides = (("eager", chart.eager, look.EAGER), ("compiled", chart.compiled, look.COMPILED))
    ends = [TextBox(name, fonts.small_bold) for name, _, _ in sides]
    right = width - max(end.width for end in ends) - GAP
    step = (right - LEFT) / len(chart.sizes)
    sizes = [TextBox(text, fonts.tiny, step - GAP) for text in chart.sizes]

    def draw(painter: QPainter, x: float, y: float) -> None:
        area = QRectF(x + LEFT, y, right - LEFT, HEIGHT)
        _vertical(painter, fonts, area, highest / factor, unit)
        for index, text in enumerate(sizes):
            text.draw(painter, area.left() + (index + 0.5) * step - text.width / 2, area.bottom() + 2.0, look.MUTED)
        lines = [_points(values, area, step, highest) for _, values, _ in sides]
        names = spread([points[-1].y() if points else area.bottom() for points in lines])
        for (_, _, color), points, end, at in zip(sides, lines, ends, names, strict=True):
            painter.setPen(QPen(QColor(color), 1.4))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(points)
            painter.setBrush(QColor(color))
            for point in points:
                _mark(painter, point, color)
            end.draw(painter, area.right() + GAP, at - end.height / 2, color)

    return Piece(height=HEIGHT + max(text.height for text in sizes) + 4.0, draw=draw)


def _points(values: Sequence[float | None], area: QRectF, step: float, highest: float) -> list[QPointF]:
    return [
        QPointF(area.left() + (index + 0.5) * step, area.bottom() - value / highest * area.height())
        for index, value in enumerate(values)
        if value is not None
    ]


def _mark(painter: QPainter, point: QPointF, color: str) -> None:
    """A circle for eager, a square for compiled, so that the colour is never the only sign."""
    if color == look.EAGER:
        painter.drawEllipse(point, RADIUS, RADIUS)
    else:
        painter.drawRect(QRectF(point.x() - RADIUS, point.y() - RADIUS, 2 * RADIUS, 2 * RADIUS))


def _vertical(painter: QPainter, fonts: Fonts, area: QRectF, highest: float, unit: str) -> None:
    step = round_step(highest / 4)
    ticks = [step * index for index in range(int(highest / step) + 1)]
    for value, label in zip(ticks, tick_labels(ticks), strict=True):
        y = area.bottom() - value / highest * area.height()
        line(painter, area.left(), y, area.right(), y, look.HAIRLINE, 0.5)
        box = TextBox(f"{label} {unit}" if value == ticks[-1] else label, fonts.tiny)
        box.draw(painter, area.left() - box.width - 4.0, y - box.height / 2, look.MUTED)
