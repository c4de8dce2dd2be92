"""The texts of a run, by process and compile."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QWidget

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.run import ProcessStory, Run

# in the order in which the compiler makes them; guards have a pane of their own
TITLES = {
    "dynamo_graph": "Dynamo graph",
    "compiled_autograd": "Compiled autograd graph",
    "ddp_split": "Graph split for DDP",
    "before_pre_grad": "Before pre-grad passes",
    "after_pre_grad": "After pre-grad passes",
    "before_joint": "Before joint passes",
    "aot_joint": "AOT joint graph",
    "after_joint": "After joint passes",
    "aot_inference": "AOT inference graph",
    "aot_forward": "AOT forward graph",
    "aot_backward": "AOT backward graph",
    "before_post_grad": "Before post-grad passes",
    "post_grad": "Post-grad graph",
    "output_code": "Inductor output code",
    "runnable": "Runnable repro script",
    "side_effects": "Side effects",
}
_ROLE = Qt.ItemDataRole.UserRole


class TextTree(QTreeWidget):
    """Grows as texts arrive; what was chosen stays chosen."""

    text_chosen = Signal(object)  # events.Text

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("texts")
        self.setAccessibleName("Graphs and generated code")
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setIndentation(14)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._run: Run | None = None
        self._taken: list[int] = []
        self._groups: dict[tuple[int, str], QTreeWidgetItem] = {}
        self._numbers: dict[tuple[int, str, str], int] = {}
        self.currentItemChanged.connect(self._choose)

    def show_run(self, run: Run | None) -> None:
        """Take in what is new; another run starts the tree over."""
        if run is not self._run:
            self._run = run
            self._taken, self._groups, self._numbers = [], {}, {}
            self.clear()
        for number, process in enumerate(run.processes if run else ()):
            if number == len(self._taken):
                self._taken.append(0)
            for text in process.texts[self._taken[number] :]:
                self._add(number, process, text)
            self._taken[number] = len(process.texts)
        if self.currentItem() is None:
            self.choose_first()

    def choose_first(self, kind: str = "output_code") -> None:
        """The first text of a kind, or else the first of all."""
        items = list(self._items())
        wanted = [item for item in items if item.data(0, _ROLE).kind == kind] or items
        if wanted:
            self.setCurrentItem(wanted[0])

    def _items(self) -> Iterator[QTreeWidgetItem]:
        for group in self._groups.values():
            for index in range(group.childCount()):
                child = group.child(index)
                if child is not None:
                    yield child

    def _add(self, number: int, process: ProcessStory, text: e.Text) -> None:
        title = TITLES.get(text.kind)
        if title is None:
            return
        compile_id = text.compile_id or "?"
        group = self._group(number, process, compile_id)
        count = self._numbers[number, compile_id, text.kind] = self._numbers.get((number, compile_id, text.kind), 0) + 1
        item = QTreeWidgetItem([title if count == 1 else f"{title} {count}"])
        item.setData(0, _ROLE, text)
        item.setToolTip(0, f"{text.name or title}, {units.size(text.length)}")
        group.addChild(item)

    def _group(self, number: int, process: ProcessStory, compile_id: str) -> QTreeWidgetItem:
        key = (number, compile_id)
        if key not in self._groups:
            row = process.compiles.get(compile_id)
            function = f"  {row.function}" if row and row.function else ""
            start = f"{process.start}  " if self._run and len(self._run.processes) > 1 else ""
            item = QTreeWidgetItem([f"{start}{compile_id}{function}"])
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self._groups[key] = item
            self.addTopLevelItem(item)
            # the warm start's texts are the same again
            item.setExpanded(number == 0 and len(self._groups) <= 8)
        return self._groups[key]

    def _choose(self, item: QTreeWidgetItem | None) -> None:
        text = item.data(0, _ROLE) if item else None
        if text is not None:
            self.text_chosen.emit(text)
