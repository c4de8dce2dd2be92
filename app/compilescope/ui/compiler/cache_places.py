"""Where the compiler caches lie, how big they are, and buttons that empty them."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from compilescope.domain import units
from compilescope.engine.cache_folders import CacheFolder, clear, measure_folders
from compilescope.ui.compiler.texts import Worker
from compilescope.ui.state import AppState
from compilescope.ui.widgets import ElidedLabel, button

FRESH_S = 20.0


class CachePlaces(QWidget):
    """Ours and the user's, in one row. Sizes are taken in a thread."""

    question_asked = Signal(str, str, object)  # sentence, what the button says, what it does
    said = Signal(str)

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._folders: dict[bool, CacheFolder] = {}
        self._measured = -FRESH_S
        self._worker = Worker("cache_folders", self)
        self._worker.done.connect(self._take)
        self._worker.failed.connect(self._say_problem)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 10, 6)
        row.setSpacing(8)
        self._ours = ElidedLabel("", "muted", Qt.TextElideMode.ElideMiddle)
        self._users = ElidedLabel("", "muted", Qt.TextElideMode.ElideMiddle)
        self._clear_ours = button("Clear ours")
        self._clear_ours.setObjectName("clear_ours")
        self._clear_users = button("Clear yours…")
        self._clear_users.setObjectName("clear_yours")
        for text, press in ((self._ours, self._clear_ours), (self._users, self._clear_users)):
            row.addWidget(text, 1)
            row.addWidget(press)
        self._clear_ours.clicked.connect(self._ask_ours)
        self._clear_users.clicked.connect(self._ask_users)
        state.activity_changed.connect(self._follow_activity)
        self._follow_activity()

    def refresh(self, *, now: bool = False) -> None:
        """Measure anew, unless that was just done."""
        if now or time.monotonic() - self._measured > FRESH_S:
            self._measured = time.monotonic()
            self._worker.ask("measure", measure_folders)

    def close(self) -> bool:
        self._worker.close()
        return super().close()

    def _take(self, subject: object, result: object) -> None:
        if subject == "measure" and isinstance(result, list):
            self._folders = {folder.is_ours: folder for folder in result}
            self._ours.setText(f"CompileScope's caches: {_text(self._folders[True])}")
            self._users.setText(f"Your own: {_text(self._folders[False])}")
            self._follow_activity()
        elif isinstance(result, int):
            self.said.emit(f"Cleared: {units.size(result)}.")
            self.refresh(now=True)

    def _say_problem(self, _subject: object, sentence: str) -> None:
        self.said.emit(sentence)

    def _follow_activity(self) -> None:
        is_idle = not self._state.is_busy
        self._clear_ours.setEnabled(is_idle and self._has_content(True))
        self._clear_users.setEnabled(is_idle and self._has_content(False))

    def _has_content(self, is_ours: bool) -> bool:
        folder = self._folders.get(is_ours)
        return folder is not None and folder.size > 0

    def _ask_ours(self) -> None:
        folder = self._folders[True]
        self.question_asked.emit(
            f"Remove CompileScope's own compiler caches ({units.size(folder.size)})? Only its own runs used them.",
            "Clear",
            partial(self._clear, folder),
        )

    def _ask_users(self) -> None:
        folder = self._folders[False]
        self.question_asked.emit(
            f"Remove your own compiler cache {folder.path} ({units.size(folder.size)})? Your other programs will then "
            "compile again.",
            "Clear my cache",
            partial(self._clear, folder),
        )

    def _clear(self, folder: CacheFolder) -> None:
        self._worker.ask("clear", partial(clear, folder))


def _text(folder: CacheFolder) -> str:
    return f"{folder.path}, {units.size(folder.size)}" if folder.size else f"{folder.path}, empty"
