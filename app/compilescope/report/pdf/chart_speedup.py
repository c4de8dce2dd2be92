"""Speedups with their intervals, a row a configuration."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from compilescope.domain import units, words
from compilescope.domain.comparison import shown_range
from compilescope.domain.statistics import Interval
from compilescope.report.blocks import SpeedupBar, SpeedupChart
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import TICK_ROOM, Axis, line
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

ROW = 14.0
LABELS = 0.36
GAP = 10.0
RADIUS = 3.0


def speedup_piece(chart: SpeedupChart, fonts: Fonts, width: float) -> Piece:
    labels = [
        TextBox(bar.label, fonts.small_bold if bar.is_chosen else fonts.small, LABELS * width, right=True)
        for bar in chart.bars
    ]
    results = [TextBox(_result(bar), fonts.small_bold if bar.is_chosen else fonts.small) for bar in chart.bars]
    heights = [max(ROW, label.height + 4.0) for label in labels]
    left = max(label.width for label in labels) + GAP
    right = width - max(result.width for result in results) - GAP
    body = sum(heights)

    def draw(painter: QPainter, x: float, y: float) -> None:
        axis = _axis(chart, x + left, x + right)
        axis.draw(painter, fonts, QRectF(x + left, y, right - left, body), "×")
        line(painter, axis.x(1.0), y - 2.0, axis.x(1.0), y + body, look.TEXT, 0.9)
        top = y
        for bar, label, result, height in zip(chart.bars, labels, results, heights, strict=True):
            middle = top + height / 2
            # the box is set to the right of its whole width, and its text may be narrower
            label.draw(painter, x + left - GAP - LABELS * width, middle - label.height / 2, look.TEXT)
            _draw_bar(painter, axis, bar, middle)
            color = look.TEXT if bar.value is not None else look.MUTED
            result.draw(painter, x + right + GAP, middle - result.height / 2, color)
            top += height
        eager = TextBox("eager", fonts.tiny)
        eager.draw(painter, axis.x(1.0) - eager.width / 2, y + body + 9.5, look.TEXT)

    return Piece(height=body + TICK_ROOM + 6.0, draw=draw)


def _axis(chart: SpeedupChart, left: float, right: float) -> Axis:
    low, high = shown_range(
        [
            Interval(value=bar.value, low=bar.low, high=bar.high)
            for bar in chart.bars
            if bar.value is not None and bar.low is not None and bar.high is not None
        ]
    )
    room = max((high - low) * 0.08, 0.02)
    return Axis(max(low - room, 0.0), high + room, left, right)


def _result(bar: SpeedupBar) -> str:
    if bar.value is None or bar.low is None or bar.high is None:
        return bar.note
    text = units.speedup(bar.value, (bar.high - bar.low) / 2)
    return f"{text}, {bar.note}" if bar.note else text


def _draw_bar(painter: QPainter, axis: Axis, bar: SpeedupBar, y: float) -> None:
    if bar.value is None or bar.low is None or bar.high is None:
        return
    color = look.TONES[words.TONES.get(bar.kind, "muted")]
    line(painter, axis.x(1.0), y, axis.x(bar.value), y, color, 2.6 if bar.is_chosen else 1.4)
    low, high = max(bar.low, axis.low), min(bar.high, axis.high)
    for end in (bar.low, bar.high):
        # a cap where the interval ends, an arrow where it goes on beyond the axis
        x = axis.x(min(max(end, axis.low), axis.high))
        back = 4.0 * ((end < axis.low) - (end > axis.high))
        for side in (-3.2, 3.2):
            line(painter, x + back, y + side, x, y, color, 0.8)
    line(painter, axis.x(low), y, axis.x(high), y, color, 0.8)
    _marker(painter, bar.kind, axis.x(bar.value), y, color)


def _marker(painter: QPainter, kind: str, x: float, y: float, color: str) -> None:
    """A shape for each verdict, so that the colour is never the only sign."""
    painter.setPen(QPen(QColor(color), 1.0))
    painter.setBrush(QColor(color if kind in ("faster", "slower") else "#ffffff"))
    if kind == "slower":
        corners = ((x - RADIUS, y - 2.6), (x + RADIUS, y - 2.6), (x, y + 3.4))
        painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))
    elif kind == "incorrect":
        line(painter, x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS, color, 1.4)
        line(painter, x - RADIUS, y + RADIUS, x + RADIUS, y - RADIUS, color, 1.4)
    else:
        painter.drawEllipse(QPointF(x, y), RADIUS, RADIUS)
    painter.setBrush(Qt.BrushStyle.NoBrush)
