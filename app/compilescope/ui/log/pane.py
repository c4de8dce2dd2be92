"""The log pane: what the script, torch and the compiler wrote, live, with search and filter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QFileDialog,
    QLabel,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from compilescope.domain import units
from compilescope.domain.log import Level, LogStore
from compilescope.domain.log_search import LogFilter
from compilescope.ui.log.bar import LogBar
from compilescope.ui.log.model import MESSAGE, LogModel
from compilescope.ui.log.table import LogTable
from compilescope.ui.theme import Theme

REFRESH_MS = 100
ANY_HEIGHT = 16_777_215  # Qt's QWIDGETSIZE_MAX
SEARCH_MS = 12
SLICE_S = 0.006
_EMPTY = "Nothing has been written yet. What the script prints and what torch logs appears here during a run."
_NO_MATCH = "No line matches. Clear the search or choose another level to see the others."


class LogPane(QWidget):
    """Takes lines at any rate and shows them ten times a second, a few milliseconds at a time.

    `emptied` tells, when that changes, whether there is no line at all.
    """

    emptied = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.store = LogStore()
        self._theme = theme
        self._was_empty = True
        self._model = LogModel(self.store, self)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._build()
        self._connect()
        self._restyle()
        self._show_state()

    @property
    def is_empty(self) -> bool:
        return len(self.store) == 0

    def set_folded(self, is_folded: bool) -> None:
        """Show the header alone."""
        self._body.setVisible(not is_folded)
        self._limit_height()

    def _limit_height(self) -> None:
        self.setMaximumHeight(ANY_HEIGHT if self._body.isVisibleTo(self) else self._bar.sizeHint().height())

    def append(self, run_label: str, at: float, lines: Sequence[bytes]) -> None:
        """Add lines, without their line ends, that a run wrote at the time `at`."""
        self.store.append(run_label, at, lines)
        self._model.trim()
        if not self._timer.isActive():
            self._timer.start()

    def clear(self) -> None:
        """Forget every line."""
        self._model.clear()
        self._detail.hide()
        self._table.show_labels()
        self._show_state()

    def set_follow(self, follows: bool) -> None:
        """Keep the last line in view, or stay where the user is."""
        self._table.set_follow(follows)

    def focus_search(self) -> None:
        self._bar.focus_search()

    def copy(self) -> None:
        """Put the selected lines, whole, on the clipboard."""
        rows = self._table.selected_rows()
        if rows:
            QGuiApplication.clipboard().setText("\n".join(self._model.text(row, MESSAGE) for row in rows))

    def save(self) -> None:
        """Ask for a file and write the lines that are shown to it."""
        name, _ = QFileDialog.getSaveFileName(self, "Save log", "log.txt", "Text (*.txt *.log);;All files (*)")
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        try:
            with path.open("wb") as file:
                self.store.write(file, self._model.shown_lines())
        except OSError as error:
            self._bar.show_problem(f"The log could not be saved: {error.strerror or error}.")

    def _build(self) -> None:
        self._bar = LogBar(self)
        self._table = LogTable(self._model, self._theme, self)
        self._empty = QLabel(_EMPTY, alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._empty.setObjectName("log.empty")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._table)
        self._pages.addWidget(self._empty)
        self._detail = QPlainTextEdit(readOnly=True)
        self._detail.setObjectName("log.detail")
        self._detail.setAccessibleName("The selected lines, whole")
        self._detail.hide()
        self._body = split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._pages)
        split.addWidget(self._detail)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._bar)
        layout.addWidget(split, 1)
        self._add_actions()

    def _add_actions(self) -> None:
        keys = QKeySequence.StandardKey
        for text, shortcut, slot in (
            ("Find in log", keys.Find, self.focus_search),
            ("Copy lines", keys.Copy, self.copy),
            ("Show whole lines", Qt.Key.Key_Return, self.show_detail),
            ("Show among all lines", Qt.Key.Key_Escape, self.leave_filter),
        ):
            action = QAction(text, self)
            action.setShortcut(shortcut)
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(slot)
            (self if shortcut == keys.Find else self._table).addAction(action)
        self._table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _connect(self) -> None:
        self._timer.timeout.connect(self._refresh)
        self._bar.filter_changed.connect(self._apply_filter)
        self._bar.follow_toggled.connect(self.set_follow)
        self._bar.left.connect(self._leave_search)
        self._bar.save_clicked.connect(self.save)
        self._bar.clear_clicked.connect(self.clear)
        self._table.follow_changed.connect(self._bar.set_follow)
        self._table.doubleClicked.connect(self.show_detail)
        self._table.selectionModel().currentRowChanged.connect(self._update_detail)
        self._theme.changed.connect(self._restyle)

    def show_detail(self) -> None:
        """Show the current line whole, wrapped, below the table."""
        self._detail.show()
        self._update_detail(self._table.currentIndex())

    def leave_filter(self) -> None:
        """Close the whole line; else clear the filter and show the current line among those around it."""
        if self._detail.isVisible():
            self._detail.hide()
            return
        current = self._table.currentIndex()
        line = self._model.line(current.row()) if current.isValid() else None
        self._bar.reset()
        if line is not None and self._model.filter.shows_all:
            self._table.set_follow(False)
            row = self._model.row(line)
            self._table.selectRow(row)
            self._table.scrollTo(self._model.index(row, MESSAGE), LogTable.ScrollHint.PositionAtCenter)

    def _leave_search(self) -> None:
        self._table.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if not self._table.currentIndex().isValid() and self._model.rowCount():
            self._table.selectRow(self._model.rowCount() - 1)

    def _update_detail(self, index: QModelIndex) -> None:
        if self._detail.isVisible() and index.isValid():
            self._detail.setPlainText(self._model.text(index.row(), MESSAGE))

    def _apply_filter(self, wanted: LogFilter) -> None:
        self._table.show_filter(wanted, SLICE_S)
        self._keep_pace()
        self._show_state()

    def _refresh(self) -> None:
        added = self._model.advance(SLICE_S)
        if added:
            self._table.show_labels()
            self._table.keep_tail()
        self._keep_pace()
        self._show_state()

    def _keep_pace(self) -> None:
        if self._model.is_current:
            self._timer.stop()
            self._timer.setInterval(REFRESH_MS)
        else:
            # half of the time for the search, half for all else
            self._timer.start(SEARCH_MS)

    def _show_state(self) -> None:
        rows, total = self._model.rowCount(), len(self.store)
        is_empty = rows == 0 and (total == 0 or self._model.is_current)
        if is_empty:
            self._empty.setText(self._model.problem or (_NO_MATCH if total else _EMPTY))
        self._pages.setCurrentWidget(self._empty if is_empty else self._table)
        self._bar.show_count(self._count_text(rows, total))
        if self._model.problem:
            self._bar.show_problem(self._model.problem)
        if self._was_empty != self.is_empty:
            self._was_empty = self.is_empty
            self.emptied.emit(self.is_empty)

    def _count_text(self, rows: int, total: int) -> str:
        if self._model.problem:
            return f"{units.count(rows)} found, then given up"
        if not self._model.is_current:
            return f"{units.count(rows)} found, searching … {self._model.progress:.0%}"
        if not self._model.filter.shows_all:
            return f"{units.count(rows)} of {units.count(total)} lines"
        counts = self.store.counts
        parts = [f"{units.count(total)} {'line' if total == 1 else 'lines'}"]
        # a traceback is one error, but many lines of it
        parts += [
            f"{units.count(counts[level])} {name if counts[level] == 1 else name + 's'}"
            for level, name in ((Level.ERROR, "error line"), (Level.WARNING, "warning line"))
            if counts[level]
        ]
        if self.store.begin:
            parts.append(f"{units.count(self.store.begin)} older ones let go")
        return " · ".join(parts) if total else "nothing written yet"

    def _restyle(self) -> None:
        self._detail.setFont(self._theme.mono())
        self._empty.setStyleSheet(f"color: {self._theme.tokens.muted}; padding: 24px;")

    # Qt overrides

    def event(self, event: QEvent) -> bool:
        # the style sheet's font arrives after the header was first measured
        if event.type() == QEvent.Type.LayoutRequest:
            self._limit_height()
        return super().event(event)
