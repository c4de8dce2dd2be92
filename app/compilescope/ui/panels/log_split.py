"""The panes above, the log below; an empty log takes no more than its header."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from compilescope.ui.log.pane import LogPane

LOG_HEIGHT = 140
# the log's header and two lines
LEAST_LOG = 92
# tabs, figures, and a chart that can still be read
PANES_HEIGHT = 330


class LogSplit(QSplitter):
    """Where the user has not moved the border, the log gives way in a low window; where he has, it stays."""

    def __init__(self, panes: QWidget, log: LogPane, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self._log = log
        self._height = LOG_HEIGHT
        self._is_own = False
        self.addWidget(panes)
        self.addWidget(log)
        self.setStretchFactor(0, 1)
        self.setChildrenCollapsible(False)
        self.splitterMoved.connect(self._note_move)
        log.emptied.connect(self._follow)
        self._follow(log.is_empty)

    def reset(self) -> None:
        """Back to the height that fits the window."""
        self._height, self._is_own = LOG_HEIGHT, False
        self._place()

    def saveState(self) -> QByteArray:
        """The height that the user gave to the log; nothing where that is the usual one."""
        return QByteArray(str(self._height).encode()) if self._is_own else QByteArray()

    def restoreState(self, state: QByteArray | bytes | bytearray | memoryview) -> bool:
        text = bytes(QByteArray(state).data())
        if not text.isdigit():
            return False
        self._height, self._is_own = int(text), True
        self._place()
        return True

    def _follow(self, is_empty: bool) -> None:
        self._log.set_folded(is_empty)
        # there is nothing to see behind the border
        self.handle(1).setEnabled(not is_empty)
        self._place()

    def _note_move(self) -> None:
        if not self._log.is_empty:
            self._height, self._is_own = self.sizes()[1], True

    def _place(self) -> None:
        room = self.height() - self.handleWidth()
        wanted = self._height if self._is_own else max(min(self._height, room - PANES_HEIGHT), LEAST_LOG)
        if self._log.is_empty:
            wanted = self._log.maximumHeight()
        if room > wanted:
            self.setSizes([room - wanted, wanted])

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()
