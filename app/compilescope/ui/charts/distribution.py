"""How the times of the shown run spread: a histogram of both sides on one axis, each with its median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from compilescope.domain import units
from compilescope.domain.measures import Summary
from compilescope.domain.run import COMPILED, EAGER, Run
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.charted import Charted
from compilescope.ui.charts.legend import CIRCLE, TRIANGLE, Key, draw_marker
from compilescope.ui.charts.painted import Painted
from compilescope.ui.charts.ticks import ticks, time_labels
from compilescope.ui.theme import Theme

_TOO_FEW = "The distribution stands here once both sides have a few timed blocks."
LEAST_BLOCKS = 3
BINS = 80
# the slowest hundredth would press the rest into a corner
_CUT, _ROOM = 0.99, 1.3
_PAD = 12

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's histogram. `edges` are seconds, one more than counts; `beyond` blocks are slower than the last."""

    name: str
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    summary: Summary
    beyond: int


class DistributionChart(Chart):
    """Timed blocks of both processes together."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._histograms = _Histograms(theme)
        self._known: tuple[str, int] | None = None
        super().__init__(theme, "Distribution of the time per call", self._histograms, parent)
        self._keys = {EAGER: Key("eager", CIRCLE), COMPILED: Key("compiled", TRIANGLE)}
        for key in self._keys.values():
            self.keys.add(key)
        self.restyle()

    def show_runs(self, _rows: Sequence[Charted], shown: Charted | None) -> None:
        state = (shown.run.id, shown.run.revision["all"]) if shown else None
        if state is not None and state == self._known and not self.is_empty:
            return
        self._known = state
        found = sides(shown) if shown else ()
        if not found:
            self.show_empty(_TOO_FEW)
            return
        self._histograms.show_sides(found)
        beyond = sum(side.beyond for side in found)
        self.show_note(f"{units.plural(beyond, 'slower block')} beyond" if beyond else "")
        self.show_view("; ".join(_words(side) for side in found))

    def restyle(self) -> None:
        for side, key in self._keys.items():
            key.swatch.set_color(getattr(self.theme.tokens, side))
        self._histograms.update()


def sides(shown: Charted) -> tuple[Side, ...]:
    """Both sides in common bins; none where one has too few blocks."""
    summaries = (shown.measures.eager, shown.measures.compiled)
    values = [_seconds(shown.run, side) for side in (EAGER, COMPILED)]
    if any(len(one) < LEAST_BLOCKS for one in values) or None in summaries:
        return ()
    low = min(float(one.min()) for one in values)
    high = max(min(float(one.max()), _ROOM * float(np.quantile(one, _CUT))) for one in values)
    edges = np.linspace(low, max(high, low * 1.001), BINS + 1)
    return tuple(
        Side(
            name=name,
            counts=tuple(int(count) for count in np.histogram(one, edges)[0]),
            edges=tuple(map(float, edges)),
            summary=summary,
            beyond=int(np.count_nonzero(one > edges[-1])),
        )
        for name, one, summary in zip((EAGER, COMPILED), values, summaries, strict=True)
        if summary is not None
    )


def _seconds(run: Run, side: str) -> Floats:
    found = [np.asarray(process.samples(side).seconds, dtype=np.float64) for process in run.processes]
    joined = np.concatenate(found) if found else np.empty(0)
    return joined[joined > 0]


def _words(side: Side) -> str:
    spread = units.duration_range((side.summary.p05, side.summary.p95))
    return f"{side.name}: median {units.duration(side.summary.median)}, nine blocks in ten {spread}"


class _Histograms(Painted):
    """Eager above compiled, each from a line of its own."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._sides: tuple[Side, ...] = ()

    def show_sides(self, found: tuple[Side, ...]) -> None:
        self._sides = found
        self.update()

    def tip_at(self, place: QPoint) -> str:
        """How many blocks took about as long as the pointer says."""
        for side, area in self._areas():
            if area.contains(QPointF(place)):
                number = min(int((place.x() - area.left()) / area.width() * BINS), BINS - 1)
                span = units.duration_range(side.edges[number : number + 2])
                return f"{side.name}: {units.plural(side.counts[number], 'block')} of {span}\n{_words(side)}"
        return ""

    def _areas(self) -> list[tuple[Side, QRectF]]:
        axis = QFontMetricsF(self.font()).height() + 8
        height = max((self.height() - axis - _PAD) / 2, 20)
        width = max(self.width() - 2 * _PAD, 40)
        return [(side, QRectF(_PAD, _PAD + i * height, width, height)) for i, side in enumerate(self._sides)]

    def draw(self, painter: QPainter) -> None:
        if not self._sides:
            return
        areas = self._areas()
        first = self._sides[0]
        low, span = first.edges[0], first.edges[-1] - first.edges[0]
        self._draw_axis(painter, areas, low, span)
        for side, area in areas:
            color = QColor(getattr(self._theme.tokens, side.name))
            top = max(side.counts) or 1
            room = area.height() - 18
            for number, count in enumerate(side.counts):
                height = count / top * room
                left = area.left() + number / BINS * area.width()
                painter.fillRect(QRectF(left, area.bottom() - height, area.width() / BINS - 0.5, height), color)
            self._draw_median(painter, side, area, area.left() + (side.summary.median - low) / span * area.width())
            painter.setPen(QColor(self._theme.tokens.border))
            painter.drawLine(area.bottomLeft(), area.bottomRight())

    def _draw_median(self, painter: QPainter, side: Side, area: QRectF, x: float) -> None:
        tokens, metrics = self._theme.tokens, painter.fontMetrics()
        painter.setPen(QPen(QColor(tokens.text), 1.4, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, area.top() + 8), QPointF(x, area.bottom()))
        painter.setPen(QPen(QColor(tokens.text), 1))
        painter.setBrush(QColor(tokens.field))
        draw_marker(painter, QPointF(x, area.top() + 8), CIRCLE if side.name == EAGER else TRIANGLE)
        text = f"{side.name}: median {units.duration(side.summary.median)}"
        width = metrics.horizontalAdvance(text) + 4
        left = x + 8 if x + 8 + width < area.right() else x - 8 - width
        painter.drawText(QRectF(left, area.top(), width, metrics.height()), int(Qt.AlignmentFlag.AlignVCenter), text)

    def _draw_axis(self, painter: QPainter, areas: list[tuple[Side, QRectF]], low: float, span: float) -> None:
        tokens, area = self._theme.tokens, areas[-1][1]
        values = ticks(low, low + span, max(int(area.width() / 110), 1))
        for value, text in zip(values, time_labels(values), strict=True):
            x = round(area.left() + (value - low) / span * area.width()) + 0.5
            painter.setPen(QColor(tokens.grid))
            painter.drawLine(QPointF(x, areas[0][1].top()), QPointF(x, area.bottom()))
            painter.setPen(QColor(tokens.muted))
            where = QRectF(min(max(x - 55, 0), self.width() - 110), area.bottom() + 3, 110, self.height())
            painter.drawText(where, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), text)

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 140)
