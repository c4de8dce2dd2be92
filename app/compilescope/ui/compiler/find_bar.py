"""The row above a text: what it is, search in it, copy and save."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from compilescope.domain import units
from compilescope.ui.compiler.code_view import CodeView
from compilescope.ui.widgets import ElidedLabel, button, label


class FindBar(QWidget):
    """Enter goes to the next place, Shift+Enter to the one before, Escape back to the text."""

    def __init__(self, view: CodeView, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self.title = ElidedLabel("", "heading", Qt.TextElideMode.ElideMiddle)
        self.search = QLineEdit(placeholderText="Find in text (Ctrl+F)", clearButtonEnabled=True)
        self.search.setObjectName(f"{name}_search")
        self.search.setAccessibleName("Find in text")
        self.search.setFixedWidth(220)
        self.search.installEventFilter(self)
        self._count = label("", "muted")
        self._count.setObjectName(f"{name}_found")
        self._count.setMinimumWidth(64)
        self.copy = button("Copy")
        self.copy.setToolTip("Put the whole text on the clipboard")
        self.save = button("Save…")
        self.save.setToolTip("Write the text to a file")
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 5, 8, 5)
        row.setSpacing(6)
        row.addWidget(self.title, 1)
        row.addWidget(self.search)
        row.addWidget(self._count)
        row.addWidget(self.copy)
        row.addWidget(self.save)
        self.search.textEdited.connect(self._find_here)
        self.search.textChanged.connect(self._forget)
        view.find_wanted.connect(self.focus_search)

    def focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def find_next(self, *, backward: bool = False, here: bool = False) -> None:
        number, count = self._view.find_text(self.search.text(), backward=backward, here=here)
        if not self.search.text():
            self._count.clear()
        else:
            self._count.setText(f"{units.count(number)} of {units.count(count)}" if count else "not found")

    def _find_here(self) -> None:
        self.find_next(here=True)

    def _forget(self, text: str) -> None:
        if not text:
            self._count.clear()

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self.search or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        is_escape = event.key() == Qt.Key.Key_Escape
        if event.type() is QEvent.Type.ShortcutOverride and is_escape:
            event.accept()
            return True
        if event.type() is QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.find_next(backward=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
                return True
            if is_escape:
                self._view.setFocus(Qt.FocusReason.OtherFocusReason)
                return True
        return super().eventFilter(watched, event)
