"""Blocks of a document, set as pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter

from compilescope.report.blocks import (
    Block,
    Bullets,
    Card,
    ChartBlock,
    Code,
    Facts,
    Paragraph,
    Section,
    Table,
)
from compilescope.report.pdf import charts, look
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.table import table_pieces
from compilescope.report.pdf.text import TextBox

LEADING = 1.12
PAD = 6.0
COLUMN_GAP = 12.0


@dataclass(frozen=True)
class Typesetter:
    """Sets blocks for a column of a given width."""

    fonts: Fonts
    width: float

    def section(self, section: Section, number: str) -> list[Piece]:
        """A section with its heading."""
        pieces = [self._heading(section, number), *self.blocks(section.blocks)]
        pieces[0].starts_page = section.starts_page
        return pieces

    def blocks(self, blocks: Sequence[Block]) -> list[Piece]:
        return [piece for block in blocks for piece in self._block(block)]

    def _block(self, block: Block) -> list[Piece]:
        match block:
            case Paragraph():
                return self._paragraph(block)
            case Bullets():
                return [piece for item in block.items for piece in self._bullet(item)]
            case Code():
                return self._code(block)
            case Facts():
                return self._facts(block)
            case Table():
                return table_pieces(block, self.fonts, self.width)
            case Card():
                return [self._card(block)]
            case ChartBlock():
                return self._figure(block)

    def _heading(self, section: Section, number: str) -> Piece:
        chapter = section.level == 1
        font = self.fonts.chapter if chapter else self.fonts.heading
        badge = TextBox(section.badge, self.fonts.small_bold) if section.badge else None
        taken = badge.width + 3 * PAD if badge else 0.0
        text = TextBox(f"{number}  {section.title}", font, self.width - taken)

        def draw(painter: QPainter, x: float, y: float) -> None:
            text.draw(painter, x, y, look.ACCENT)
            if badge:
                box = QRectF(x + self.width - badge.width - 2 * PAD, y + 2, badge.width + 2 * PAD, badge.height + 5)
                fill(painter, box, look.FILLS[section.badge_tone], radius=3)
                badge.draw(painter, box.x() + PAD, box.y() + 2.5, look.TONES[section.badge_tone])
            if chapter:
                fill(painter, QRectF(x, y + text.height + 3, self.width, 0.8), look.ACCENT)

        height = text.height + (12.0 if chapter else 6.0)
        title = f"{number} {section.title}"
        return Piece(height=height, draw=draw, before=24.0, keep=True, anchor=section.anchor, section=title)

    def _paragraph(self, block: Paragraph) -> list[Piece]:
        fonts = {"lead": self.fonts.lead, "small": self.fonts.small, "label": self.fonts.label}
        font = self.fonts.strong if block.tone == "strong" else fonts.get(block.style, self.fonts.body)
        color = look.ACCENT if block.style == "label" else look.TONES[block.tone]
        before = {"label": 13.0, "lead": 6.0, "small": 1.0}.get(block.style, 5.0)
        pieces = self._lines(block.text, font, color, before)
        if block.style == "label" or block.tone == "strong":
            for piece in pieces:
                piece.keep = True
        if block.style == "small":
            pieces[-1].keep = True
        return pieces

    def _lines(self, text: str, font: QFont, color: str, before: float, indent: float = 0.0) -> list[Piece]:
        """One piece a line, so that a long paragraph may go over two pages, but never one line alone."""
        box = TextBox(text, font, self.width - indent, spacing=LEADING)
        count = box.line_count

        def line_piece(index: int, height: float) -> Piece:
            def draw(painter: QPainter, x: float, y: float) -> None:
                box.draw_line(painter, index, x + indent, y, color)

            keep = index < count - 1 and (count <= 4 or index == 0 or index == count - 2)
            return Piece(height=height, draw=draw, before=before if index == 0 else 0.0, keep=keep)

        return [line_piece(index, height) for index, height in box.lines()]

    def _bullet(self, item: str) -> list[Piece]:
        pieces = self._lines(item, self.fonts.body, look.TEXT, 3.0, indent=11.0)
        first = pieces[0].draw

        def draw(painter: QPainter, x: float, y: float) -> None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.ACCENT))
            painter.drawEllipse(QPointF(x + 3.5, y + look.middle(self.fonts.body)), 1.5, 1.5)
            first(painter, x, y)

        pieces[0].draw = draw
        return pieces

    def _code(self, block: Code) -> list[Piece]:
        lines = block.text.split("\n")
        numbered = block.first_line is not None
        first = block.first_line or 0
        gutter = 8.0 + 5.2 * len(str(first + len(lines))) if numbered else 0.0
        pieces = []
        for index, line in enumerate(lines):
            number = str(first + index) if numbered else ""
            is_marked = block.marked is not None and first + index == block.marked
            pieces.append(self._code_line(line, number, gutter, is_marked))
        pieces[0] = padded(pieces[0], self.width, top=4.0)
        pieces[-1] = padded(pieces[-1], self.width, bottom=4.0)
        pieces[0].before = 5.0
        for index, piece in enumerate(pieces[:-1]):
            piece.keep = len(pieces) <= 6 or index == 0 or index == len(pieces) - 2
        return pieces

    def _code_line(self, line: str, number: str, gutter: float, is_marked: bool) -> Piece:
        left = PAD + gutter
        box = TextBox(line, self.fonts.code, self.width - left - PAD, spacing=1.06)
        label = TextBox(number, self.fonts.code) if number else None

        def draw(painter: QPainter, x: float, y: float) -> None:
            # a hair more than the line, so that no seam shows between two
            fill(painter, QRectF(x, y, self.width, box.height + 0.3), look.MARK if is_marked else look.PANEL)
            if is_marked:
                fill(painter, QRectF(x, y, 2.0, box.height + 0.3), look.MARK_EDGE)
            if label:
                label.draw(painter, x + PAD + gutter - 8.0 - label.width, y, look.FAINT)
            box.draw(painter, x + left, y, look.TEXT)

        return Piece(height=box.height, draw=draw)

    def _facts(self, block: Facts) -> list[Piece]:
        return [
            self._fact_row(row, before=4.0 if index == 0 else 2.0) for index, row in enumerate(self._fact_pairs(block))
        ]

    def _fact_pairs(self, block: Facts) -> Iterator[list[tuple[TextBox, TextBox]]]:
        """Two short facts a line, a long one alone."""
        waiting: list[tuple[TextBox, TextBox]] = []
        for name, value in block.rows:
            label = TextBox(name, self.fonts.small, self._value_left - 6.0)
            short = TextBox(value, self.fonts.small)
            is_short = short.line_count == 1 and short.width <= self.width / 2 - COLUMN_GAP - self._value_left
            if waiting and (len(waiting) == 2 or not is_short):
                yield waiting
                waiting = []
            if is_short:
                waiting.append((label, short))
            else:
                yield [(label, TextBox(value, self.fonts.small, self.width - self._value_left))]
        if waiting:
            yield waiting

    @property
    def _value_left(self) -> float:
        """Where the values of facts stand, from their names."""
        return 0.235 * self.width

    def _fact_row(self, row: Sequence[tuple[TextBox, TextBox]], before: float) -> Piece:
        height = max(max(name.height, value.height) for name, value in row)

        def draw(painter: QPainter, x: float, y: float) -> None:
            for index, (name, value) in enumerate(row):
                left = x + index * (self.width + COLUMN_GAP) / 2
                name.draw(painter, left, y, look.MUTED)
                value.draw(painter, left + self._value_left, y, look.TEXT)

        return Piece(height=height, draw=draw, before=before)

    def _card(self, block: Card) -> Piece:
        inner = self.width - 2 * 12.0
        parts: list[tuple[TextBox, str, float]] = [
            (TextBox(block.title, self.fonts.card, inner), look.TONES[block.tone], 0.0),
        ]
        if block.text:
            parts.append((TextBox(block.text, self.fonts.body, inner, spacing=LEADING), look.TEXT, 4.0))
        code = TextBox(block.code, self.fonts.code, inner - 2 * PAD) if block.code else None
        points = [TextBox(point, self.fonts.body, inner - 11.0, spacing=LEADING) for point in block.points]
        height = 20.0 + sum(box.height + gap for box, _, gap in parts)
        height += (code.height + 2 * PAD + 6.0) if code else 0.0
        height += sum(point.height + 3.0 for point in points) + (3.0 if points else 0.0)

        def draw(painter: QPainter, x: float, y: float) -> None:
            fill(painter, QRectF(x, y, self.width, height), look.FILLS[block.tone], radius=4)
            fill(painter, QRectF(x, y, 3.0, height), look.TONES[block.tone])
            at = y + 10.0
            for box, color, gap in parts:
                box.draw(painter, x + 12.0, at + gap, color)
                at += box.height + gap
            if code:
                fill(painter, QRectF(x + 12.0, at + 6.0, inner, code.height + 2 * PAD), "#ffffff", radius=3)
                code.draw(painter, x + 12.0 + PAD, at + 6.0 + PAD, look.TEXT)
                at += code.height + 2 * PAD + 6.0
            at += 3.0
            for point in points:
                at += 3.0
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(look.TONES[block.tone]))
                painter.drawEllipse(QPointF(x + 15.5, at + look.middle(self.fonts.body)), 1.5, 1.5)
                point.draw(painter, x + 23.0, at, look.TEXT)
                at += point.height

        return Piece(height=height, draw=draw, before=4.0)

    def _figure(self, block: ChartBlock) -> list[Piece]:
        chart = charts.chart_piece(block.chart, self.fonts, self.width)
        chart.before, chart.keep = 8.0, True
        caption = self._lines(block.caption, self.fonts.small, look.MUTED, 3.0)
        for piece in caption[:-1]:
            piece.keep = True
        return [chart, *caption]


def fill(painter: QPainter, box: QRectF, color: str, radius: float = 0.0) -> None:
    """A rectangle without an outline."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(color))
    if radius:
        painter.drawRoundedRect(box, radius, radius)
    else:
        painter.drawRect(box)


def padded(piece: Piece, width: float, top: float = 0.0, bottom: float = 0.0) -> Piece:
    """The piece with room above or below it, in the colour of a panel."""

    def draw(painter: QPainter, x: float, y: float) -> None:
        if top:
            fill(painter, QRectF(x, y, width, top + 0.3), look.PANEL)
        piece.draw(painter, x, y + top)
        if bottom:
            fill(painter, QRectF(x, y + top + piece.height, width, bottom), look.PANEL)

    return Piece(height=piece.height + top + bottom, draw=draw, before=piece.before, keep=piece.keep)
