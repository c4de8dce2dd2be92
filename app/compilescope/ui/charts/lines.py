"""A few lines over a common axis, both axes from zero; the pointer reads their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QToolTip

from compilescope.ui.charts.legend import draw_marker
from compilescope.ui.charts.painted import Painted
from compilescope.ui.charts.ticks import ticks, time_labels
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import plain_tip

_TOP, _RIGHT, _GAP = 12, 18, 6
_LEAST_TICK = 26


@dataclass(frozen=True, kw_only=True)
class Line:
    """`token` names its colour; a marker stands at each point, where it has one. Heights are seconds."""

    name: str
    token: str
    points: tuple[tuple[float, float], ...]
    marker: str = ""
    is_dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point of interest, with its words."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What to draw. `marks`: places on the horizontal axis and their texts; `tip`: what is said about a place there."""

    lines: tuple[Line, ...]
    end: float
    marks: tuple[tuple[float, str], ...]
    tip: Callable[[float], str]
    spots: tuple[Spot, ...] = ()
    is_stepwise: bool = False

    @property
    def top(self) -> float:
        return max((y for line in self.lines for _, y in line.points), default=1.0) * 1.06


class Lines(Painted):
    """Draws; a hairline follows the pointer, and a tooltip says what is there."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._drawing: Drawing | None = None
        self._pointer: float | None = None
        self.setMouseTracking(True)

    def show_drawing(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self.update()

    def tip_at(self, place: QPoint) -> str:
        drawing = self._drawing
        return drawing.tip(self._value(drawing, place.x())) if drawing else ""

    def _value(self, drawing: Drawing, x: float) -> float:
        area = self._area(drawing)
        value = min(max((x - area.left()) / max(area.width(), 1) * drawing.end, 0.0), drawing.end)
        if drawing.is_stepwise and drawing.marks:
            return min((place for place, _ in drawing.marks), key=lambda place: abs(place - value))
        return value

    def _area(self, drawing: Drawing) -> QRectF:
        metrics = QFontMetricsF(self.font())
        names = max(metrics.horizontalAdvance(text) for text in time_labels(self._heights(drawing)))
        left, bottom = names + 2 * _GAP, metrics.height() + 2 * _GAP
        return QRectF(left, _TOP, max(self.width() - left - _RIGHT, 40), max(self.height() - _TOP - bottom, 40))

    def _heights(self, drawing: Drawing) -> list[float]:
        return ticks(0, drawing.top, max((self.height() - 50) // _LEAST_TICK, 1))

    def _point(self, drawing: Drawing, area: QRectF, place: tuple[float, float]) -> QPointF:
        x, y = place
        return QPointF(area.left() + x / drawing.end * area.width(), area.bottom() - y / drawing.top * area.height())

    def draw(self, painter: QPainter) -> None:
        drawing = self._drawing
        if drawing is None:
            return
        area = self._area(drawing)
        self._draw_axes(painter, drawing, area)
        for line in drawing.lines:
            color = QColor(getattr(self._theme.tokens, line.token))
            style = Qt.PenStyle.DashLine if line.is_dashed else Qt.PenStyle.SolidLine
            painter.setPen(QPen(color, 2, style))
            points = [self._point(drawing, area, place) for place in line.points]
            painter.drawPolyline(points)
            painter.setPen(QPen(color, 1))
            painter.setBrush(color)
            for point in points if line.marker else ():
                draw_marker(painter, point, line.marker)
        for spot in drawing.spots:
            self._draw_spot(painter, spot, self._point(drawing, area, (spot.x, spot.y)), area.bottom())
        if self._pointer is not None:
            painter.setPen(QPen(QColor(self._theme.tokens.strong_border), 1, Qt.PenStyle.DotLine))
            x = self._point(drawing, area, (self._value(drawing, self._pointer), 0)).x()
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))

    def _draw_axes(self, painter: QPainter, drawing: Drawing, area: QRectF) -> None:
        tokens, height = self._theme.tokens, QFontMetricsF(self.font()).height()
        values = self._heights(drawing)
        for value, text in zip(values, time_labels(values), strict=True):
            y = round(self._point(drawing, area, (0, value)).y()) + 0.5
            painter.setPen(QColor(tokens.grid))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(tokens.muted))
            where = QRectF(0, y - height / 2, area.left() - _GAP, height)
            painter.drawText(where, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
        room = area.width() / max(len(drawing.marks), 1)
        for place, text in drawing.marks:
            x = self._point(drawing, area, (place, 0)).x()
            painter.setPen(QColor(tokens.grid))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(QColor(tokens.muted))
            width = max(room - _GAP, 40)
            left = min(max(x - width / 2, 0), self.width() - width)
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, int(width))
            where = QRectF(left, area.bottom() + _GAP, width, height)
            painter.drawText(where, int(Qt.AlignmentFlag.AlignCenter), shown)

    def _draw_spot(self, painter: QPainter, spot: Spot, point: QPointF, bottom: float) -> None:
        tokens, metrics = self._theme.tokens, painter.fontMetrics()
        painter.setPen(QPen(QColor(tokens.text), 1.4))
        painter.setBrush(QColor(tokens.field))
        painter.drawEllipse(point, 4, 4)
        width = metrics.horizontalAdvance(spot.text)
        box = QRectF(point.x() + 10, point.y() + 6, width + 8, metrics.height() + 2)
        box.moveRight(min(box.right(), self.width() - 2))
        if box.bottom() > bottom:
            # the axis has its own words there
            box.moveBottom(point.y() - 6)
        painter.fillRect(box, QColor(tokens.field))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), spot.text)

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 120)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._pointer = event.position().x()
        self.update()
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(self.tip_at(event.position().toPoint())), self)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._pointer = None
        self.update()
