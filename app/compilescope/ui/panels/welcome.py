"""What a fresh start shows: bundled examples, each with its lesson, recent scripts, and where to drop one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from compilescope import paths
from compilescope.ui.widgets import ElidedLabel, button, label, plain_tip

CARD_WIDTH = 300
HEAD_BYTES = 2000


class Welcome(QScrollArea):
    """Opening an example or a recent script reads it; nothing runs."""

    script_chosen = Signal(str)
    open_wanted = Signal()

    def __init__(self, recent: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._cards = [_ExampleCard(path, lesson) for path, lesson in examples()]
        self._columns = 0
        self._build(recent)

    def _build(self, recent: Sequence[str]) -> None:
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(36, 30, 36, 24)
        layout.setSpacing(6)
        title = label("What did torch.compile do, and was it worth it?")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() + 7)
        font.setBold(True)
        title.setFont(font)
        layout.addWidget(title)
        layout.addWidget(
            label(
                "Drop a model script anywhere on this window, tick what to compare, and press Run. "
                "Opening a script runs nothing of it.",
                "muted",
                wrap=True,
            )
        )
        layout.addSpacing(6)
        layout.addLayout(self._open_row())
        self._add_recent(layout, recent)
        if self._cards:
            layout.addSpacing(12)
            layout.addWidget(label("Examples", "section"))
        self._grid = QGridLayout()
        self._grid.setSpacing(10)
        layout.addLayout(self._grid)
        layout.addStretch(1)
        self.setWidget(inside)
        for card in self._cards:
            card.chosen.connect(self.script_chosen)

    def _open_row(self) -> QHBoxLayout:
        opener = button("Open a model script…", "primary")
        opener.clicked.connect(self.open_wanted)
        row = QHBoxLayout()
        row.addWidget(opener)
        row.addStretch(1)
        return row

    def _add_recent(self, layout: QVBoxLayout, recent: Sequence[str]) -> None:
        present = [Path(name) for name in recent if Path(name).is_file()]
        if not present:
            return
        layout.addSpacing(12)
        layout.addWidget(label("Recent", "section"))
        for path in present:
            link = button(f"{path.name}   {path.parent}", "link")
            link.setProperty("script", str(path))
            link.setToolTip(plain_tip(str(path)))
            link.clicked.connect(self._choose_recent)
            layout.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)

    def _choose_recent(self) -> None:
        sender = self.sender()
        if isinstance(sender, QObject):
            self.script_chosen.emit(str(sender.property("script")))

    def _arrange(self) -> None:
        columns = max((self.viewport().width() - 72) // CARD_WIDTH, 1)
        if columns == self._columns:
            return
        self._columns = columns
        for number, card in enumerate(self._cards):
            self._grid.addWidget(card, number // columns, number % columns)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class _ExampleCard(QFrame):
    """One example, opened by a click or the keyboard."""

    chosen = Signal(str)

    def __init__(self, path: Path, lesson: str) -> None:
        super().__init__()
        self._path = path
        name = path.name
        self.setObjectName("card")
        self.setProperty("clickable", "true")
        self.setAccessibleName(f"Example {name}: {lesson}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 9, 12, 9)
        layout.setSpacing(2)
        layout.addWidget(ElidedLabel(name, "heading"))
        text = label(lesson, "muted", wrap=True)
        text.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout.addWidget(text, 1)

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(CARD_WIDTH - 10, self.fontMetrics().lineSpacing() * 4 + 26)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(str(self._path))
            return
        super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.chosen.emit(str(self._path))


def examples() -> list[tuple[Path, str]]:
    """The bundled examples and their first docstring line. Only the head of each file is read."""
    folder = paths.resources() / "examples"
    return [(path, _lesson(path)) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def _lesson(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    if not head.startswith('"""'):
        return ""
    return head[3:].partition("\n")[0].partition('"""')[0].strip().replace("`", "")
