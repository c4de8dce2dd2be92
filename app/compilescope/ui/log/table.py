"""The log's table view: rows of one height, no wrapping, and a tail that is followed until the user scrolls away."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from compilescope.domain.log_search import LogFilter
from compilescope.ui.log.delegate import LogDelegate
from compilescope.ui.log.model import LEVEL, RUN, TIME, LogModel
from compilescope.ui.theme import Theme

_CHARACTERS = {TIME: 12, LEVEL: 8}
_MAX_RUN_CHARACTERS = 24


class LogTable(QTableView):
    """Signals: `follow_changed` (bool) when the user leaves the tail or comes back to it."""

    follow_changed = Signal(bool)

    def __init__(self, model: LogModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme = theme
        self._follows = True
        self._moves_itself = False
        self._run_characters = 0
        self._delegate = LogDelegate(model, theme, self)
        self._build()
        self.verticalScrollBar().valueChanged.connect(self._note_scrolling)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def follows(self) -> bool:
        return self._follows

    def set_follow(self, follows: bool) -> None:
        if follows != self._follows:
            self._follows = follows
            self.follow_changed.emit(follows)
        self.keep_tail()

    def keep_tail(self) -> None:
        """Show the last rows if the tail is followed."""
        if self._follows and self.isVisible():
            self._moves_itself = True
            self.scrollToBottom()
            self._moves_itself = False

    def show_filter(self, wanted: LogFilter, seconds: float) -> None:
        """Filter the rows; the view's own jump to the top does not mean that the user left the tail."""
        self._moves_itself = True
        self._model.set_filter(wanted, seconds)
        self._moves_itself = False
        self.keep_tail()

    def show_labels(self) -> None:
        """Give the run's column the room that its labels need; hide it while there is but one run."""
        labels = self._model.store.labels
        self.setColumnHidden(RUN, len(labels) < 2)
        characters = min(max(map(len, labels), default=0), _MAX_RUN_CHARACTERS)
        if characters != self._run_characters:
            self._run_characters = characters
            self.setColumnWidth(RUN, self._delegate.width(characters + 1))

    def selected_rows(self) -> list[int]:
        rows: set[int] = set()
        selection = self.selectionModel().selection()
        for span in (selection.at(i) for i in range(selection.count())):
            rows.update(range(span.top(), span.bottom() + 1))
        return sorted(rows)

    def _build(self) -> None:
        self.setModel(self._model)
        self.setItemDelegate(self._delegate)
        self.setObjectName("log.table")
        self.setAccessibleName("Log lines")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setAutoScroll(False)
        rows = self.verticalHeader()
        rows.setVisible(False)
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        columns = self.horizontalHeader()
        columns.setStretchLastSection(True)
        columns.setHighlightSections(False)
        columns.setMinimumSectionSize(40)
        self.setColumnHidden(RUN, True)

    def _restyle(self) -> None:
        self._delegate.set_theme()
        self.verticalHeader().setMinimumSectionSize(self._delegate.row_height)
        self.verticalHeader().setDefaultSectionSize(self._delegate.row_height)
        for column, characters in _CHARACTERS.items():
            self.setColumnWidth(column, self._delegate.width(characters))
        self._run_characters = 0
        self.show_labels()
        self.viewport().update()

    def _note_scrolling(self, value: int) -> None:
        if self._moves_itself or not self.isVisible():
            return
        follows = value == self.verticalScrollBar().maximum()
        if follows != self._follows:
            self._follows = follows
            self.follow_changed.emit(follows)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.keep_tail()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.keep_tail()
