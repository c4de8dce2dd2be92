"""A chart's key: a line with its marker, a name, and a value that changes as data comes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

CIRCLE, TRIANGLE, SQUARE, DIAMOND = "o", "t1", "s", "d"
MARKERS = (CIRCLE, TRIANGLE, SQUARE, DIAMOND)
_R = 3.5
_KEY_GAP = 16
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


class Keys(QWidget):
    """A row of keys; those that have no room are left out, rather than widen the window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keys: list[QWidget] = []
        self._hidden: set[QWidget] = set()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def add(self, key: QWidget) -> None:
        key.setParent(self)
        self._keys.append(key)
        self._lay_out()

    def set_shown(self, key: QWidget, is_shown: bool) -> None:
        if is_shown == (key in self._hidden):
            (self._hidden.discard if is_shown else self._hidden.add)(key)
            self._lay_out()

    def _lay_out(self) -> None:
        x = 0
        for key in self._keys:
            size = key.sizeHint()
            is_shown = key not in self._hidden and x + size.width() <= self.width()
            key.setVisible(is_shown)
            if is_shown:
                key.setGeometry(x, (self.height() - size.height()) // 2, size.width(), size.height())
            if key not in self._hidden:
                x += size.width() + _KEY_GAP

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(300, max((key.sizeHint().height() for key in self._keys), default=16))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._lay_out()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            # a value has become longer
            self._lay_out()
        return super().event(event)
