"""Time per call, eager and compiled, as the samples arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QWidget

from compilescope.domain import units
from compilescope.domain.run import COMPILED, EAGER, Run
from compilescope.domain.statistics import balanced, quantile
from compilescope.ui.charts.legend import CIRCLE, TRIANGLE, Key
from compilescope.ui.charts.plot import Plot
from compilescope.ui.charts.points import Points
from compilescope.ui.charts.scale import unit_for
from compilescope.ui.charts.ticks import rounded_up
from compilescope.ui.theme import Theme

SIDES = (EAGER, COMPILED)
_MARKERS = {EAGER: CIRCLE, COMPILED: TRIANGLE}
_MOST_MARKERS = 400
# a sample slower than this many times the 95th percentile does not flatten all others
_TALL = 1.6
# pixels between the names of two processes
_GAP = 12
_NO_RUN = "Choose a run to see what a call takes, eager and compiled."
_NO_SAMPLES = "Samples appear here as soon as the timing starts."
_NEVER_TIMED = "This run ended before anything was timed."


class LatencyChart(Plot):
    """Both sides of one run over the time spent measuring; the cold process first, then the warm one."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "Time per call", parent)
        self._run: Run | None = None
        self._points = Points()
        self._unit = unit_for(1e-3)
        self._was_over = False
        self._curves: dict[tuple[int, str], Any] = {}
        self._drawn: dict[tuple[int, str], object] = {}
        self._borders: list[Any] = []
        self._keys_by_side = {side: Key(side, _MARKERS[side]) for side in SIDES}
        for key in self._keys_by_side.values():
            self.keys.add(key)
        self.label("bottom", "seconds of measuring")
        self._spans: tuple[tuple[float, str], ...] = ()
        self._build_names()
        self.restyle()
        self.show_run(None)

    def show_run(self, run: Run | None) -> None:
        """Show another run, or none."""
        self._run = run
        self._points = Points()
        for item in (*self._curves.values(), *self._borders):
            self.plot.removeItem(item)
        self._curves.clear()
        self._drawn.clear()
        self._borders.clear()
        self._spans = ()
        self._names.setTicks([[]])
        self.fit()
        self.refresh()

    def refresh(self) -> None:
        """Take in what the run has got since. Cheap where that is nothing; meant for ten times a second."""
        if self._run is None:
            self.show_empty(_NO_RUN)
            return
        is_changed = self._points.read(self._run.processes) or self._was_over != self._run.is_over
        self._was_over = self._run.is_over
        if not self._points.count:
            self.show_empty(_NEVER_TIMED if self._run.is_over else _NO_SAMPLES)
        elif is_changed or self.is_empty:
            self._draw()

    def _draw(self) -> None:
        medians = self._medians()
        self._unit = unit_for(max(medians.values()))
        self.label("left", f"{self._unit.name} per call")
        with_markers = self._points.count <= _MOST_MARKERS
        for (process, side), buffer in self._points.series.items():
            state = (buffer.count, self._unit, with_markers)
            if self._drawn.get((process, side)) != state:
                self._drawn[process, side] = state
                curve = self._curve(process, side)
                curve.setSymbol(_MARKERS[side] if with_markers else None)
                curve.setData(buffer.x, buffer.y * self._unit.per_second)
        self._draw_borders()
        for side, key in self._keys_by_side.items():
            key.set_value(f"median {units.duration(medians[side])}" if side in medians else "")
        if self.is_fitted:
            self.fit_range()
        self.show_view("; ".join(f"{side}: median {units.duration(value)}" for side, value in medians.items()))

    def _medians(self) -> dict[str, float]:
        """As the figures beside the chart have them: each process weighs the same."""
        found: dict[str, list[list[float]]] = {}
        for (_, side), buffer in self._points.series.items():
            if len(buffer.y):
                found.setdefault(side, []).append(np.sort(buffer.y).tolist())
        return {side: quantile(balanced(found[side]), 0.5) for side in SIDES if side in found}

    def _curve(self, process: int, side: str) -> Any:
        curve = self._curves.get((process, side))
        if curve is None:
            # samples are never NaN, and peaks must not be lost where there are more points than pixels
            curve = pg.PlotDataItem(skipFiniteCheck=True, symbolSize=5, pxMode=True)
            curve.setDownsampling(auto=True, method="peak")
            curve.setClipToView(True)
            self._curves[process, side] = curve
            self._paint(curve, side)
            self.plot.addItem(curve)
        return curve

    def _paint(self, curve: Any, side: str) -> None:
        color = self.theme.color(side)
        # wider or smoothed pens take half a second a frame for noisy lines
        curve.setPen(pg.mkPen(color, width=1))
        curve.setSymbolPen(None)
        curve.setSymbolBrush(pg.mkBrush(color))

    def _build_names(self) -> None:
        """The processes are named above the plot, where no sample gets."""
        self._names = self.plot.getAxis("top")
        self.plot.showAxis("top")
        self._names.setStyle(tickLength=0, autoExpandTextSpace=True, hideOverlappingLabels=False)
        self._names.enableAutoSIPrefix(False)
        self.plot.getViewBox().sigResized.connect(self._name_processes)
        self.plot.getViewBox().sigXRangeChanged.connect(self._name_processes)

    def _draw_borders(self) -> None:
        for index in range(len(self._borders), len(self._points.begins)):
            border = pg.InfiniteLine(self._points.begins[index])
            self._borders.append(border)
            self._paint_border(border)
            self.plot.addItem(border, ignoreBounds=True)
        self._name_processes()

    def _name_processes(self) -> None:
        """Each name over the middle of its process, as long as there is room for."""
        if self._run is None:
            return
        box = self.plot.getViewBox()
        (left, right), pixels = box.viewRange()[0], max(box.width(), 1.0)
        metrics = QFontMetricsF(self._names.style["tickFont"] or self.font())
        spans = []
        ends = [*self._points.begins[1:], self._points.end]
        for process, begin, end in zip(self._run.processes, self._points.begins, ends, strict=False):
            seen = max(begin, left), min(end, right)
            room = (seen[1] - seen[0]) / max(right - left, 1e-9) * pixels - _GAP
            names = (f"{process.start} process", process.start)
            name = next((name for name in names if metrics.horizontalAdvance(name) <= room), "")
            if name:
                spans.append((sum(seen) / 2, name))
        if tuple(spans) != self._spans:
            self._spans = tuple(spans)
            self._names.setTicks([spans])

    def _paint_border(self, border: Any) -> None:
        border.setPen(pg.mkPen(self.theme.tokens.strong_border, style=pg.QtCore.Qt.PenStyle.DashLine))

    def fit_range(self) -> None:
        values = self._points.side(EAGER), self._points.side(COMPILED)
        tops = [min(np.max(side), _TALL * np.quantile(side, 0.95)) for side in values if len(side)]
        if not tops:
            return
        # round ends, so that axes are drawn anew now and then and not ten times a second
        top = rounded_up(float(max(tops)) * 1.08 * self._unit.per_second, 20)
        above = int(sum(np.count_nonzero(side * self._unit.per_second > top) for side in values))
        self.show_note(f"{units.plural(above, 'slower sample')} above" if above else "")
        is_over = self._run is not None and self._run.is_over
        end = max(self._points.end, 1e-3) if is_over else max(rounded_up(self._points.end, 10), 1.0)
        if self.plot.getViewBox().viewRange() != [[0, end], [0, top]]:
            self.plot.setRange(xRange=(0, end), yRange=(0, top), padding=0)
        # else it would find out while it paints, and paint twice
        self.plot.getViewBox().prepareForPaint()

    def restyle(self) -> None:
        super().restyle()
        self._names.setPen(pg.mkPen(None))
        for key in self._keys_by_side:
            self._keys_by_side[key].swatch.set_color(getattr(self.theme.tokens, key))
        for (_, side), curve in self._curves.items():
            self._paint(curve, side)
        for border in self._borders:
            self._paint_border(border)
