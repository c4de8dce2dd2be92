"""Where a chart of the shown run stands once charts are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedLayout, QWidget

from compilescope.ui.state import AppState
from compilescope.ui.widgets import label

if TYPE_CHECKING:
    from compilescope.ui.charts.latency import LatencyChart
    from compilescope.ui.charts.timeline import Timeline

REFRESH_MS = 100


class ChartSlot(QWidget):
    """Refreshes its chart ten times a second while there is news and someone can see it."""

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._chart: LatencyChart | Timeline | None = None
        self._layout = QStackedLayout(self)
        waiting = label("Charts are loading.", "faint")
        waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._layout.addWidget(waiting)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self._refresh)
        state.run_changed.connect(self._refresh_if_idle)
        state.shown_run_changed.connect(self._show_run)
        state.activity_changed.connect(self._follow_activity)

    def install(self, chart: LatencyChart | Timeline) -> None:
        self._chart = chart
        self._layout.addWidget(chart)
        self._layout.setCurrentWidget(chart)
        self._show_run()
        self._follow_activity()

    def _show_run(self) -> None:
        if self._chart is not None:
            self._chart.show_run(self._state.shown)

    def _refresh(self) -> None:
        if self._chart is not None and self.isVisible():
            self._chart.refresh()

    def _refresh_if_idle(self) -> None:
        """The last events of a run may come when the timer has been stopped."""
        if not self._timer.isActive():
            self._refresh()

    def _follow_activity(self) -> None:
        if self._state.is_busy and self._chart is not None:
            self._timer.start()
        else:
            self._timer.stop()
            self._refresh()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()
