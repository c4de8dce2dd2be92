"""Tables: columns as wide as their text, rows that are never split, heads that are repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from compilescope.report.blocks import Cell, Column, Table
from compilescope.report.pdf import look
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.text import TextBox

GAP = 9.0
PAD = 2.6
GOOD_SHARE = 150.0
LONGEST_WORD = 110.0


@dataclass(frozen=True)
class _Grid:
    """Where each column stands, and how wide it is."""

    lefts: Sequence[float]
    widths: Sequence[float]
    width: float


def table_pieces(table: Table, fonts: Fonts, width: float) -> list[Piece]:
    """A piece for the head, one for each row, and one for the note."""
    grid = _grid(table, fonts, width)
    head = _head(table.columns, fonts, grid)
    rows = [_row(table.columns, row, fonts, grid) for row in table.rows]
    for row in rows:
        row.head = head
    if len(rows) > 1:
        # neither the first nor the last row stands alone on a page
        rows[0].keep = rows[-2].keep = True
    pieces = [head, *rows]
    if table.note:
        pieces[-1].keep = True
        pieces.append(_note(table.note, fonts, width))
    return pieces


def _grid(table: Table, fonts: Fonts, width: float) -> _Grid:
    least, natural = _text_widths(table, fonts)
    free = width - GAP * (len(natural) - 1)
    wanted = [
        max(low, min(full, GOOD_SHARE)) if column.share else full
        for column, low, full in zip(table.columns, least, natural, strict=True)
    ]
    widths = _squeezed(table.columns, wanted, least, free)
    rest = free - sum(widths)
    shares = sum(column.share for column in table.columns)
    if shares:
        widths = [size + rest * column.share / shares for column, size in zip(table.columns, widths, strict=True)]
    lefts = [sum(widths[:i]) + GAP * i for i in range(len(widths))]
    return _Grid(lefts=lefts, widths=widths, width=width)


def _text_widths(table: Table, fonts: Fonts) -> tuple[list[float], list[float]]:
    """For each column, the width of its longest word and that of its longest text."""
    plain, bold = QFontMetricsF(fonts.small), QFontMetricsF(fonts.small_bold)
    least, natural = [], []
    for index, column in enumerate(table.columns):
        head = max(bold.horizontalAdvance(word) for word in column.title.split() or [""])
        head = max(head, plain.horizontalAdvance(column.unit))
        texts = {(row[index].text, row[index].tone not in ("", "muted")) for row in table.rows}
        full = max([head, *((bold if strong else plain).horizontalAdvance(text) for text, strong in texts)])
        words = {(word, strong) for text, strong in texts for word in text.split()}
        longest = max([head, *((bold if strong else plain).horizontalAdvance(word) for word, strong in words)])
        # a word as long as a line may be broken anywhere; the layout rounds a little otherwise than the measuring
        least.append((min(longest, LONGEST_WORD) if column.align == "left" else full) + 1.5)
        natural.append(full + 1.5)
    return least, natural


def _squeezed(columns: Sequence[Column], widths: Sequence[float], least: Sequence[float], room: float) -> list[float]:
    """Widths that fit the room: where they do not, columns of text give way, the widest first, and break lines."""
    found = list(widths)
    texts = [i for i, column in enumerate(columns) if column.align == "left"]
    while (excess := sum(found) - room) > 0.1:
        able = [i for i in texts if found[i] > least[i] + 0.1]
        if not able:
            return [size * room / sum(found) for size in found]
        widest = max(able, key=lambda i: found[i])
        found[widest] -= min(excess, 10.0, found[widest] - least[widest])
    return found


def _head(columns: Sequence[Column], fonts: Fonts, grid: _Grid) -> Piece:
    titles = [
        TextBox(column.title, fonts.small_bold, width + 0.5, right=column.align == "right")
        for column, width in zip(columns, grid.widths, strict=True)
    ]
    units = [
        TextBox(column.unit, fonts.small, width + 0.5, right=column.align == "right") if column.unit else None
        for column, width in zip(columns, grid.widths, strict=True)
    ]
    tallest = max(title.height + (unit.height if unit else 0.0) for title, unit in zip(titles, units, strict=True))
    height = tallest + 2 * PAD + 1.0

    def draw(painter: QPainter, x: float, y: float) -> None:
        for left, title, unit in zip(grid.lefts, titles, units, strict=True):
            top = y + PAD + tallest - title.height - (unit.height if unit else 0.0)
            title.draw(painter, x + left, top, look.TEXT)
            if unit:
                unit.draw(painter, x + left, top + title.height, look.MUTED)
        _rule(painter, x, y + height - 1.0, grid.width, look.ACCENT, 0.8)

    return Piece(height=height, draw=draw, before=7.0, keep=True)


def _row(columns: Sequence[Column], cells: Sequence[Cell], fonts: Fonts, grid: _Grid) -> Piece:
    boxes = [
        TextBox(
            cell.text,
            fonts.small if cell.tone in ("", "muted") else fonts.small_bold,
            width + 0.5,
            right=column.align == "right",
        )
        for column, cell, width in zip(columns, cells, grid.widths, strict=True)
    ]
    height = max(box.height for box in boxes) + 2 * PAD
    link = next((cell.link for cell in cells if cell.link), "")

    def draw(painter: QPainter, x: float, y: float) -> None:
        for left, cell, box in zip(grid.lefts, cells, boxes, strict=True):
            color = look.ACCENT if cell.link else look.TONES[cell.tone]
            box.draw(painter, x + left, y + PAD, color)
        _rule(painter, x, y + height, grid.width, look.HAIRLINE, 0.5)

    return Piece(height=height, draw=draw, link=link)


def _note(text: str, fonts: Fonts, width: float) -> Piece:
    box = TextBox(text, fonts.small, width)
    return Piece(height=box.height, draw=lambda painter, x, y: box.draw(painter, x, y, look.MUTED), before=3.0)


def _rule(painter: QPainter, x: float, y: float, width: float, color: str, weight: float) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(color))
    painter.drawRect(QRectF(x, y - weight / 2, width, weight))
