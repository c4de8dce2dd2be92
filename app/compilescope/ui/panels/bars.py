"""Cells that draw a share of one as a bar."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from compilescope.ui.models.rows import SORT_ROLE
from compilescope.ui.panels.table import ToneDelegate
from compilescope.ui.theme import Theme


class BarDelegate(ToneDelegate):
    """Draws column `column`, whose value is a share and the name of a colour token."""

    def __init__(self, theme: Theme, column: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._column = column

    # Qt overrides

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        value = index.data(SORT_ROLE)
        if index.column() != self._column or not value:
            return
        share, token = value
        area = QRectF(option.rect).adjusted(6, 8, -6, -8)
        area.setWidth(max(area.width() * min(share, 1.0), 2.0))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(self._theme.tokens, token)))
        painter.drawRoundedRect(area, 2, 2)
        painter.restore()
