"""CUDA graphs: recorded or skipped, why, and where."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex
from PySide6.QtWidgets import QWidget

from compilescope.domain import cudagraphs, units, words
from compilescope.domain.cudagraphs import GraphRow
from compilescope.domain.run import Run
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

_TONES = {"recorded": "good", "skipped": "bad", "warning": "warn"}

COLUMNS: tuple[Column[GraphRow], ...] = (
    Column(
        title="State",
        value=lambda row: row.event.state,
        text=lambda row: row.event.state,
        tone=lambda row: _TONES.get(row.event.state, ""),
    ),
    Column(
        title="Why", value=lambda row: row.reason, text=lambda row: row.reason, tip=lambda row: row.event.reason or ""
    ),
    Column(
        title="Line",
        value=lambda row: (row.event.file or "", row.event.line or 0),
        text=lambda row: words.place(row.event.file, row.event.line, words.UNKNOWN),
        tip=lambda row: words.full_place(row.event.file, row.event.line),
    ),
    Column(title="Compile", value=lambda row: row.event.compile_id or "", text=lambda row: row.event.compile_id or "–"),
    Column(title="Count", value=lambda row: row.count, text=lambda row: units.count(row.count), is_number=True),
)


class CudaGraphsPane(RunPane):
    """What became of them and what to do above, a row for each thing that happened below."""

    SECTIONS = ("cudagraphs", "first_calls", "workload")

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "cudagraphs", parent)
        self._summary = label("", "", wrap=True)
        self._summary.setObjectName("cudagraphs_summary")
        self._summary.setContentsMargins(12, 8, 12, 8)
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("CUDA graphs", self._model)
        self._table.setObjectName("cudagraphs")
        self._table.set_widths((9, 60, 18, 7, 5), stretch=1)
        self._table.activated.connect(self._open_row)
        self.column.addWidget(self._summary)
        self.column.addWidget(self._table, 1)

    def show_run(self, run: Run | None) -> None:
        rows = cudagraphs.rows(run.story.cudagraphs) if run and run.story else []
        self._model.set_rows(rows)
        text = " ".join([cudagraphs.sentence(run), *cudagraphs.remedies(rows)]) if run else ""
        self._summary.setText(text)
        if rows:
            self.show_content()
        else:
            self.show_empty(text)

    def _open_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.event.file and row.event.line:
            self.line_wanted.emit(row.event.file, row.event.line)
