"""Dynamic shapes: which dimensions became symbolic, which were specialised, and by which line."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex
from PySide6.QtWidgets import QWidget

from compilescope.domain import words
from compilescope.domain.run import Run
from compilescope.domain.shapes import Dimension, dimensions, sentence
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

_TONES = {"specialised": "warn", "symbolic": "good", "unbacked": "good"}


def _place(row: Dimension) -> str:
    return words.place(row.place.file, row.place.line) if row.place else words.UNKNOWN


COLUMNS: tuple[Column[Dimension], ...] = (
    Column(title="Size", value=lambda row: row.source, text=lambda row: row.source, tip=lambda row: row.source),
    Column(
        title="State",
        value=lambda row: row.state,
        text=lambda row: row.state,
        tone=lambda row: _TONES.get(row.state, ""),
        explanation="Symbolic: any size is served by the same code. Specialised: the size is compiled in, and another "
        "one compiles again.",
    ),
    Column(
        title="What it may be",
        value=lambda row: row.sentence,
        text=lambda row: row.sentence,
        tip=lambda row: "\n".join(row.conditions) or row.sentence,
    ),
    Column(
        title="Range",
        value=lambda row: row.range,
        text=lambda row: row.range or "–",
        explanation="0 and 1 are always compiled apart, so a range begins at 2.",
    ),
    Column(title="First seen", value=lambda row: row.value or "", text=lambda row: row.value or "–", is_number=True),
    Column(
        title="Line",
        value=_place,
        text=_place,
        tip=lambda row: words.full_place(row.place.file, row.place.line) if row.place else "",
        explanation="The line that constrained or specialised it, or else where it came up.",
    ),
    Column(title="Compile", value=lambda row: row.compile_id or "", text=lambda row: row.compile_id or "–"),
    Column(title="Symbol", value=lambda row: row.symbol, text=lambda row: row.symbol),
)


class ShapesPane(RunPane):
    """One row a symbol of one compile."""

    SECTIONS = ("symbols",)

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "shapes", parent)
        self._summary = label("", "", wrap=True)
        self._summary.setObjectName("shapes_summary")
        self._summary.setContentsMargins(12, 8, 12, 8)
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("Dynamic shapes", self._model)
        self._table.setObjectName("shapes")
        self._table.set_widths((20, 11, 36, 11, 10, 22, 8, 7), stretch=2)
        self._table.activated.connect(self._open_row)
        self._table.clicked.connect(self._open_link)
        self.column.addWidget(self._summary)
        self.column.addWidget(self._table, 1)

    def show_run(self, run: Run | None) -> None:
        rows = dimensions(run.story.symbols) if run and run.story else []
        self._model.set_rows(rows)
        self._summary.setText(sentence(rows))
        if rows:
            self.show_content()
        else:
            self.show_empty(sentence(rows) if run else "Sizes that become symbolic appear here.")

    def _open_link(self, index: QModelIndex) -> None:
        if index.column() == 5:
            self._open_row(index)

    def _open_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.place and row.place.line:
            self.line_wanted.emit(row.place.file, row.place.line)
