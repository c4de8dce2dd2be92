"""Time spent over calls: where a line crosses eager's, compiling has paid for itself."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from compilescope.domain import units
from compilescope.report.blocks import CostChart, CostLine
from compilescope.report.numbers import TIMES
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import TICK_ROOM, Axis, line, round_step, spread, tick_labels
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

HEIGHT = 110.0
LEFT = 34.0
STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine)


def cost_piece(chart: CostChart, fonts: Fonts, width: float) -> Piece:
    highest = max(row.ahead_s + row.per_call_s * chart.calls for row in chart.lines)
    factor, unit = next(((factor, unit) for factor, unit in TIMES if highest >= factor), TIMES[-1])
    names = [TextBox(row.label, fonts.small) for row in chart.lines]
    right = width - max(name.width for name in names) - 8.0

    def draw(painter: QPainter, x: float, y: float) -> None:
        area = QRectF(x + LEFT, y, right - LEFT, HEIGHT)
        axis = Axis(0.0, chart.calls, area.left(), area.right())
        axis.draw(painter, fonts, area, "calls")
        _vertical(painter, fonts, area, highest / factor, unit)
        ends = spread([area.bottom() - _total(row, chart.calls) / highest * HEIGHT for row in chart.lines])
        for index, (row, name, end) in enumerate(zip(chart.lines, names, ends, strict=True)):
            color = look.EAGER if row.is_eager else look.COMPILED
            style = STYLES[0] if row.is_eager else STYLES[(index - 1) % 2]
            painter.setPen(QPen(QColor(color), 1.4, style))
            start = QPointF(area.left(), area.bottom() - row.ahead_s / highest * HEIGHT)
            painter.drawLine(start, QPointF(area.right(), area.bottom() - _total(row, chart.calls) / highest * HEIGHT))
            name.draw(painter, area.right() + 6.0, end - name.height / 2, color)
        _crossings(painter, fonts, chart, axis, area, highest)

    return Piece(height=HEIGHT + TICK_ROOM, draw=draw)


def _total(row: CostLine, calls: float) -> float:
    return row.ahead_s + row.per_call_s * calls


def _vertical(painter: QPainter, fonts: Fonts, area: QRectF, highest: float, unit: str) -> None:
    step = round_step(highest / 4)
    ticks = [step * index for index in range(int(highest / step) + 1)]
    for value, label in zip(ticks, tick_labels(ticks), strict=True):
        y = area.bottom() - value / highest * area.height()
        line(painter, area.left(), y, area.right(), y, look.HAIRLINE, 0.5)
        box = TextBox(f"{label} {unit}" if value == ticks[-1] else label, fonts.tiny)
        box.draw(painter, area.left() - box.width - 4.0, y - box.height / 2, look.MUTED)


def _crossings(painter: QPainter, fonts: Fonts, chart: CostChart, axis: Axis, area: QRectF, highest: float) -> None:
    eager = next((row for row in chart.lines if row.is_eager), None)
    for row in chart.lines:
        saved = eager.per_call_s - row.per_call_s if eager else 0.0
        if row.is_eager or eager is None or saved <= 0:
            continue
        calls = row.ahead_s / saved
        if calls <= chart.calls:
            at = QPointF(axis.x(calls), area.bottom() - _total(eager, calls) / highest * area.height())
            painter.setPen(QPen(QColor(look.COMPILED), 1.0))
            painter.setBrush(QColor("#ffffff"))
            painter.drawEllipse(at, 2.6, 2.6)
            label = TextBox(f"{units.count(float(f'{calls:.3g}'))} calls", fonts.tiny)
            # clear of the lines that cross behind it
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRect(QRectF(at.x() + 5.0, at.y() + 4.0, label.width + 2.0, label.height))
            label.draw(painter, at.x() + 6.0, at.y() + 4.0, look.TEXT)
