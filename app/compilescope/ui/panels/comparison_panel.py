"""The master table: eager beside each configuration; the row that is chosen is what the panes below show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QWidget

from compilescope.domain.matrix import workload_name
from compilescope.ui.findings import Findings
from compilescope.ui.models.comparison import COLUMNS, OFFERED, TableRow, comparison_rows
from compilescope.ui.models.rows import RowsModel
from compilescope.ui.panels.sortable import SortableTable
from compilescope.ui.panels.table import HEADER_HEIGHT, ROW_HEIGHT
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme

REFRESH_MS = 200
MOST_ROWS_SHOWN = 7
# in a low window the table gives way to the chart below it, and scrolls
LOW, ROWS_SHOWN_LOW = 720, 3
# what the table needs at least beside the chart, and the chart for its title and its key
TABLE_WIDTH, CHART_CHARACTERS = 930, 64
# left out in this order where there is no room for all, so that the result stays in view
SPARED_FIRST = (3, 6, 5, 7, 1)
# where a waiting run goes in the queue
MOVES = (("Run earlier", -1, "Alt+Up"), ("Run later", 1, "Alt+Down"))

if TYPE_CHECKING:
    from compilescope.ui.charts.comparison import ComparisonChart


class ComparisonPanel(QWidget):
    """The table is as high as its rows; on a wide window a chart of the same rows stands beside it."""

    repeat_wanted = Signal(str)  # run id
    skip_wanted = Signal(str)
    hurry_wanted = Signal(str)
    move_wanted = Signal(str, int)  # run id, places later, or earlier where negative
    difference_wanted = Signal()

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._findings = findings
        self._theme = theme
        self._is_selecting = False
        self._model = RowsModel(COLUMNS, theme, self)
        self._model.set_bold(self._is_recommended)
        self._baseline: str | None = None
        self._table = SortableTable("Comparison", self._model)
        self._table.setObjectName("comparison")
        # whole rows: the table is as high as a number of them
        self._table.setVerticalScrollMode(SortableTable.ScrollMode.ScrollPerItem)
        self._table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._table.customContextMenuRequested.connect(self._show_menu)
        self._table.order_changed.connect(self.refresh)
        self._table.set_widths((17, 12, 9, 14, 14, 12, 9, 5, 5, *[9] * len(OFFERED), 18), stretch=0)
        self._table.offer(OFFERED)
        self._table.spare_first(SPARED_FIRST)
        self._table.selectionModel().currentRowChanged.connect(self._choose)
        for text, step, keys in MOVES:
            action = QAction(text, self._table)
            action.setShortcut(keys)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.setData(step)
            action.triggered.connect(self._move_chosen)
            self._table.addAction(action)
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
        state.comparison_changed.connect(self._forget_baseline)
        state.shown_run_changed.connect(self._select_shown)
        findings.changed.connect(self.refresh)
        findings.recommended.connect(self.refresh)

    def install_chart(self, chart: ComparisonChart) -> None:
        """Put the chart in, once charts are loaded."""
        self._chart = chart
        self._layout.addWidget(chart)
        self._place_chart()
        self.refresh()

    def _place_chart(self) -> None:
        if self._chart is not None:
            # its title and its key in one line, whatever the font
            least = CHART_CHARACTERS * self.fontMetrics().horizontalAdvance("0")
            self._chart.setFixedWidth(max(least, self._chart.minimumSizeHint().width()))
            self._chart.setVisible(self.width() >= TABLE_WIDTH + self._chart.width())

    def refresh(self) -> None:
        rows = comparison_rows(self._state.runs, self._findings, self._baseline)
        # eager stays on top: it is what the others are read against
        first = [row for row in rows if row.run is None]
        rows = first + self._table.in_order(rows[len(first) :], COLUMNS)
        chosen, order = self.chosen, [row.run.id for row in self._model.rows if row.run]
        grown = len(rows) != self._model.rowCount()
        self._model.set_rows(rows)
        if not grown and order != [row.run.id for row in rows if row.run]:
            self._choose_again(chosen)
        if self._chart is not None:
            self._chart.show_rows(rows)
            self._place_chart()
        if grown:
            self.fit_height()
            self._select_shown()

    def _choose_again(self, chosen: Sequence[str]) -> None:
        """Rows have moved: select those of the same runs."""
        flags = QItemSelectionModel.SelectionFlag
        selection = self._table.selectionModel()
        self._is_selecting = True
        selection.clearSelection()
        for number, row in enumerate(self._model.rows):
            if row.run and row.run.id in chosen:
                selection.select(self._model.index(number, 0), flags.Select | flags.Rows)
                if row.run.id == self._state.shown_id:
                    selection.setCurrentIndex(self._model.index(number, 0), flags.NoUpdate)
        self._is_selecting = False

    def fit_height(self) -> None:
        """As high as the rows, as far as the window has room."""
        most = ROWS_SHOWN_LOW if self.window().height() < LOW else MOST_ROWS_SHOWN
        self.setFixedHeight(HEADER_HEIGHT + min(max(self._model.rowCount(), 2), most) * ROW_HEIGHT + 4)

    def _refresh_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _is_recommended(self, row: TableRow) -> bool:
        recommendation = self._findings.recommendation
        if recommendation is None or self._state.is_busy:
            return False
        found = (recommendation, *recommendation.others)
        if row.run is not None:
            return row.run.id in [one.run_id for one in found]
        names = [one.scope for one in found if one.run_id is None]
        return bool(row.eager) and any(
            not name or name == workload_name(row.workload) for name in names if row.workload
        )

    @property
    def chosen(self) -> list[str]:
        """The runs whose rows are selected, from the top."""
        numbers = sorted(index.row() for index in self._table.selectionModel().selectedRows())
        rows = [self._model.row(number) for number in numbers]
        return [row.run.id for row in rows if row and row.run]

    def set_baseline(self, run_id: str | None) -> None:
        """What speedups refer to; None is eager."""
        self._baseline = run_id
        self.refresh()

    def menu(self, row: TableRow) -> QMenu:
        """What can be done with a row."""
        menu = QMenu(self)
        run = row.run
        if run is not None and not run.is_trace:
            if run.is_over:
                menu.addAction("Run again", lambda: self.repeat_wanted.emit(run.id))
            elif run.processes or run.id in self._state.running:
                menu.addAction("Stop this one", lambda: self.skip_wanted.emit(run.id))
            else:
                menu.addAction("Run next", lambda: self.hurry_wanted.emit(run.id))
                for text, step, keys in MOVES:
                    menu.addAction(text, partial(self.move_wanted.emit, run.id, step)).setShortcut(keys)
                menu.addAction("Skip", lambda: self.skip_wanted.emit(run.id))
            menu.addSeparator()
        menu.addAction("Use as baseline", lambda: self.set_baseline(run.id if run else None))
        difference = menu.addAction("Difference of two configurations", self.difference_wanted.emit)
        difference.setEnabled(len(self._state.runs) > 1)
        return menu

    def _move_chosen(self) -> None:
        action, chosen = self.sender(), self.chosen
        if isinstance(action, QAction) and len(chosen) == 1:
            self.move_wanted.emit(chosen[0], action.data())

    def _show_menu(self, place: QPoint) -> None:
        row = self._model.row(self._table.indexAt(place).row())
        if row:
            menu = self.menu(row)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self._table.viewport().mapToGlobal(place))

    def _forget_baseline(self) -> None:
        self._baseline = None
        self.refresh()

    def _choose(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.run and not self._is_selecting:
            # the table has chosen already, and perhaps a second row beside the first
            self._is_selecting = True
            self._state.show_run(row.run.id)
            self._is_selecting = False

    def _select_shown(self) -> None:
        if self._is_selecting:
            return
        shown = self._state.shown_id
        number = next((i for i, row in enumerate(self._model.rows) if row.run and row.run.id == shown), -1)
        if number >= 0:
            self._is_selecting = True
            self._table.selectRow(number)
            self._is_selecting = False

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_chart()
