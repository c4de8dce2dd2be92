"""Time per call of every configuration beside its own eager: medians, and where nine blocks in ten lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QScrollArea, QToolTip, QWidget

from compilescope.domain import units
from compilescope.domain.comparison import interval_text
from compilescope.domain.measures import Measures, Summary
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.legend import CIRCLE, TRIANGLE, draw_marker
from compilescope.ui.charts.ticks import ticks, time_labels
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import plain_tip

_NO_ROWS = "Run configurations to see them beside eager."
_NO_TIMES = "Bars appear here as soon as a configuration has been timed."
_LEAST_ROW, _MOST_ROW = 20, 34
_AXIS = 22
_GAP = 10
_LABEL_SHARE = 0.34


class ChartRow(Protocol):
    """A row to draw; `eager` are medians measured beside it, of which a configuration has one."""

    @property
    def label(self) -> str: ...

    @property
    def is_eager(self) -> bool: ...

    @property
    def eager(self) -> tuple[float, ...]: ...

    @property
    def summary(self) -> Summary | None: ...

    @property
    def measures(self) -> Measures: ...


@dataclass(frozen=True, kw_only=True)
class _Bar:
    label: str
    summary: Summary | None
    eager: tuple[float, ...]
    text: str
    is_eager: bool

    @property
    def median(self) -> float | None:
        """How long the bar is; that of eager begins where its range does."""
        if self.is_eager:
            return min(self.eager, default=None)
        return self.summary.median if self.summary else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """What the whisker spans."""
        if self.is_eager:
            return (min(self.eager), max(self.eager)) if self.eager else None
        return (self.summary.p05, self.summary.p95) if self.summary else None

    @property
    def end(self) -> float:
        """The longest time that is drawn."""
        return max(self.median or 0.0, *(self.spread or ()), *self.eager, 0.0)


class ComparisonChart(Chart):
    """Horizontal bars, so that long names of configurations can be read."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._bars = _Bars(theme)
        area = QScrollArea()
        area.setWidget(self._bars)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        super().__init__(theme, "Time per call by configuration", area, parent)
        self.show_rows(())

    def show_rows(self, rows: Sequence[ChartRow]) -> None:
        """Show these rows, eager first."""
        if not any(row.summary or row.eager for row in rows):
            self.show_empty(_NO_TIMES if rows else _NO_ROWS)
            return
        bars = [_bar(row) for row in rows]
        self._bars.show_bars(bars)
        self.show_note("whisker: p05 – p95   dashes: own eager")
        self.show_view("; ".join(f"{bar.label}: {bar.text}" for bar in bars))

    def restyle(self) -> None:
        self._bars.update()


def _bar(row: ChartRow) -> _Bar:
    if row.is_eager:
        text = units.duration_range(row.eager) if row.eager else "not timed"
    else:
        text = units.duration(row.summary.median) if row.summary else "not timed"
    if row.summary and row.measures.speedup:
        text += f"  {interval_text(row.measures.speedup)}"
    return _Bar(label=row.label, summary=row.summary, eager=row.eager, text=text, is_eager=row.is_eager)


class _Bars(QWidget):
    """Draws the bars; as high as they need."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._bars: list[_Bar] = []
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_bars(self, bars: list[_Bar]) -> None:
        if bars != self._bars:
            self._bars = bars
            self.setMinimumHeight(self.minimumSizeHint().height())
            self.update()

    def _columns(self) -> tuple[float, float, float]:
        """Where names end, where bars begin, and where texts begin."""
        metrics = QFontMetricsF(self.font())
        names = max(metrics.horizontalAdvance(bar.label) for bar in self._bars)
        texts = max(metrics.horizontalAdvance(bar.text) for bar in self._bars)
        left = _GAP + min(names, self.width() * _LABEL_SHARE)
        return left, left + _GAP, max(self.width() - texts - 2 * _GAP, left + 40)

    def _row(self, index: int) -> QRectF:
        room = self.height() - (_AXIS if self._has_axis() else 0)
        height = min(room / len(self._bars), _MOST_ROW)
        return QRectF(0, index * height, self.width(), height)

    def _has_axis(self) -> bool:
        return self.height() >= len(self._bars) * _LEAST_ROW + _AXIS

    def _draw(self, painter: QPainter) -> None:
        names_end, begin, end = self._columns()
        top = max(bar.end for bar in self._bars) * 1.03
        scale = (end - begin) / top
        if self._has_axis():
            self._draw_axis(painter, begin, top, scale)
        for index, bar in enumerate(self._bars):
            self._draw_bar(painter, bar, self._row(index), (names_end, begin, scale))

    def _draw_bar(self, painter: QPainter, bar: _Bar, row: QRectF, columns: tuple[float, float, float]) -> None:
        tokens, (names_end, begin, scale) = self._theme.tokens, columns
        name = QRectF(_GAP, row.top(), names_end - _GAP, row.height())
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(tokens.muted if bar.is_eager else tokens.text))
        shown = painter.fontMetrics().elidedText(bar.label, Qt.TextElideMode.ElideMiddle, int(name.width()) + 1)
        painter.drawText(name, int(middle | Qt.AlignmentFlag.AlignRight), shown)
        if bar.median is not None:
            right = begin + bar.median * scale
            color = QColor(tokens.eager if bar.is_eager else tokens.compiled)
            inset = row.height() * 0.2
            painter.fillRect(QRectF(begin, row.top() + inset, right - begin, row.height() - 2 * inset), color)
        if bar.eager and not bar.is_eager:
            self._draw_own_eager(painter, begin + bar.eager[0] * scale, row)
        if bar.median is not None and bar.spread:
            self._draw_spread(painter, bar.spread, row.center().y(), (begin, scale))
            self._draw_point(painter, QPointF(begin + bar.median * scale, row.center().y()), bar)
        width = painter.fontMetrics().horizontalAdvance(bar.text)
        text = QRectF(begin + bar.end * scale + _GAP, row.top() + 1, width + 2, row.height() - 2)
        painter.setPen(QColor(tokens.muted))
        painter.drawText(text, int(middle), bar.text)

    def _draw_own_eager(self, painter: QPainter, at: float, row: QRectF) -> None:
        x = round(at) + 0.5
        painter.setPen(QPen(QColor(self._theme.tokens.eager), 1.6, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, row.top() + 2), QPointF(x, row.bottom() - 2))

    def _draw_spread(
        self, painter: QPainter, spread: tuple[float, float], y: float, scale: tuple[float, float]
    ) -> None:
        low, high = (scale[0] + value * scale[1] for value in spread)
        painter.setPen(QPen(QColor(self._theme.tokens.text), 1.2))
        painter.drawLine(QPointF(low, y), QPointF(high, y))
        for x in (low, high):
            painter.drawLine(QPointF(x, y - 3), QPointF(x, y + 3))

    def _draw_point(self, painter: QPainter, point: QPointF, bar: _Bar) -> None:
        painter.setPen(QPen(QColor(self._theme.tokens.text), 1))
        painter.setBrush(QColor(self._theme.tokens.field))
        draw_marker(painter, point, CIRCLE if bar.is_eager else TRIANGLE)

    def _draw_axis(self, painter: QPainter, begin: float, top: float, scale: float) -> None:
        tokens = self._theme.tokens
        bottom = self._row(len(self._bars) - 1).bottom()
        values = ticks(0, top, max(int(top * scale / 90), 1))
        for value, text in zip(values, time_labels(values), strict=True):
            x = round(begin + value * scale) + 0.5
            painter.setPen(QColor(tokens.grid))
            painter.drawLine(QPointF(x, 0), QPointF(x, bottom))
            painter.setPen(QColor(tokens.muted))
            painter.drawText(QRectF(x - 50, bottom + 2, 100, _AXIS - 4), int(Qt.AlignmentFlag.AlignCenter), text)

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        return QSize(200, len(self._bars) * _LEAST_ROW)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.tokens.field))
        if self._bars:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._draw(painter)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = event.pos().y()
            bar = next((b for i, b in enumerate(self._bars) if self._row(i).contains(5, at)), None)
            QToolTip.showText(event.globalPos(), plain_tip(_tip(bar)) if bar else "", self)
            return True
        return super().event(event)


def _tip(bar: _Bar) -> str:
    if bar.is_eager and bar.eager:
        return f"{bar.label}\nmedians beside each configuration: {bar.text}"
    if bar.summary is None:
        return f"{bar.label}: {bar.text}"
    spread = units.duration_range((bar.summary.p05, bar.summary.p95))
    own = f"\nits own eager {units.duration_range(bar.eager)}" if bar.eager else ""
    blocks = units.plural(bar.summary.samples, "block")
    return f"{bar.label}\nmedian {bar.text}{own}\nnine blocks in ten: {spread}\n{blocks}"
