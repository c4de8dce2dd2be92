"""Draws compiler phases over time: nested bars, thread under thread; zoomed with the wheel and moved by dragging."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from compilescope.domain import units, words
from compilescope.domain.run import PhaseRow
from compilescope.ui.charts import groups
from compilescope.ui.charts.lanes import Lane, Lanes
from compilescope.ui.charts.ticks import ticks, time_labels
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import plain_tip

LANE, THREAD, AXIS = 20, 18, 24
_LEAST_LABEL = 26
_LEAST_SPAN = 1e-6
_SIDE = 8
_CLICK = 4


class TimelineView(QAbstractScrollArea):
    """Signals: `phase_selected` (PhaseRow | None), `range_chosen` when the user has zoomed or moved."""

    phase_selected = Signal(object)
    range_chosen = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lanes = Lanes()
        self._now = 0.0
        self._begin, self._end = 0.0, 1.0
        self._selected: PhaseRow | None = None
        self._pressed: QPoint | None = None
        self._dragged: QPoint | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.restyle()

    @property
    def range(self) -> tuple[float, float]:
        """The times at the left and the right end, in seconds."""
        return self._begin, self._end

    def show_lanes(self, lanes: Lanes, now: float) -> None:
        """Show phases as of `now`."""
        self._lanes, self._now = lanes, now
        self._update_height()
        self.viewport().update()

    def set_range(self, begin: float, end: float) -> None:
        self._begin, self._end = begin, max(end, begin + _LEAST_SPAN)
        self.viewport().update()

    def select(self, row: PhaseRow | None) -> None:
        """Mark a phase; tells of it when it is another one."""
        if row is not self._selected:
            self._selected = row
            self.viewport().update()
            self.phase_selected.emit(row)

    def restyle(self) -> None:
        tokens = self._theme.tokens
        self._colors = {group: groups.color(group, tokens) for group in words.PHASES}
        self._inks = {group: groups.ink(color) for group, color in self._colors.items()}
        self.viewport().update()

    def phase_at(self, point: QPoint) -> PhaseRow | None:
        """The phase under a point of the viewport."""
        for lane, top in self._tops():
            if top <= point.y() < top + LANE and point.y() > AXIS:
                slack = 3 * self._seconds_per_pixel()
                return lane.at(self._time(point.x()), now=self._now, slack=slack)
        return None

    def _seconds_per_pixel(self) -> float:
        return (self._end - self._begin) / max(self.viewport().width() - 2 * _SIDE, 1)

    def _time(self, x: float) -> float:
        return self._begin + (x - _SIDE) * self._seconds_per_pixel()

    def _tops(self) -> list[tuple[Lane, int]]:
        """Every lane with its upper edge in the viewport."""
        result, y = [], AXIS - self.verticalScrollBar().value()
        for lanes in self._lanes.threads.values():
            y += THREAD
            for lane in lanes:
                result.append((lane, y))
                y += LANE
        return result

    def _update_height(self) -> None:
        lanes = sum(map(len, self._lanes.threads.values()))
        needed = AXIS + THREAD * len(self._lanes.threads) + LANE * lanes + 6
        bar = self.verticalScrollBar()
        bar.setRange(0, max(needed - self.viewport().height(), 0))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(LANE)

    def _draw(self, painter: QPainter) -> None:
        painter.fillRect(self.viewport().rect(), QColor(self._theme.tokens.field))
        times = ticks(self._begin, self._end, max(self.viewport().width() // 110, 1))
        self._draw_grid(painter, times)
        height = self.viewport().height()
        for lane, top in self._tops():
            if AXIS - LANE < top < height:
                self._draw_lane(painter, lane, top)
        self._draw_threads(painter)
        self._draw_axis(painter, times)

    def _draw_lane(self, painter: QPainter, lane: Lane, top: int) -> None:
        per_pixel = self._seconds_per_pixel()
        other = self._colors["other"]
        for row, stop in lane.between(self._begin, self._end, now=self._now, least=per_pixel):
            left = max(_SIDE + (row.began - self._begin) / per_pixel, -2.0)
            right = min(_SIDE + (stop - self._begin) / per_pixel, self.viewport().width() + 2.0)
            # a hair of space tells neighbours apart, where there is room for one
            width = right - left - 1 if right - left > 3 else max(right - left, 1.0)
            bar = QRectF(left, top, width, LANE - 2)
            painter.fillRect(bar, self._colors.get(row.group, other))
            if row.duration_s is None:
                self._draw_open(painter, bar)
            if row is self._selected:
                painter.setPen(QPen(QColor(self._theme.tokens.text), 2))
                painter.drawRect(bar.adjusted(1, 1, -1, -1))
            if width >= _LEAST_LABEL:
                self._draw_name(painter, row, bar)

    def _draw_open(self, painter: QPainter, bar: QRectF) -> None:
        """A phase that is still on has a bright edge where it grows."""
        painter.fillRect(QRectF(bar.right() - 2, bar.top(), 3, bar.height()), QColor(self._theme.tokens.accent))

    def _draw_name(self, painter: QPainter, row: PhaseRow, bar: QRectF) -> None:
        # the name stays in view while the bar's beginning is not
        room = bar.intersected(QRectF(self.viewport().rect())).adjusted(5, 0, -4, 0)
        text = painter.fontMetrics().elidedText(row.name, Qt.TextElideMode.ElideRight, int(room.width()))
        if len(text) > 1:
            painter.setPen(self._inks.get(row.group, self._inks["other"]))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), text)

    def _draw_grid(self, painter: QPainter, times: list[float]) -> None:
        painter.setPen(QColor(self._theme.tokens.grid))
        for when in times:
            x = round(_SIDE + (when - self._begin) / self._seconds_per_pixel()) + 0.5
            painter.drawLine(QPointF(x, AXIS), QPointF(x, self.viewport().height()))

    def _draw_axis(self, painter: QPainter, times: list[float]) -> None:
        tokens, width = self._theme.tokens, self.viewport().width()
        painter.fillRect(QRectF(0, 0, width, AXIS - 1), QColor(tokens.field))
        painter.setPen(QColor(tokens.border))
        painter.drawLine(QPointF(0, AXIS - 0.5), QPointF(width, AXIS - 0.5))
        painter.setPen(QColor(tokens.muted))
        for when, text in zip(times, time_labels(times), strict=True):
            x = _SIDE + (when - self._begin) / self._seconds_per_pixel()
            half = painter.fontMetrics().horizontalAdvance(text) / 2 + 1
            x = min(max(x, half + 2), width - half - 2)
            painter.drawText(QRectF(x - half, 0, 2 * half, AXIS - 2), int(Qt.AlignmentFlag.AlignCenter), text)

    def _draw_threads(self, painter: QPainter) -> None:
        y = AXIS - self.verticalScrollBar().value()
        painter.setPen(QColor(self._theme.tokens.muted))
        for number, lanes in enumerate(self._lanes.threads.values()):
            text = thread_name(number)
            painter.drawText(QRectF(_SIDE, y, 300, THREAD), int(Qt.AlignmentFlag.AlignVCenter), text)
            y += THREAD + LANE * len(lanes)

    def _zoom(self, factor: float, x: float) -> None:
        center = self._time(x)
        left, right = (center - self._begin) * factor, (self._end - center) * factor
        if left + right >= _LEAST_SPAN:
            self.set_range(center - left, center + right)
            self.range_chosen.emit()

    def _move(self, pixels: float) -> None:
        seconds = pixels * self._seconds_per_pixel()
        self.set_range(self._begin - seconds, self._end - seconds)
        self.range_chosen.emit()

    # Qt overrides

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self._draw(painter)
        painter.end()

    def resizeEvent(self, _event: QEvent) -> None:
        self._update_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        across, down = event.angleDelta().x(), event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() - (down or across) // 3)
        elif abs(across) > abs(down):
            self._move(across / 2)
        elif down:
            self._zoom(0.85 ** (down / 120), event.position().x())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._dragged = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        if self._pressed is None or self._dragged is None:
            over = self.phase_at(point)
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)
            return
        if (point - self._pressed).manhattanLength() < _CLICK and self._dragged == self._pressed:
            return
        moved, self._dragged = point - self._dragged, point
        self._move(moved.x())
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() - moved.y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            if self._pressed is not None and self._dragged == self._pressed:
                self.select(self.phase_at(self._pressed))
            self._pressed = self._dragged = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        middle, part = self.viewport().width() / 2, self.viewport().width() / 8
        match event.key():
            case Qt.Key.Key_W | Qt.Key.Key_Plus:
                self._zoom(0.8, middle)
            case Qt.Key.Key_S | Qt.Key.Key_Minus:
                self._zoom(1.25, middle)
            case Qt.Key.Key_A | Qt.Key.Key_Left:
                self._move(part)
            case Qt.Key.Key_D | Qt.Key.Key_Right:
                self._move(-part)
            case _:
                super().keyPressEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            row = self.phase_at(event.pos())
            QToolTip.showText(event.globalPos(), plain_tip(tip(row)) if row else "", self)
            return True
        return super().viewportEvent(event)


def thread_name(number: int) -> str:
    """Threads by the order in which they came; their own ids say nothing."""
    return f"compile thread {number}" if number else "main thread"


def tip(row: PhaseRow) -> str:
    """What is known of a phase, a fact a line."""
    took = units.duration(row.duration_s) if row.duration_s is not None else "still on"
    lines = [row.name, f"{words.phase(row.group)} · {took} · began at {units.duration(row.began)}"]
    if row.compile_id:
        lines.append(f"compile id {row.compile_id}")
    return "\n".join(lines)
