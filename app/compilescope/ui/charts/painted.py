"""A drawing on the theme's ground that says, where the pointer rests, the number that it stands for."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from compilescope.ui.theme import Theme
from compilescope.ui.widgets import plain_tip


class Painted(QWidget):
    """Subclasses override `draw`, and `tip_at` where they have something to say."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def draw(self, painter: QPainter) -> None:
        """Draw on the ground."""

    def tip_at(self, _place: QPoint) -> str:
        """What stands at a point, with its number; nothing where nothing does."""
        return ""

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.tokens.field))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.draw(painter)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), plain_tip(self.tip_at(event.pos())), self)
            return True
        return super().event(event)
