"""Guards: what is checked before compiled code may run, as a tree, with a filter."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QModelIndex, QTimer
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.guardtree import GuardNode, GuardTree, matches, parse_guards
from compilescope.domain.run import ProcessStory, Run
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.compiler.texts import Worker, text_of
from compilescope.ui.panels.table import ToneDelegate
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label, plain_tip

TYPING_MS = 120
OPEN_LEVELS = 3


class GuardsPane(RunPane):
    """One compile's guards at a time; the cold process's, since a warm one checks the same."""

    SECTIONS = ("texts", "compiles")

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "guards", parent)
        self._theme = theme
        self._run: Run | None = None
        self._offered = 0
        self._tree: GuardTree | None = None
        self._items: list[tuple[GuardNode, QTreeWidgetItem]] = []
        self._worker = Worker("guards", self)
        self._worker.done.connect(self._show_tree)
        self._worker.failed.connect(self._show_problem)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(TYPING_MS)
        self._typing.timeout.connect(self._apply_filter)
        self._build()
        self._compiles.currentIndexChanged.connect(self._read)
        self._filter.textChanged.connect(self._filter_soon)
        self.view.doubleClicked.connect(self._open_item)

    def show_run(self, run: Run | None) -> None:
        story = run.story if run else None
        texts = [text for text in story.texts if text.kind == "guards"] if story else []
        if run is not self._run:
            self._run, self._offered = run, 0
            self._compiles.clear()
        if not story or not texts:
            self.show_empty(_empty(run))
            return
        self.show_content()
        for text in texts[self._offered :]:
            self._offered += 1
            self._compiles.addItem(_title(text, story), text)

    def close_reader(self) -> None:
        self._worker.close()

    def _build(self) -> None:
        self._compiles = QComboBox()
        self._compiles.setObjectName("guards_compile")
        self._compiles.setAccessibleName("Compile whose guards are shown")
        self._compiles.setMinimumWidth(200)
        self._summary = label("", "muted")
        self._summary.setObjectName("guards_summary")
        self._filter = QLineEdit(placeholderText="Filter guards", clearButtonEnabled=True)
        self._filter.setObjectName("guards_filter")
        self._filter.setAccessibleName("Filter guards")
        self._filter.setFixedWidth(240)
        row = QHBoxLayout()
        row.setContentsMargins(10, 6, 8, 6)
        row.setSpacing(10)
        row.addWidget(self._compiles)
        row.addWidget(self._summary, 1)
        row.addWidget(self._filter)
        self.view = QTreeWidget()
        self.view.setObjectName("guards")
        self.view.setAccessibleName("Guards")
        self.view.setHeaderLabels(["Guard", "Kind", "Asked for by"])
        self.view.setUniformRowHeights(True)
        self.view.setIndentation(14)
        self.view.setItemDelegate(ToneDelegate(self.view))
        self.view.setColumnWidth(0, 520)
        self.view.setColumnWidth(1, 150)
        self.column.addLayout(row)
        self.column.addWidget(self.view, 1)

    def _read(self) -> None:
        text = self._compiles.currentData()
        if text is not None:
            self._worker.ask(text, lambda: parse_guards(text_of(text)))

    def _show_tree(self, text: e.Text, tree: GuardTree) -> None:
        self._tree = tree
        story = self._run.story if self._run else None
        row = story.compiles.get(text.compile_id or "?") if story else None
        latency = tree.latency_us if tree.latency_us is not None else row.guard_latency_us if row else None
        cost = f", {units.duration(latency / 1e6)} per call" if latency is not None else ""
        self._summary.setText(f"{units.plural(tree.count, 'check')}{cost}")
        self.view.clear()
        self._items = []
        self.view.addTopLevelItems([self._item(node, 0) for node in tree.root.children])
        for node, item in self._items:
            item.setExpanded(_depth(node) < OPEN_LEVELS)
        self._apply_filter()

    def _show_problem(self, _text: e.Text, sentence: str) -> None:
        self.view.clear()
        self._summary.setText(sentence)

    def _item(self, node: GuardNode, depth: int) -> QTreeWidgetItem:
        item = QTreeWidgetItem([node.text or node.kind, node.kind if node.text else "", node.origin])
        item.setToolTip(0, plain_tip(node.text))
        item.setToolTip(2, plain_tip(node.origin))
        if not node.is_guard:
            item.setForeground(0, self._theme.color("muted"))
        self._items.append((node, item))
        item.addChildren([self._item(child, depth + 1) for child in node.children])
        return item

    def _filter_soon(self) -> None:
        self._typing.start()

    def _apply_filter(self) -> None:
        """Nodes that hold every word stay, with what leads to them."""
        words = self._filter.text().lower().split()
        kept = {id(node) for found, _ in self._items if matches(found, words) for node in _ancestry(found)}
        shown = 0
        for node, item in self._items:
            is_kept = not words or id(node) in kept
            item.setHidden(not is_kept)
            shown += is_kept and node.is_guard and matches(node, words)
            if words and is_kept:
                item.setExpanded(True)
        total = self._tree.count if self._tree else 0
        text = self._summary.text().split(" · ")[0]
        self._summary.setText(f"{text} · {units.count(shown)} of {units.count(total)} shown" if words else text)

    def _open_item(self, index: QModelIndex) -> None:
        item = self.view.itemFromIndex(index)
        node = next((node for node, known in self._items if known is item), None)
        place = node.place if node else None
        story = self._run.story if self._run else None
        # guards name files by the end of their path
        files = {row.file for row in story.compiles.values() if row.file} if story else set()
        file = next((file for file in files if place and file.replace("\\", "/").endswith(place[0])), None)
        if place and file:
            self.line_wanted.emit(file, place[1])


def _ancestry(node: GuardNode) -> Iterator[GuardNode]:
    found: GuardNode | None = node
    while found is not None:
        yield found
        found = found.parent


def _depth(node: GuardNode) -> int:
    return sum(1 for _ in _ancestry(node)) - 2


def _title(text: e.Text, story: ProcessStory) -> str:
    row = story.compiles.get(text.compile_id or "?")
    return f"{text.compile_id or '?'}  {row.function if row and row.function else ''}".strip()


def _empty(run: Run | None) -> str:
    if run is None or run.story is None:
        return "Guards appear here once something is compiled."
    return "No guards: nothing was compiled." if run.is_over or run.story.has_compiled else "No guards so far."
