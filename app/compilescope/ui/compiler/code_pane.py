"""Graphs, generated code and kernels."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QFrame, QSplitter, QVBoxLayout, QWidget

from compilescope.domain import events as e
from compilescope.domain.run import Run
from compilescope.ui.compiler import kernels
from compilescope.ui.compiler.code_view import CodeView
from compilescope.ui.compiler.find_bar import FindBar
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.compiler.text_tree import TITLES, TextTree
from compilescope.ui.compiler.texts import Worker, text_of
from compilescope.ui.models.rows import RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

KERNELS_HEIGHT = 120


class CodePane(RunPane):
    """Left what there is, right the text that was chosen, below the kernels."""

    SECTIONS = ("texts", "kernels", "compiles", "samples", "profiles")
    failed = Signal(str)
    said = Signal(str)

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "code", parent)
        self._text: e.Text | None = None
        self._worker = Worker("texts", self)
        self._worker.done.connect(self._show_text)
        self._worker.failed.connect(self._show_problem)
        self._build(theme)
        self.tree.text_chosen.connect(self._read)
        self.bar.copy.clicked.connect(self._copy)
        self.bar.save.clicked.connect(self._save)
        self._table.activated.connect(self._open_kernel)
        self._table.clicked.connect(self._open_kernel)

    def show_run(self, run: Run | None) -> None:
        has_texts = bool(run and any(process.texts for process in run.processes))
        if not has_texts:
            self.tree.show_run(run)
            self.show_empty(_empty(run))
            return
        self.show_content()
        self.tree.show_run(run)
        rows = kernels.kernel_rows(run)
        self._model.set_rows(rows)
        self._launches.setText(kernels.launches_sentence(run, rows))
        self._kernels.setVisible(bool(rows))

    def close_reader(self) -> None:
        self._worker.close()

    def _build(self, theme: Theme) -> None:
        self.tree = TextTree()
        self.view = CodeView(theme, "Graph or generated code")
        self.bar = FindBar(self.view, "code")
        self._model = RowsModel(kernels.COLUMNS, theme, self)
        self._table = DataTable("Kernels", self._model)
        self._table.setObjectName("kernels")
        self._table.set_widths((20, 8, 8, 8, 26), stretch=0)
        self._launches = label("", "muted", wrap=True)
        self._launches.setObjectName("launches")
        self._launches.setContentsMargins(10, 5, 10, 5)
        self._kernels = QFrame()
        below = QVBoxLayout(self._kernels)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(0)
        below.addWidget(self._launches)
        below.addWidget(self._table)
        shown = QWidget()
        right = QVBoxLayout(shown)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.bar)
        right.addWidget(self.view, 1)
        upper = QSplitter(Qt.Orientation.Horizontal)
        upper.addWidget(self.tree)
        upper.addWidget(shown)
        upper.setSizes([220, 740])
        upper.setStretchFactor(1, 1)
        upper.setChildrenCollapsible(False)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(upper)
        split.addWidget(self._kernels)
        split.setSizes([KERNELS_HEIGHT * 3, KERNELS_HEIGHT])
        split.setStretchFactor(0, 1)
        split.setChildrenCollapsible(False)
        self.column.addWidget(split)

    def _read(self, text: e.Text) -> None:
        if text is self._text:
            return
        self._text = text
        self.bar.title.setText(f"{TITLES.get(text.kind, text.kind)}, {text.compile_id or '?'}")
        self._worker.ask(text, lambda: text_of(text))

    def _show_text(self, text: e.Text, content: str) -> None:
        if text is self._text:
            self.view.show_text(content)
            self.bar.find_next(here=True)

    def _show_problem(self, text: e.Text, sentence: str) -> None:
        if text is self._text:
            self.view.show_text(sentence)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.view.text)
        self.said.emit("The text is on the clipboard.")

    def _save(self) -> None:
        name, _ = QFileDialog.getSaveFileName(self, "Save the text", self._file_name(), "Python (*.py);;All files (*)")
        if not name:
            return
        try:
            Path(name).write_text(self.view.text, "utf-8")
        except OSError as error:
            self.failed.emit(f"{name} could not be written: {error.strerror or error}.")
        else:
            self.said.emit(f"Written: {name}")

    def _file_name(self) -> str:
        text = self._text
        if text is None:
            return "text.py"
        return f"{text.kind}_{(text.compile_id or '').replace('/', '_').replace('!', '')}.py"

    def _open_kernel(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        place = row.event.places[0] if row and row.event.places else None
        is_source = index.column() == len(kernels.COLUMNS) - 1
        if place and place.line and is_source:
            self.line_wanted.emit(place.file, place.line)
        elif row and self.view.text:
            self.bar.search.setText(row.event.name)
            self.bar.find_next(here=True)


def _empty(run: Run | None) -> str:
    if run is None or run.story is None:
        return "Graphs and generated code appear here while the model is compiled."
    if run.story.has_compiled or run.is_over:
        return "There is no code: the compiler captured nothing." if not run.story.graphs else "The trace was not kept."
    return "No graph so far."
