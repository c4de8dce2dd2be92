"""First calls as stacked bars, a colour a group of compiler phases."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from compilescope.domain import units
from compilescope.report.blocks import PhaseBar, PhaseChart
from compilescope.report.numbers import TIMES
from compilescope.report.pdf import look
from compilescope.report.pdf.axis import TICK_ROOM, Axis
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

BAR = 15.0
GAP = 7.0
LEFT = 40.0
LEGEND = 12.0


def phase_piece(chart: PhaseChart, fonts: Fonts, width: float) -> Piece:
    longest = max(bar.total_s for bar in chart.bars)
    factor, unit = next(((factor, unit) for factor, unit in TIMES if longest >= factor), TIMES[-1])
    totals = [TextBox(units.duration(bar.total_s), fonts.small_bold) for bar in chart.bars]
    right = width - max(total.width for total in totals) - GAP
    groups = list(dict.fromkeys(name for bar in chart.bars for name, _ in bar.parts))
    legend = _legend_lines(groups, fonts, width - LEFT)
    body = len(chart.bars) * (BAR + GAP)

    def draw(painter: QPainter, x: float, y: float) -> None:
        axis = Axis(0.0, longest, x + LEFT, x + right)
        axis.draw(painter, fonts, QRectF(x + LEFT, y, right - LEFT, body), unit, factor)
        for index, (bar, total) in enumerate(zip(chart.bars, totals, strict=True)):
            top = y + index * (BAR + GAP) + GAP / 2
            TextBox(bar.label, fonts.small_bold).draw(painter, x, top + 2.0, look.TEXT)
            _draw_bar(painter, fonts, axis, bar, top)
            total.draw(painter, axis.x(bar.total_s) + 5.0, top + 2.0, look.TEXT)
        for row, entries in enumerate(legend):
            _draw_legend(painter, x + LEFT, y + body + TICK_ROOM + 2.0 + row * LEGEND, entries)

    return Piece(height=body + TICK_ROOM + 2.0 + len(legend) * LEGEND, draw=draw)


def _draw_bar(painter: QPainter, fonts: Fonts, axis: Axis, bar: PhaseBar, top: float) -> None:
    at = 0.0
    for name, seconds in bar.parts:
        start, end = axis.x(at), axis.x(at + seconds)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.SERIES.get(name, look.MUTED)))
        painter.drawRect(QRectF(start, top, max(end - start - 0.4, 0.3), BAR))
        label = TextBox(units.duration(seconds), fonts.tiny)
        if label.width + 6.0 <= end - start:
            dark = name not in ("codegen", "outside the compiler", "guards", "backward", "inductor")
            label.draw(painter, start + 3.0, top + 3.0, "#ffffff" if dark else look.TEXT)
        at += seconds


def _legend_lines(groups: list[str], fonts: Fonts, width: float) -> list[list[tuple[str, TextBox]]]:
    lines: list[list[tuple[str, TextBox]]] = [[]]
    used = 0.0
    for name in groups:
        box = TextBox(name, fonts.tiny)
        if used + box.width + 24.0 > width and lines[-1]:
            lines.append([])
            used = 0.0
        lines[-1].append((name, box))
        used += box.width + 24.0
    return lines


def _draw_legend(painter: QPainter, x: float, y: float, entries: list[tuple[str, TextBox]]) -> None:
    for name, box in entries:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.SERIES.get(name, look.MUTED)))
        painter.drawRect(QRectF(x, y + 1.5, 7.0, 7.0))
        box.draw(painter, x + 10.0, y, look.MUTED)
        x += box.width + 24.0
