"""Recompiles: which function, what guard failed, old and new value."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QPlainTextEdit, QSplitter, QStackedLayout, QVBoxLayout, QWidget

from compilescope.domain import units, words
from compilescope.domain.advice.recompiles import fix
from compilescope.domain.run import RecompileRow, Run
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

MOST_VALUES = 6


def _place(row: RecompileRow) -> str:
    return words.place(row.event.file, row.event.line, words.UNKNOWN)


def _source(row: RecompileRow) -> str:
    event = row.event
    if event.source is None:
        return "–"
    return event.source if event.dimension is None else f"{event.source}, dimension {event.dimension}"


def _values(row: RecompileRow) -> str:
    known = [row.events[0].expected, *(event.actual for event in row.events)]
    if all(event.actual is None for event in row.events):
        # a guard on a value names the old one only, and the next guard the one that came after
        known = [*dict.fromkeys(event.expected for event in row.events if event.expected), "another"]
    values = [str(value) for value in known if value is not None]
    return " → ".join(values if len(values) <= MOST_VALUES else [*values[: MOST_VALUES - 1], "…"]) or "–"


def explanation(run: Run, row: RecompileRow, others: Sequence[Run] = ()) -> str:
    """One kind of recompile: what happened, what to do, and the compiler's own words."""
    event = row.event
    times = "once" if row.count == 1 else f"{row.count} times"
    what = f"{_source(row)} went {_values(row)}" if event.source else "a guard failed"
    parts = [
        f"{event.function or 'A function'} was compiled again {times}, since {what}.",
        f"What to try\n{fix(run, row, others)}",
        f"The guard that failed, of compile {event.failed_compile_id or '?'}\n{(event.reason or event.guard).strip()}",
    ]
    return "\n\n".join(parts)


COLUMNS: tuple[Column[RecompileRow], ...] = (
    Column(title="Function", value=lambda row: row.event.function or "", text=lambda row: row.event.function or "–"),
    Column(title="Line", value=_place, text=_place, tip=lambda row: words.full_place(row.event.file, row.event.line)),
    Column(title="What changed", value=_source, text=_source, tip=_source),
    Column(title="From → to", value=_values, text=_values, tip=_values),
    Column(
        title="Guard that failed",
        value=lambda row: row.event.guard,
        text=lambda row: " ".join((row.event.guard or row.event.reason).split()),
        tip=lambda row: row.event.reason,
    ),
    Column(title="Count", value=lambda row: row.count, text=lambda row: units.count(row.count), is_number=True),
)


class RecompilesPane(QWidget):
    """Follows the shown run."""

    line_wanted = Signal(str, int)  # file, line

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._shown: tuple[str | None, int] = (None, -1)
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("Recompiles", self._model)
        self._table.setObjectName("recompiles")
        self._table.set_widths((16, 20, 24, 16, 30, 6), stretch=4)
        self._table.activated.connect(self._open_row)
        self._limit = label("", "note", wrap=True)
        self._limit.setContentsMargins(12, 6, 12, 6)
        filled = QWidget()
        inside = QVBoxLayout(filled)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(self._limit)
        inside.addWidget(self._split())
        self._empty = label("", "muted")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(filled)
        state.run_changed.connect(self.refresh)
        state.shown_run_changed.connect(self.refresh)
        self.refresh()

    def _split(self) -> QSplitter:
        self._explanation = QPlainTextEdit()
        self._explanation.setObjectName("explanation")
        self._explanation.setReadOnly(True)
        self._explanation.setAccessibleName("Explanation of the recompile")
        self._explanation.setTabChangesFocus(True)
        self._explanation.document().setDocumentMargin(10)
        self._table.selectionModel().currentRowChanged.connect(self._explain)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._table)
        split.addWidget(self._explanation)
        split.setSizes([200, 140])
        split.setStretchFactor(0, 1)
        split.setChildrenCollapsible(False)
        return split

    def refresh(self) -> None:
        run = self._state.shown
        key = (run.id, run.revision["recompiles"]) if run else (None, 0)
        has_compiled = bool(run and run.story and run.story.has_compiled)
        waiting = "Recompiles appear here when an input no longer fits what was compiled."
        self._empty.setText("No recompiles." if has_compiled else waiting)
        if key == self._shown:
            return
        self._shown = key
        story = run.story if run else None
        rows = list(story.recompiles.values()) if story else []
        limits = story.recompile_limits if story else []
        self._model.set_rows(rows)
        names = ", ".join(dict.fromkeys(limit.function or "a function" for limit in limits))
        self._limit.setText(f"The recompile limit was reached: {names} now runs eager for other inputs.")
        self._limit.setVisible(bool(limits))
        self._stack.setCurrentIndex(1 if rows or limits else 0)
        if rows and not self._table.currentIndex().isValid():
            self._table.selectRow(0)
        else:
            self._explain(self._table.currentIndex())

    def _explain(self, index: QModelIndex) -> None:
        run, row = self._state.shown, self._model.row(index.row())
        self._explanation.setPlainText(explanation(run, row, self._state.runs) if run and row else "")

    def _open_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.event.file and row.event.line:
            self.line_wanted.emit(row.event.file, row.event.line)
