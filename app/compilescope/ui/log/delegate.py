"""Draws the cells of the log straight from the store: a page has hundreds of them, several times a second."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from compilescope.domain.log import Level
from compilescope.ui.log.model import LEVEL, LEVEL_TEXTS, MESSAGE, RUN, LogModel, time_text
from compilescope.ui.theme import Theme

PADDING = 6
_FLAGS = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)
_LEVEL_TOKENS = {
    Level.DEBUG: "muted",
    Level.OUTPUT: "text",
    Level.INFO: "accent",
    Level.WARNING: "warn",
    Level.ERROR: "bad",
}
_LOUD = (Level.WARNING, Level.ERROR)


class LogDelegate(QStyledItemDelegate):
    """One line of monospaced text a cell, cut where the cell ends; what the filter found is marked."""

    def __init__(self, model: LogModel, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme = theme
        self.set_theme()

    def set_theme(self) -> None:
        tokens = self._theme.tokens
        self.font = QFont(self._theme.mono())
        metrics = QFontMetricsF(self.font)
        self.row_height = round(metrics.height()) + 4
        self._advance = max(metrics.horizontalAdvance("0"), 1.0)
        self._metrics = metrics
        self._colors = {level: QColor(getattr(tokens, name)) for level, name in _LEVEL_TOKENS.items()}
        self._text, self._muted = QColor(tokens.text), QColor(tokens.muted)
        self._selection, self._mark = QColor(tokens.selection), QColor(tokens.warn)
        self._mark.setAlpha(90)

    def width(self, characters: int) -> int:
        """What a column needs for so many characters."""
        return round(characters * self._advance) + 2 * PADDING

    @cached_property
    def _selected(self) -> Any:
        # QStyle's many enums take longer to import than the whole log; not before the first line is drawn
        from PySide6.QtWidgets import QStyle

        return QStyle.StateFlag.State_Selected

    def _draw_message(self, painter: QPainter, rect: QRect, line: int) -> None:
        store = self._model.store
        room = int(rect.width() / self._advance)
        # a character takes at most four bytes; one more byte tells that the line was cut
        text = store.text(line, 4 * room + 4).expandtabs(4)
        if len(text) > room:
            text = text[: max(room - 1, 0)] + "…"
        if self._model.filter.text:
            self._draw_marks(painter, rect, text)
        level = store.level(line)
        painter.setPen(self._colors[level] if level in _LOUD or level == Level.DEBUG else self._text)
        painter.drawText(rect, _FLAGS, text)

    def _draw_marks(self, painter: QPainter, rect: QRect, text: str) -> None:
        for begin, end in self._model.filter.spans(text):
            left = rect.left() + self._metrics.horizontalAdvance(text[:begin])
            width = self._metrics.horizontalAdvance(text[begin:end])
            painter.fillRect(QRect(round(left), rect.top() + 1, round(width), rect.height() - 2), self._mark)

    # Qt overrides

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        rect: QRect = option.rect
        if option.state & self._selected:
            painter.fillRect(rect, self._selection)
        painter.setFont(self.font)
        store, line, column = self._model.store, self._model.line(index.row()), index.column()
        rect = rect.adjusted(PADDING, 0, -PADDING, 0)
        if column == MESSAGE:
            self._draw_message(painter, rect, line)
            return
        if column == LEVEL:
            level = store.level(line)
            painter.setPen(self._colors[level])
            painter.drawText(rect, _FLAGS, LEVEL_TEXTS[level])
            return
        painter.setPen(self._muted)
        painter.drawText(rect, _FLAGS, store.label(line) if column == RUN else time_text(store.at(line)))
