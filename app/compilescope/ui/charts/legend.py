"""A chart's key: a line with its marker, a name, and a value that changes as data comes."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

CIRCLE, TRIANGLE, SQUARE, DIAMOND = "o", "t1", "s", "d"
MARKERS = (CIRCLE, TRIANGLE, SQUARE, DIAMOND)
_R = 3.5
_SHAPES = {
    TRIANGLE: ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    SQUARE: ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    DIAMOND: ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
}


def draw_marker(painter: QPainter, center: QPointF, marker: str, radius: float = _R) -> None:
    """Draw a marker with the painter's pen and brush."""
    if marker == CIRCLE:
        painter.drawEllipse(center, radius, radius)
        return
    painter.drawPolygon(QPolygonF([center + QPointF(x, y) * radius for x, y in _SHAPES[marker]]))


class Swatch(QWidget):
    """A short line with a marker on it, or a plain block of colour."""

    def __init__(self, marker: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._marker = marker
        self._color = QColor()
        self.setFixedSize(self.sizeHint())

    def set_color(self, color: str) -> None:
        self._color = QColor(color)
        self.update()

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(22, 12) if self._marker else QSize(12, 12)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QRectF(self.rect()).center()
        if self._marker:
            painter.setPen(QPen(self._color, 1.5))
            painter.drawLine(QPointF(1, middle.y()), QPointF(self.width() - 1, middle.y()))
            painter.setBrush(self._color)
            draw_marker(painter, middle, self._marker)
        else:
            painter.fillRect(self.rect().adjusted(1, 1, -1, -1), self._color)
        painter.end()


class Key(QWidget):
    """One entry of the key."""

    def __init__(self, name: str, marker: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.swatch = Swatch(marker, self)
        self._name = QLabel(name)
        self._value = QLabel()
        self._value.setProperty("role", "muted")
        for text in (self._name, self._value):
            text.setTextFormat(Qt.TextFormat.PlainText)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(5)
        for part in (self.swatch, self._name, self._value):
            row.addWidget(part)

    @property
    def value(self) -> str:
        return self._value.text()

    def set_value(self, text: str) -> None:
        if text != self._value.text():
            self._value.setText(text)
