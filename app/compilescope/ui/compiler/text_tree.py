"""The texts of a run, by process and compile."""

from __future__ import annotations

from dataclasses import dataclass, field

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
# groups that stand open from the start
MOST_OPEN = 8


@dataclass(kw_only=True)
class _Group:
    """The texts of one compile, of which so many have their items."""

    item: QTreeWidgetItem
    texts: list[e.Text] = field(default_factory=list)
    made: int = 0


class TextTree(QTreeWidget):
    """Grows as texts arrive; what was chosen stays chosen. Thousands of texts get their items when they are seen."""

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
        self._groups: dict[tuple[int, str], _Group] = {}
        self.currentItemChanged.connect(self._choose)
        self.itemExpanded.connect(self._fill)

    def show_run(self, run: Run | None) -> None:
        """Take in what is new; another run starts the tree over."""
        if run is not self._run:
            self._run = run
            self._taken, self._groups = [], {}
            self.clear()
        fresh: list[_Group] = []
        for number, process in enumerate(run.processes if run else ()):
            if number == len(self._taken):
                self._taken.append(0)
            for text in process.texts[self._taken[number] :]:
                if text.kind in TITLES:
                    self._group(number, process, text, fresh).texts.append(text)
            self._taken[number] = len(process.texts)
        self._insert(fresh)
        if self.currentItem() is None:
            self.choose_first()

    def choose_first(self, kind: str = "output_code") -> None:
        """The first text of a kind, or else the first of all."""
        groups = list(self._groups.values())
        wanted = next((group for group in groups if any(text.kind == kind for text in group.texts)), None)
        group = wanted or next(iter(groups), None)
        if group is None:
            return
        group.item.setExpanded(True)
        self._fill(group.item)
        number = next((i for i, text in enumerate(group.texts) if text.kind == kind), 0)
        chosen = group.item.child(number)
        if chosen is not None:
            self.setCurrentItem(chosen)

    def _insert(self, fresh: list[_Group]) -> None:
        """All at once: one by one, each would lay out the tree anew."""
        self.addTopLevelItems([group.item for group in fresh])
        for number, ((process, _), group) in enumerate(self._groups.items()):
            if number == MOST_OPEN:
                break
            # the warm start's texts are the same again
            if process == 0 and group in fresh:
                group.item.setExpanded(True)
        for group in self._groups.values():
            if group.made < len(group.texts) and group.item.isExpanded():
                self._fill(group.item)

    def _group(self, number: int, process: ProcessStory, text: e.Text, fresh: list[_Group]) -> _Group:
        compile_id = text.compile_id or "?"
        key = (number, compile_id)
        if key not in self._groups:
            row = process.compiles.get(compile_id)
            function = f"  {row.function}" if row and row.function else ""
            start = f"{process.start}  " if self._run and len(self._run.processes) > 1 else ""
            item = QTreeWidgetItem([f"{start}{compile_id}{function}"])
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)
            item.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
            group = self._groups[key] = _Group(item=item)
            item.setData(0, _ROLE, key)
            fresh.append(group)
        return self._groups[key]

    def _fill(self, item: QTreeWidgetItem) -> None:
        """Give a group the items that it still lacks."""
        key = item.data(0, _ROLE)
        group = self._groups.get(tuple(key)) if isinstance(key, (tuple, list)) else None
        if group is None:
            return
        kinds = [text.kind for text in group.texts]
        children = []
        for number in range(group.made, len(group.texts)):
            text = group.texts[number]
            title, count = TITLES[text.kind], kinds[: number + 1].count(text.kind)
            child = QTreeWidgetItem([title if count == 1 else f"{title} {count}"])
            child.setData(0, _ROLE, text)
            child.setToolTip(0, f"{text.name or title}, {units.size(text.length)}")
            children.append(child)
        group.made = len(group.texts)
        group.item.addChildren(children)

    def _choose(self, item: QTreeWidgetItem | None) -> None:
        text = item.data(0, _ROLE) if item else None
        if isinstance(text, e.Text):
            self.text_chosen.emit(text)
