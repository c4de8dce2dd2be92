"""What every explaining pane has: it follows the shown run, and says a sentence where there is nothing to list."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedLayout, QVBoxLayout, QWidget

from compilescope.domain.run import Run
from compilescope.ui.state import AppState
from compilescope.ui.widgets import label

REFRESH_MS = 200


class RunPane(QWidget):
    """`show_run` is called when one of `SECTIONS` has changed, at most five times a second, while it can be seen."""

    SECTIONS: ClassVar[tuple[str, ...]] = ()
    line_wanted = Signal(str, int)  # file, line

    def __init__(self, state: AppState, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = state
        self.setObjectName(f"{name}_pane")
        self._shown: tuple[object, ...] | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(REFRESH_MS)
        self._soon.timeout.connect(self.refresh)
        self._empty = label("", "muted", wrap=True)
        self._empty.setObjectName(f"{name}_empty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setContentsMargins(40, 0, 40, 0)
        self._content = QWidget()
        self.column = QVBoxLayout(self._content)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._content)
        state.run_changed.connect(self._refresh_soon)
        state.shown_run_changed.connect(self._refresh_soon)

    def show_run(self, run: Run | None) -> None:
        """Take in the run as it is now."""
        raise NotImplementedError

    def close_reader(self) -> None:
        """End the thread that reads texts; a pane without one has nothing to end."""

    def show_empty(self, sentence: str) -> None:
        self._empty.setText(sentence)
        self._stack.setCurrentWidget(self._empty)

    def show_content(self) -> None:
        self._stack.setCurrentWidget(self._content)

    @property
    def sentence(self) -> str:
        """What stands in the place of the content; empty while that is shown."""
        return self._empty.text() if self._stack.currentWidget() is self._empty else ""

    def refresh(self) -> None:
        if not self.isVisible():
            return
        run = self.state.shown
        key = (id(run), run.is_over, *(run.revision[name] for name in self.SECTIONS)) if run else ()
        if key != self._shown:
            self._shown = key
            self.show_run(run)

    def _refresh_soon(self) -> None:
        if self.isVisible() and not self._soon.isActive():
            self._soon.start()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
