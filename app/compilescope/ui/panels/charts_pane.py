"""The charts of a comparison, one at a time; each is made when it is first looked at."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from compilescope.ui.findings import Findings
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import chip

if TYPE_CHECKING:
    from compilescope.ui.charts.charted import GalleryChart

REFRESH_MS = 250


@dataclass(frozen=True, kw_only=True)
class ChartSpec:
    """One chart: its button, and the class that draws it, by module, since drawing is loaded late."""

    title: str
    module: str
    name: str
    tip: str


CHARTS = (
    ChartSpec(title="Speedup", module="speedups", name="SpeedupChart", tip="Every configuration, with its interval"),
    ChartSpec(
        title="Distribution", module="distribution", name="DistributionChart", tip="How the shown run's times spread"
    ),
    ChartSpec(title="First call", module="costs", name="FirstCallChart", tip="Cold and warm, by compiler phase"),
    ChartSpec(title="Memory", module="costs", name="MemoryChart", tip="Peak of eager and of compiled"),
    ChartSpec(
        title="Cumulative time", module="over", name="CumulativeChart", tip="When the shown run has paid for compiling"
    ),
    ChartSpec(title="Input sizes", module="over", name="ShapesChart", tip="The shown run's time per call by size"),
)


class ChartsPane(QWidget):
    """Follows the comparison and the shown run while it can be seen."""

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._findings = findings
        self._theme = theme
        self._charts: dict[int, GalleryChart] = {}
        self._build()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        for signal in (state.run_changed, state.comparison_changed, state.shown_run_changed, findings.changed):
            signal.connect(self._refresh_soon)

    def choose(self, number: int) -> None:
        """Show one of CHARTS."""
        self._buttons.button(number).setChecked(True)
        self._show(number)

    def refresh(self) -> None:
        from compilescope.ui.charts.charted import Charted

        if not self.isVisible():
            return
        number = self._buttons.checkedId()
        findings = [(run, self._findings.of(run)) for run in self._state.runs]
        rows = [Charted(run=run, measures=found.measures, verdict=found.verdict) for run, found in findings]
        shown = next((row for row in rows if row.run.id == self._state.shown_id), None)
        self._chart(number).show_runs(rows, shown)

    def _chart(self, number: int) -> GalleryChart:
        if number not in self._charts:
            spec = CHARTS[number]
            module = importlib.import_module(f"compilescope.ui.charts.{spec.module}")
            chart = getattr(module, spec.name)(self._theme)
            self._pages.addWidget(chart)
            self._charts[number] = chart
        return self._charts[number]

    def _show(self, number: int) -> None:
        chart = self._chart(number)
        assert isinstance(chart, QWidget)
        self._pages.setCurrentWidget(chart)
        self.refresh()

    def _refresh_soon(self) -> None:
        if self.isVisible() and not self._timer.isActive():
            self._timer.start()

    def _build(self) -> None:
        self._buttons = QButtonGroup(self)
        row = QHBoxLayout()
        row.setContentsMargins(10, 8, 10, 2)
        row.setSpacing(6)
        for number, spec in enumerate(CHARTS):
            button = chip(spec.title, f"Chart {spec.title.lower()}")
            button.setToolTip(spec.tip)
            self._buttons.addButton(button, number)
            row.addWidget(button)
        row.addStretch(1)
        self._buttons.button(0).setChecked(True)
        self._buttons.idClicked.connect(self._show)
        self._pages = QStackedWidget()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(row)
        layout.addWidget(self._pages, 1)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show(self._buttons.checkedId())
