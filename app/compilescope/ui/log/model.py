"""The log as Qt's views want it: a row a line, all of them or those that a filter lets through."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from compilescope.domain.log import Level, LogStore
from compilescope.domain.log_search import LogFilter, LogSearch

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()

TIME, RUN, LEVEL, MESSAGE = range(4)
TITLES = ("Time", "Run", "Level", "Message")
LEVEL_TEXTS = {
    Level.DEBUG: "debug",
    Level.OUTPUT: "",
    Level.INFO: "info",
    Level.WARNING: "warning",
    Level.ERROR: "error",
}
_TOOLTIP_BYTES = 4000
_UNIX = 1e8


def time_text(at: float) -> str:
    """Seconds since the start of a run, or the time of day where Unix time is given."""
    if at < _UNIX:
        return f"{at:.3f}"
    return time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at % 1 * 1000):03d}"


class LogModel(QAbstractTableModel):
    """Rows come by `advance`, which looks at what the store has got since; the store itself tells nobody."""

    def __init__(self, store: LogStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.filter = LogFilter()
        self._search: LogSearch | None = None
        self._rows = 0
        self._begin = store.begin

    @property
    def is_current(self) -> bool:
        """Whether every line of the store has been looked at."""
        return self._search.is_current if self._search else self._begin + self._rows == self.store.end

    @property
    def progress(self) -> float:
        return self._search.progress if self._search else 1.0

    @property
    def problem(self) -> str:
        """Why the filter was given up; empty where it was not."""
        return self._search.problem if self._search else ""

    def set_filter(self, wanted: LogFilter, seconds: float) -> None:
        """Show what another filter lets through; rows that are not found within `seconds` come by `advance`."""
        self.beginResetModel()
        self.filter = wanted
        self._begin = self.store.begin
        self._search = None if wanted.shows_all else LogSearch(self.store, wanted)
        if self._search:
            self._search.advance(seconds)
        self._rows = self._found()
        self.endResetModel()

    def clear(self) -> None:
        self.beginResetModel()
        self.store.clear()
        self._begin = 0
        self._search = None if self.filter.shows_all else LogSearch(self.store, self.filter)
        self._rows = 0
        self.endResetModel()

    def advance(self, seconds: float) -> int:
        """Add the rows of new lines, looking for about `seconds`; how many there were."""
        if self._search:
            self._search.advance(seconds)
        found = self._found()
        added = found - self._rows
        if added:
            self.beginInsertRows(ROOT, self._rows, found - 1)
            self._rows = found
            self.endInsertRows()
        return added

    def trim(self) -> None:
        """Remove the rows of lines that the store has let go; to be called before anything else is asked of them."""
        begin = self.store.begin
        if begin == self._begin:
            return
        gone = bisect_left(self._search.matches, begin, 0, self._rows) if self._search else begin - self._begin
        gone = min(gone, self._rows)
        if gone:
            self.beginRemoveRows(ROOT, 0, gone - 1)
        if self._search:
            self._search.trim()
        self._begin = begin
        self._rows -= gone
        if gone:
            self.endRemoveRows()

    def line(self, row: int) -> int:
        """The number in the store of the line in a row."""
        return self._search.matches[row] if self._search else self._begin + row

    def row(self, line: int) -> int:
        """The row of a line where every line has one."""
        return line - self._begin

    def shown_lines(self) -> Sequence[int] | None:
        """The numbers of all lines in the rows; None where that is every line."""
        return self._search.matches if self._search else None

    def text(self, row: int, column: int, limit: int | None = None) -> str:
        line = self.line(row)
        if column == MESSAGE:
            return self.store.text(line, limit)
        if column == TIME:
            return time_text(self.store.at(line))
        return self.store.label(line) if column == RUN else LEVEL_TEXTS[self.store.level(line)]

    def _found(self) -> int:
        return len(self._search.matches) if self._search else self.store.end - self._begin

    # Qt overrides

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else self._rows

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(TITLES)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= self._rows:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column())
        if role == Qt.ItemDataRole.ToolTipRole and index.column() == MESSAGE:
            return self._tooltip(index.row())
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return TITLES[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _tooltip(self, row: int) -> str:
        text = self.text(row, MESSAGE, _TOOLTIP_BYTES)
        # a log line is foreign text: never let the tooltip take it for HTML
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<p style='white-space:pre-wrap'>{escaped}</p>" if len(text) > 80 else ""
