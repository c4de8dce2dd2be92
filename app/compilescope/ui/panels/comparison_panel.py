"""The master table: eager beside each configuration; the row that is chosen is what the panes below show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from compilescope.ui.findings import Findings
from compilescope.ui.models.comparison import COLUMNS, ComparisonRow, comparison_rows
from compilescope.ui.models.rows import RowsModel
from compilescope.ui.panels.table import HEADER_HEIGHT, ROW_HEIGHT, DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme

REFRESH_MS = 200
MOST_ROWS_SHOWN = 7
WIDE = 1360
# where there is no room for all, the spread and the warm start are the first to go
NARROW = 860
SPARE_COLUMNS = (2, 5)
CHART_WIDTH = 430

if TYPE_CHECKING:
    from compilescope.ui.charts.comparison import ComparisonChart


class ComparisonPanel(QWidget):
    """The table is as high as its rows; on a wide window a chart of the same rows stands beside it."""

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._findings = findings
        self._theme = theme
        self._is_selecting = False
        self._model = RowsModel(COLUMNS, theme, self)
        self._model.set_bold(self._is_recommended)
        self._table = DataTable("Comparison", self._model)
        self._table.setObjectName("comparison")
        self._table.set_widths((22, 9, 18, 14, 9, 11, 7, 7, 22), stretch=8)
        self._table.selectionModel().currentRowChanged.connect(self._choose)
        self.setFocusProxy(self._table)
        self._chart: ComparisonChart | None = None
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addWidget(self._table, 1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.refresh)
        state.run_changed.connect(self._refresh_soon)
        state.activity_changed.connect(self._refresh_soon)
        state.comparison_changed.connect(self.refresh)
        state.shown_run_changed.connect(self._select_shown)
        findings.changed.connect(self.refresh)
        findings.recommended.connect(self.refresh)

    def install_chart(self, chart: ComparisonChart) -> None:
        """Put the chart in, once charts are loaded."""
        self._chart = chart
        chart.setFixedWidth(CHART_WIDTH)
        self._layout.addWidget(chart)
        chart.setVisible(self.width() >= WIDE)
        self.refresh()

    def refresh(self) -> None:
        rows = comparison_rows(self._state.runs, self._findings)
        grown = len(rows) != self._model.rowCount()
        self._model.set_rows(rows)
        if self._chart is not None:
            self._chart.show_rows(rows)
        if grown:
            shown = min(max(len(rows), 2), MOST_ROWS_SHOWN)
            self.setFixedHeight(HEADER_HEIGHT + shown * ROW_HEIGHT + 4)
            self._select_shown()

    def _refresh_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _is_recommended(self, row: ComparisonRow) -> bool:
        recommendation = self._findings.recommendation
        if recommendation is None or self._state.is_busy:
            return False
        if row.run is None:
            return recommendation.run_id is None and row.summary is not None
        return row.run.id == recommendation.run_id

    def _choose(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.run and not self._is_selecting:
            self._state.show_run(row.run.id)

    def _select_shown(self) -> None:
        shown = self._state.shown_id
        number = next((i for i, row in enumerate(self._model.rows) if row.run and row.run.id == shown), -1)
        if number >= 0:
            self._is_selecting = True
            self._table.selectRow(number)
            self._is_selecting = False

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for column in SPARE_COLUMNS:
            self._table.setColumnHidden(column, self.width() < NARROW)
        if self._chart is not None:
            self._chart.setVisible(self.width() >= WIDE)
