"""The shown run in figures, and its latency as it was measured."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedLayout, QVBoxLayout, QWidget

from compilescope.domain import units
from compilescope.domain.measures import Measures, Summary
from compilescope.domain.run import Run
from compilescope.ui.findings import Findings
from compilescope.ui.panels.chart_slot import ChartSlot
from compilescope.ui.panels.failure_view import FailureView
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import FigureCard

REFRESH_MS = 200
# where the chart would be lower than this, the figures give up their notes
LEAST_CHART = 220


class TimingPane(QWidget):
    """Cards above, chart below; a run that failed before anything was timed shows its error instead."""

    line_wanted = Signal(str, int)  # file, line

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._findings = findings
        self._theme = theme
        self._build()
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.refresh)
        state.run_changed.connect(self._refresh_soon)
        state.shown_run_changed.connect(self.refresh)
        findings.changed.connect(self._refresh_soon)
        self.refresh()

    def refresh(self) -> None:
        run = self._state.shown
        measures = self._findings.of(run).measures
        if run and run.is_over and run.outcome != "finished" and measures.compiled is None:
            self._failure.show_run(run)
            self._stack.setCurrentIndex(1)
            return
        self._stack.setCurrentIndex(0)
        self._show_figures(run, measures)

    def _refresh_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _show_figures(self, run: Run | None, measures: Measures) -> None:
        self._eager.show_figure(*_median(measures.eager))
        self._compiled.show_figure(*_median(measures.compiled))
        speedup = measures.speedup
        interval = f"95 %: {units.ratio(speedup.low)} to {units.ratio(speedup.high)}" if speedup else ""
        self._speedup.show_figure(units.ratio(speedup.value if speedup else None), interval)
        self._first.show_figure(units.duration(measures.cold_first_call_s), _first_note(run, measures))
        self._graphs.show_figure(*_graphs(run))

    def _build(self) -> None:
        self._eager = FigureCard("Eager, time per call")
        self._compiled = FigureCard("Compiled, time per call")
        self._speedup = FigureCard("Speedup")
        self._first = FigureCard("First call")
        self._graphs = FigureCard("Graphs")
        self._cards = (self._eager, self._compiled, self._speedup, self._first, self._graphs)
        cards = QHBoxLayout()
        cards.setSpacing(8)
        for card in self._cards:
            cards.addWidget(card, 1)
        self.chart = ChartSlot(self._state)
        # in a low window the chart gives way, and not the figures
        self.chart.setMinimumHeight(1)
        figures = QWidget()
        inside = QVBoxLayout(figures)
        inside.setContentsMargins(10, 10, 10, 6)
        inside.setSpacing(8)
        inside.addLayout(cards)
        inside.addWidget(self.chart, 1)
        self._failure = FailureView(self._theme)
        self._failure.line_wanted.connect(self.line_wanted)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(figures)
        self._stack.addWidget(self._failure)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.height() - max(card.full_height() for card in self._cards)
        for card in self._cards:
            card.set_brief(room < LEAST_CHART)


def _median(summary: Summary | None) -> tuple[str, str]:
    if summary is None:
        return "–", ""
    return units.duration(summary.median), units.duration_range((summary.p05, summary.p95))


def _first_note(run: Run | None, measures: Measures) -> str:
    if run is not None and run.uses_own_cache:
        return "your own cache"
    warm = measures.warm_first_call_s
    return f"warm cache {units.duration(warm)}" if warm is not None else "cold cache"


def _graphs(run: Run | None) -> tuple[str, str]:
    if run is None or run.graphs is None:
        return units.count(None), ""
    notes = [units.plural(run.breaks, "break") if run.breaks else "no breaks"]
    if run.recompiles:
        notes.append(units.plural(run.recompiles, "recompile"))
    return units.count(run.graphs), ", ".join(notes)
