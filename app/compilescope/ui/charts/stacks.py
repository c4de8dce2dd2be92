"""Horizontal bars made of parts, several to a row: sizes whose sum counts as much as what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from compilescope.ui.charts.groups import ink
from compilescope.ui.charts.painted import Painted
from compilescope.ui.charts.ticks import ticks
from compilescope.ui.theme import Theme

_GAP = 10
_LABEL_SHARE = 0.3
_AXIS = 22
_LEAST_INSIDE = 5


@dataclass(frozen=True, kw_only=True)
class Part:
    """One piece of a bar. `kind` decides its colour; `tip` says its number."""

    kind: str
    name: str
    size: float
    tip: str


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: a word before it, its parts, and its number behind it."""

    title: str
    parts: tuple[Part, ...]
    text: str

    @property
    def size(self) -> float:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class StackRow:
    """The bars of one configuration."""

    label: str
    bars: tuple[Bar, ...]


class Stacks(Painted):
    """As high as its rows; `color` gives a kind's colour, `texts` the words for ticks."""

    def __init__(
        self, theme: Theme, color: Callable[[str], QColor], texts: Callable[[Sequence[float]], Sequence[str]]
    ) -> None:
        super().__init__(theme)
        self._color = color
        self._texts = texts
        self._rows: tuple[StackRow, ...] = ()

    def show_rows(self, rows: Sequence[StackRow]) -> None:
        if tuple(rows) != self._rows:
            self._rows = tuple(rows)
            self.setMinimumHeight(self.minimumSizeHint().height())
            self.update()

    def tip_at(self, place: QPoint) -> str:
        """What the bar under a point is, with its number."""
        begin, scale = self._scale()
        for row, bar, area in self._bars():
            if not area.contains(QPointF(place)):
                continue
            left = begin
            for part in bar.parts:
                left += part.size * scale
                if begin <= place.x() <= left:
                    return f"{row.label}\n{part.tip}"
            return f"{row.label}\n{bar.title}: {bar.text}".replace("\n: ", "\n")
        return ""

    @property
    def _height(self) -> float:
        """Of one bar, with the room around it."""
        return QFontMetricsF(self.font()).height() + 6

    def _bars(self) -> list[tuple[StackRow, Bar, QRectF]]:
        found, top = [], 4.0
        for row in self._rows:
            for bar in row.bars:
                found.append((row, bar, QRectF(0, top, self.width(), self._height)))
                top += self._height
            top += 6
        return found

    def _columns(self) -> tuple[float, float, float]:
        """Where names end, where bars begin, and how far they may reach."""
        metrics = QFontMetricsF(self.font())
        bars = [bar for row in self._rows for bar in row.bars]
        names = max(metrics.horizontalAdvance(row.label) for row in self._rows)
        titles = max(metrics.horizontalAdvance(bar.title) for bar in bars)
        texts = max(metrics.horizontalAdvance(bar.text) for bar in bars)
        left = _GAP + min(names, self.width() * _LABEL_SHARE)
        begin = left + _GAP + (titles + _GAP if titles else 0)
        return left, begin, max(self.width() - texts - 2 * _GAP, begin + 40)

    def _scale(self) -> tuple[float, float]:
        if not self._rows:
            return 0.0, 1.0
        _, begin, end = self._columns()
        top = max(bar.size for row in self._rows for bar in row.bars) or 1.0
        return begin, (end - begin) / top

    def draw(self, painter: QPainter) -> None:
        if not self._rows:
            return
        names_end, begin, end = self._columns()
        _, scale = self._scale()
        self._draw_axis(painter, begin, (end - begin) / scale, scale)
        labelled: set[str] = set()
        for row, bar, area in self._bars():
            if row.label not in labelled:
                labelled.add(row.label)
                name = QRectF(_GAP, area.top(), names_end - _GAP, area.height())
                painter.setPen(QColor(self._theme.tokens.text))
                shown = painter.fontMetrics().elidedText(row.label, Qt.TextElideMode.ElideMiddle, int(name.width()) + 1)
                painter.drawText(name, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight), shown)
            self._draw_bar(painter, bar, area, (names_end + _GAP, begin, scale))

    def _draw_bar(self, painter: QPainter, bar: Bar, area: QRectF, places: tuple[float, float, float]) -> None:
        title_at, begin, scale = places
        middle = int(Qt.AlignmentFlag.AlignVCenter)
        painter.setPen(QColor(self._theme.tokens.muted))
        painter.drawText(QRectF(title_at, area.top(), begin - title_at, area.height()), middle, bar.title)
        left = begin
        for part in bar.parts:
            piece = QRectF(left, area.top() + 2, part.size * scale, area.height() - 4)
            color = self._color(part.kind)
            # a hairline of the ground tells neighbours apart whatever their colours
            painter.fillRect(piece.adjusted(0, 0, -1 if piece.width() > 2 else 0, 0), color)
            if painter.fontMetrics().horizontalAdvance(part.name) + 2 * _LEAST_INSIDE < piece.width():
                painter.setPen(ink(color))
                painter.drawText(piece, int(Qt.AlignmentFlag.AlignCenter), part.name)
            left += piece.width()
        painter.setPen(QColor(self._theme.tokens.text))
        room = QRectF(left + _GAP / 2, area.top(), self.width() - left, area.height())
        painter.drawText(room, middle, bar.text)

    def _draw_axis(self, painter: QPainter, begin: float, top: float, scale: float) -> None:
        bars = self._bars()
        bottom = bars[-1][2].bottom() + 4
        values = ticks(0, top, max(int(top * scale / 110), 1))
        for value, text in zip(values, self._texts(values), strict=True):
            x = round(begin + value * scale) + 0.5
            painter.setPen(QColor(self._theme.tokens.grid))
            painter.drawLine(QPointF(x, 0), QPointF(x, bottom))
            painter.setPen(QColor(self._theme.tokens.muted))
            painter.drawText(QRectF(x - 55, bottom, 110, _AXIS - 4), int(Qt.AlignmentFlag.AlignCenter), text)

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        bars = self._bars()
        return QSize(240, round(bars[-1][2].bottom()) + _AXIS + 6 if bars else 60)
