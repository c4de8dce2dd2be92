"""Every configuration's speedup with its 95 % interval, over eager of its own phase and precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from compilescope.domain import units
from compilescope.domain.comparison import interval_text, shown_range
from compilescope.domain.statistics import Interval
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.charted import Charted
from compilescope.ui.charts.costs import scrolled
from compilescope.ui.charts.legend import CIRCLE, DIAMOND, TRIANGLE, draw_marker
from compilescope.ui.charts.painted import Painted
from compilescope.ui.charts.ticks import ticks
from compilescope.ui.theme import Theme

_NOTHING = "Speedups stand here once a configuration has enough timed calls to tell one."
_GAP, _AXIS, _LABEL_SHARE = 10, 22, 0.3


@dataclass(frozen=True, kw_only=True)
class _Row:
    label: str
    interval: Interval

    @property
    def token(self) -> str:
        if self.interval.contains(1.0):
            return "eager"
        return "good" if self.interval.value > 1 else "warn"

    @property
    def marker(self) -> str:
        """A shape for each side of the line, so that the colour is never the only sign."""
        return {"good": TRIANGLE, "warn": DIAMOND}.get(self.token, CIRCLE)


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """From speedups to places; what lies beyond the axis stands at its end."""

    left: float
    low: float
    high: float
    factor: float

    def x(self, value: float) -> float:
        return self.left + (min(max(value, self.low), self.high) - self.low) * self.factor


class SpeedupChart(Chart):
    """Right of the line is faster than eager."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._rows = _Intervals(theme)
        super().__init__(theme, "Speedup over its own eager, with the 95 % interval", scrolled(self._rows), parent)

    def show_runs(self, rows: Sequence[Charted], _shown: Charted | None) -> None:
        found = [_Row(label=row.label, interval=row.speedup) for row in rows if row.speedup]
        if not found:
            self.show_empty(_NOTHING)
            return
        self._rows.show_rows(found)
        self.show_view("; ".join(f"{row.label}: {interval_text(row.interval)}" for row in found))

    def restyle(self) -> None:
        self._rows.update()


class _Intervals(Painted):
    """A marker and its interval a row; as high as they need."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._rows: list[_Row] = []

    def show_rows(self, rows: list[_Row]) -> None:
        if rows != self._rows:
            self._rows = rows
            self.setMinimumHeight(self.minimumSizeHint().height())
            self.update()

    def tip_at(self, place: QPoint) -> str:
        number = int((place.y() - 4) // self._height)
        if not 0 <= number < len(self._rows):
            return ""
        row = self._rows[number]
        low, high = units.ratio(row.interval.low), units.ratio(row.interval.high)
        return f"{row.label}\nspeedup {interval_text(row.interval)}\n95 % interval {low} to {high}"

    @property
    def _height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def draw(self, painter: QPainter) -> None:
        if not self._rows:
            return
        metrics = painter.fontMetrics()
        names = min(max(metrics.horizontalAdvance(row.label) for row in self._rows), self.width() * _LABEL_SHARE)
        texts = max(metrics.horizontalAdvance(interval_text(row.interval)) for row in self._rows)
        left, right = _GAP + names + _GAP, max(self.width() - texts - 3 * _GAP, _GAP + names + 60)
        low, high = shown_range([row.interval for row in self._rows])
        room = 0.04 * (high - low) or 0.05
        low, high = low - room, high + room
        scale = (right - left) / (high - low)
        self._draw_axis(painter, (left, low, high), scale)
        for number, row in enumerate(self._rows):
            area = QRectF(0, 4 + number * self._height, self.width(), self._height)
            painter.setPen(QColor(self._theme.tokens.text))
            shown = metrics.elidedText(row.label, Qt.TextElideMode.ElideMiddle, int(names) + 1)
            name = QRectF(_GAP, area.top(), names, area.height())
            painter.drawText(name, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight), shown)
            self._draw_interval(painter, row, area, _Scale(left=left, low=low, high=high, factor=scale))
            text = QRectF(right + 2 * _GAP, area.top(), texts + 4, area.height())
            painter.setPen(QColor(self._theme.tokens.muted))
            painter.drawText(text, int(Qt.AlignmentFlag.AlignVCenter), interval_text(row.interval))

    def _draw_interval(self, painter: QPainter, row: _Row, area: QRectF, scale: _Scale) -> None:
        low, high = scale.x(row.interval.low), scale.x(row.interval.high)
        value = scale.x(row.interval.value)
        y, color = area.center().y(), QColor(getattr(self._theme.tokens, row.token))
        painter.setPen(QPen(color, 2))
        painter.drawLine(QPointF(low, y), QPointF(high, y))
        for end, x in ((row.interval.low, low), (row.interval.high, high)):
            # a cap where the interval ends, an arrow where it goes on beyond the axis
            back = 5 * ((end < scale.low) - (end > scale.high))
            for side in (-4, 4):
                painter.drawLine(QPointF(x + back, y + side), QPointF(x, y))
        painter.setPen(QPen(color, 1))
        painter.setBrush(color)
        draw_marker(painter, QPointF(value, y), row.marker, 4.5)

    def _draw_axis(self, painter: QPainter, span: tuple[float, float, float], scale: float) -> None:
        left, low, high = span
        tokens, bottom = self._theme.tokens, 8 + len(self._rows) * self._height
        for value in ticks(low, high, max(int((high - low) * scale / 70), 1)):
            x = round(left + (value - low) * scale) + 0.5
            painter.setPen(QColor(tokens.grid))
            painter.drawLine(QPointF(x, 0), QPointF(x, bottom))
            painter.setPen(QColor(tokens.muted))
            painter.drawText(QRectF(x - 40, bottom, 80, _AXIS - 4), int(Qt.AlignmentFlag.AlignCenter), f"{value:.3g}×")
        x = round(left + (1 - low) * scale) + 0.5
        painter.setPen(QPen(QColor(tokens.eager), 1.6, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, 0), QPointF(x, bottom))

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        return QSize(240, round(len(self._rows) * self._height) + _AXIS + 12)
