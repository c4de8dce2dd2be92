"""Graph breaks: a row each, beside the source line that caused it, with explanation and hints below."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QSplitter, QStackedLayout, QVBoxLayout, QWidget

from compilescope.domain import units, words
from compilescope.domain.breakcost import costs
from compilescope.domain.run import GraphBreakRow, Run
from compilescope.domain.verdict import step_sentence
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.source_view import SourceView
from compilescope.ui.panels.table import HEADER_HEIGHT, ROW_HEIGHT, DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

MOST_ROWS_SHOWN = 5


def _place(row: GraphBreakRow) -> str:
    return words.place(row.event.file, row.event.line, words.UNKNOWN)


def _yes(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"


def _reason(row: GraphBreakRow) -> str:
    return " ".join((row.event.reason or row.event.kind).split())


COLUMNS: tuple[Column[GraphBreakRow], ...] = (
    Column(
        title="Line",
        value=lambda row: (row.event.file or "", row.event.line or 0),
        text=_place,
        tip=lambda row: words.full_place(row.event.file, row.event.line),
    ),
    Column(title="Function", value=lambda row: row.event.function or "", text=lambda row: row.event.function or "–"),
    Column(title="Reason", value=_reason, text=_reason, tip=lambda row: row.event.reason),
    Column(
        title="Id",
        value=lambda row: row.event.id or "",
        text=lambda row: row.event.id or "–",
        explanation="The number under which PyTorch documents this kind of graph break.",
    ),
    Column(
        title="In loop",
        value=lambda row: bool(row.event.in_loop),
        text=lambda row: _yes(row.event.in_loop),
        tone=lambda row: "warn" if row.event.in_loop else "",
        explanation="A break inside a loop keeps the whole function from being compiled.",
    ),
    Column(
        title="Frame skipped",
        value=lambda row: bool(row.event.frame_skipped),
        text=lambda row: _yes(row.event.frame_skipped),
        tone=lambda row: "bad" if row.event.frame_skipped else "",
        explanation="Whether the function around the break is left to eager as a whole.",
    ),
    Column(title="Count", value=lambda row: row.count, text=lambda row: units.count(row.count), is_number=True),
)


class BreaksPane(QWidget):
    """Follows the shown run; the row that is selected stays selected while others arrive."""

    line_wanted = Signal(str, int)  # file, line

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._shown: tuple[str | None, int] = (None, -1)
        self._explained: tuple[str | None, int] = (None, -1)
        self._build(theme)
        self._table.selectionModel().currentRowChanged.connect(self._show_row)
        self._table.activated.connect(self._open_row)
        state.run_changed.connect(self.refresh)
        state.shown_run_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        run = self._state.shown
        key = (run.id, run.revision["graph_breaks"]) if run else (None, 0)
        if key[0] != self._shown[0]:
            self._table.clearSelection()
            self._source.show_file(self._state.script, self._state.text_then(self._state.script))
        self._empty.setText(empty_text(run))
        if key != self._shown:
            self._shown = key
            rows = list(run.story.graph_breaks.values()) if run and run.story else []
            self._model.set_rows(rows)
            self._stack.setCurrentIndex(1 if rows else 0)
            self._mark()
            self._fit_table(len(rows))
            if rows and not self._table.selectionModel().hasSelection():
                self._table.selectRow(0)
        if run and (run.id, run.revision["compiles"]) != self._explained:
            self._explained = (run.id, run.revision["compiles"])
            self._explain()

    def _fit_table(self, rows: int) -> None:
        """As high as its rows, up to a third of the pane."""
        wanted = HEADER_HEIGHT + min(max(rows, 2), MOST_ROWS_SHOWN) * ROW_HEIGHT + 4
        self._split.setSizes([wanted, max(self.height() - wanted, 100)])

    def _build(self, theme: Theme) -> None:
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("Graph breaks", self._model)
        self._table.setObjectName("graph_breaks")
        self._table.set_widths((28, 16, 30, 8, 8, 14, 7), stretch=2)
        self._source = SourceView(theme, "Source of the graph break")
        self._explanation = QPlainTextEdit()
        self._explanation.setObjectName("explanation")
        self._explanation.setReadOnly(True)
        self._explanation.setAccessibleName("Explanation and hints")
        self._explanation.setTabChangesFocus(True)
        self._explanation.document().setDocumentMargin(10)
        lower = QSplitter(Qt.Orientation.Horizontal)
        lower.addWidget(self._source)
        lower.addWidget(self._explanation)
        lower.setSizes([600, 340])
        self._split = split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._table)
        split.addWidget(lower)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        lower.setChildrenCollapsible(False)
        self._empty: QLabel = label("", "muted", wrap=True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = QStackedLayout()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(split)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._stack)

    def _show_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row is None:
            return
        if row.event.file:
            file = Path(row.event.file)
            self._source.show_file(file, self._state.text_then(file))
            self._mark()
        self._source.go_to(row.event.line)
        self._explain()

    def _explain(self) -> None:
        """What is known of the row that is selected; more is known at the end of the compile than at the break."""
        row, run = self._model.row(self._table.currentIndex().row()), self._state.shown
        text = explanation(row, run) if row and run else ""
        if text != self._explanation.toPlainText():
            self._explanation.setPlainText(text)

    def _mark(self) -> None:
        path = str(self._source.path) if self._source.path else ""
        lines = {row.event.line: "warn" for row in self._model.rows if row.event.line and row.event.file == path}
        self._source.mark(lines)

    def _open_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row and row.event.file and row.event.line:
            self.line_wanted.emit(row.event.file, row.event.line)


def explanation(row: GraphBreakRow, run: Run) -> str:
    """Everything that is known about one break, as plain text."""
    event = row.event
    parts = [_reason(row)]
    if event.explanation and event.explanation.strip() != event.reason.strip():
        parts.append(event.explanation.strip())
    if event.hints:
        parts.append("What to try\n" + "\n".join(f"•  {hint}" for hint in event.hints))
    if event.consequences:
        parts.append("What followed\n" + "\n".join(f"•  {text}" for text in event.consequences))
    parts.append("What it costs\n" + "\n".join(f"•  {text}" for text in costs(run, row)))
    if event.stack:
        stack = [f"{words.place(place.file, place.line)}  {place.function or ''}".rstrip() for place in event.stack]
        parts.append("Called from\n" + "\n".join(stack))
    return "\n\n".join(parts)


def empty_text(run: Run | None) -> str:
    """Why there is no row."""
    if run is None or run.story is None:
        return "Graph breaks appear here while the model is compiled."
    if run.story.has_compiled and run.story.graphs:
        if around := step_sentence(run.story):
            return f"No graph breaks in the script. {around}"
        return f"No graph breaks: {run.label} was captured in {units.plural(run.story.graphs, 'graph')}."
    if run.story.has_compiled:
        return "No graph breaks, but no graph either: the compiler skipped the model."
    if run.is_over and run.error and run.error.stage == "compile" and run.config.fullgraph:
        return "With fullgraph a graph break is an error: Timing tells what ended this run."
    return "None was seen before the run ended." if run.is_over else "No graph breaks so far."
