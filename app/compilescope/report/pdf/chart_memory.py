"""Peak memory of both sides, a pair of bars a configuration."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from compilescope.domain import units
from compilescope.report.blocks import MemoryChart
from compilescope.report.numbers import SIZES
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import TICK_ROOM, Axis
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

BAR, GAP, SPACE = 9.0, 2.0, 7.0
NAME_SHARE = 0.36
SIDE = 46.0


def memory_piece(chart: MemoryChart, fonts: Fonts, width: float) -> Piece:
    largest = max(size for _, *sides in chart.rows for size in sides if size)
    factor, unit = next(((factor, unit) for factor, unit in SIZES if largest >= factor), SIZES[-1])
    names = [TextBox(name, fonts.small, width * NAME_SHARE) for name, _, _ in chart.rows]
    left = max(name.width for name in names) + SPACE + SIDE
    texts = [TextBox(units.size(size), fonts.tiny) for _, *sides in chart.rows for size in sides if size]
    right = width - max(text.width for text in texts) - SPACE
    heights = [max(2 * BAR + GAP, name.height) + SPACE for name in names]

    def draw(painter: QPainter, x: float, y: float) -> None:
        axis = Axis(0.0, float(largest), x + left, x + right)
        axis.draw(painter, fonts, QRectF(x + left, y, right - left, sum(heights)), unit, factor)
        top = y + SPACE / 2
        for (_, eager, compiled), name, height in zip(chart.rows, names, heights, strict=True):
            name.draw(painter, x, top, look.TEXT)
            for index, (side, size) in enumerate((("eager", eager), ("compiled", compiled))):
                at = top + index * (BAR + GAP)
                TextBox(side, fonts.tiny).draw(painter, x + left - SIDE, at - 1.0, look.MUTED)
                if size:
                    color = QColor(look.EAGER if side == "eager" else look.COMPILED)
                    painter.fillRect(QRectF(x + left, at, axis.x(float(size)) - x - left, BAR), color)
                    label = TextBox(units.size(size), fonts.tiny)
                    label.draw(painter, axis.x(float(size)) + 4.0, at - 1.0, look.TEXT)
            top += height

    return Piece(height=sum(heights) + TICK_ROOM, draw=draw)
