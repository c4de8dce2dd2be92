"""The cache ledger: every lookup, what was saved, and why a key was not found."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QPlainTextEdit, QSplitter, QWidget

from compilescope.domain import cacheledger, units
from compilescope.domain.cacheledger import Lookup
from compilescope.domain.events import Cache
from compilescope.domain.keyhistory import Explanation, Sources, StoredKey, explain, stored_keys, words
from compilescope.domain.run import Run
from compilescope.ui.compiler.cache_places import CachePlaces
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.compiler.texts import Worker
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

KEY_CHARACTERS = 12
MOST_REMEMBERED = 400
_TONES = {"hit": "good", "miss": "warn", "bypass": "bad"}

COLUMNS: tuple[Column[Lookup], ...] = (
    Column(
        title="Start",
        value=lambda row: (row.process, row.event.at),
        text=lambda row: row.start,
        explanation="The cold process finds an empty cache (or your own, where that was chosen), the warm one what the "
        "cold one stored.",
    ),
    Column(title="Cache", value=lambda row: row.name, text=lambda row: row.name),
    Column(
        title="Result",
        value=lambda row: row.event.state,
        text=lambda row: row.event.state,
        tone=lambda row: _TONES.get(row.event.state, ""),
    ),
    Column(title="Compile", value=lambda row: row.event.compile_id or "", text=lambda row: row.event.compile_id or "–"),
    Column(
        title="Key",
        value=lambda row: row.event.key or "",
        text=lambda row: f"{row.event.key[:KEY_CHARACTERS]}…" if row.event.key else "–",
        tip=lambda row: row.event.key or "",
    ),
    Column(
        title="Took",
        value=lambda row: row.event.duration_s,
        text=lambda row: units.duration(row.event.duration_s),
        is_number=True,
        explanation="What the work took that the miss made necessary.",
    ),
    Column(
        title="Saved",
        value=lambda row: row.event.saved_s,
        text=lambda row: units.duration(row.event.saved_s),
        is_number=True,
        explanation="By torch's own account. What AOTAutograd's hit saves holds what Inductor's would have.",
    ),
    Column(
        title="Reason",
        value=lambda row: row.event.reason or "",
        text=lambda row: " ".join((row.event.reason or "").split()) or "–",
        tip=lambda row: row.event.reason or "",
    ),
)


class CachePane(RunPane):
    """`sources`: where else earlier keys are known from; asked for in a thread.

    Signals: `question_asked` (sentence, what the button says, what it does).
    """

    SECTIONS = ("cache", "phases", "first_calls")
    question_asked = Signal(str, str, object)
    said = Signal(str)
    failed = Signal(str)

    def __init__(
        self, state: AppState, theme: Theme, sources: Callable[[], Sources] = Sources, parent: QWidget | None = None
    ) -> None:
        super().__init__(state, "cache", parent)
        self._sources = sources
        self._known: list[StoredKey] = []
        self._runs: list[Run] = list(state.runs)
        self._worker = Worker("cache_keys", self)
        self._asked: tuple[Run, int, Cache] | None = None
        self._worker.done.connect(self._show_explanation)
        self._worker.failed.connect(self._show_problem)
        self._build(theme)
        self._table.selectionModel().currentRowChanged.connect(self._explain)
        state.comparison_changed.connect(self._remember)
        self.places.question_asked.connect(self.question_asked)
        self.places.said.connect(self.said)

    def show_run(self, run: Run | None) -> None:
        rows = cacheledger.lookups(run) if run else []
        self._model.set_rows(rows)
        self.places.refresh()
        if run is None or not rows:
            self._asked = None
            self._details.clear()
            self.show_empty(cacheledger.empty_sentence(run))
            return
        self._totals.setText("\n".join(cacheledger.sentences(run)))
        findings = [found.sentence for found in cacheledger.rebuilds(run)]
        self._finding.setText("\n".join(findings))
        self._finding.setVisible(bool(findings))
        self.show_content()
        current = self._table.currentIndex()
        if not current.isValid():
            self._table.selectRow(next((i for i, row in enumerate(rows) if row.event.state == "miss"), 0))
        else:
            self._explain(current)

    def close_reader(self) -> None:
        self._worker.close()
        self.places.close()

    def _build(self, theme: Theme) -> None:
        self._totals = label("", "", wrap=True)
        self._totals.setObjectName("cache_totals")
        self._totals.setContentsMargins(12, 8, 12, 8)
        self._finding = label("", "note", wrap=True)
        self._finding.setObjectName("cache_finding")
        self._finding.setContentsMargins(12, 0, 12, 8)
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("Cache lookups", self._model)
        self._table.setObjectName("cache")
        self._table.set_widths((7, 20, 8, 8, 15, 9, 9, 24), stretch=7)
        self._details = QPlainTextEdit()
        self._details.setObjectName("explanation")
        self._details.setAccessibleName("Why this lookup went as it did")
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        self._details.document().setDocumentMargin(10)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._table)
        split.addWidget(self._details)
        self._details.setMinimumHeight(64)
        # the explanation is what one comes for: it has about as much room as the rows
        split.setSizes([500, 500])
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        self.places = CachePlaces(self.state)
        self.column.addWidget(self._totals)
        self.column.addWidget(self._finding)
        self.column.addWidget(split, 1)
        self.column.addWidget(self.places)

    def _remember(self) -> None:
        """Keep the keys of the comparison that is being left."""
        for run in self._runs:
            self._known += stored_keys(run)
        del self._known[:-MOST_REMEMBERED]
        self._runs = list(self.state.runs)
        self._table.clearSelection()
        self._table.setCurrentIndex(QModelIndex())

    def _explain(self, index: QModelIndex) -> None:
        run, row = self.state.shown, self._model.row(index.row())
        if run is None or row is None:
            self._asked = None
            self._details.clear()
            return
        if self._asked == (run, row.process, row.event):
            return  # while a run goes on the table is filled again and again, and what came before a lookup stays
        self._asked = (run, row.process, row.event)
        # copies: the thread reads them while the window goes on to fold into the lists
        runs, known = list(self.state.runs), list(self._known)
        self._worker.ask(row, lambda: explain(runs, run, row, self._sources(), known))

    def _show_explanation(self, row: Lookup, found: Explanation) -> None:
        key = f", key {row.event.key}" if row.event.key else ""
        head = f"{row.name}, compile {row.event.compile_id or '?'}{key}"
        self._details.setPlainText(f"{head}\n{words(row.event, found)}")

    def _show_problem(self, _row: Lookup, sentence: str) -> None:
        self._asked = None
        self._details.setPlainText(sentence)
