"""A table model over rows and columns that are plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QFont

from compilescope.ui.theme import Theme
from compilescope.ui.widgets import plain_tip

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
SORT_ROLE = Qt.ItemDataRole.UserRole
_NO_INDEX = QModelIndex()


@dataclass(frozen=True, kw_only=True)
class Column(Generic[Row]):
    """`value` sorts, `text` is shown; `tone` names a colour token for the text, `tip` explains the cell."""

    title: str
    value: Callable[[Row], Any]
    text: Callable[[Row], str]
    is_number: bool = False
    tone: Callable[[Row], str] | None = None
    tip: Callable[[Row], str] | None = None
    explanation: str = ""


class RowsModel(QAbstractTableModel, Generic[Row]):
    """Rows are replaced as a whole; what has not moved keeps its selection."""

    def __init__(self, columns: Sequence[Column[Row]], theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._columns = tuple(columns)
        self._theme = theme
        self._rows: list[Row] = []
        self._bold: Callable[[Row], bool] | None = None
        self._mark: tuple[int, str] | None = None
        theme.changed.connect(self._restyle)

    @property
    def rows(self) -> list[Row]:
        return self._rows

    def set_bold(self, is_bold: Callable[[Row], bool]) -> None:
        """Which rows stand out."""
        self._bold = is_bold

    def mark_sorted(self, column: int | None, *, descending: bool = False) -> None:
        """Show in a header that the rows are sorted by it."""
        self._mark = None if column is None else (column, " ↓" if descending else " ↑")
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._columns) - 1)

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows, with the smallest change that leads there."""
        new, old = len(rows), len(self._rows)
        if new < old:
            self.beginRemoveRows(QModelIndex(), new, old - 1)
            del self._rows[new:]
            self.endRemoveRows()
        self._rows[: min(new, old)] = rows[: min(new, old)]
        if new > old:
            self.beginInsertRows(QModelIndex(), old, new - 1)
            self._rows.extend(rows[old:])
            self.endInsertRows()
        if self._rows:
            self._restyle()

    def row(self, number: int) -> Row | None:
        return self._rows[number] if 0 <= number < len(self._rows) else None

    def as_text(self, numbers: Sequence[int], columns: Sequence[int]) -> str:
        """These rows with a header, cells apart by tabs, as spreadsheets take them."""
        shown = [self._columns[i] for i in columns]
        lines = ["\t".join(column.title for column in shown)]
        lines += ["\t".join(column.text(self._rows[i]) for column in shown) for i in numbers]
        return "\n".join(lines)

    def _restyle(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, len(self._columns) - 1))

    # Qt overrides

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self._columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row, column = self._rows[index.row()], self._columns[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.text(row)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(column.tip(row) if column.tip else "")
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
                return int(side | Qt.AlignmentFlag.AlignVCenter)
            case Qt.ItemDataRole.ForegroundRole:
                token = column.tone(row) if column.tone else ""
                return QBrush(QColor(getattr(self._theme.tokens, token))) if token else None
            case Qt.ItemDataRole.FontRole if self._bold and self._bold(row):
                font = QFont()
                font.setWeight(QFont.Weight.DemiBold)
                return font
            case _:
                return column.value(row) if role == SORT_ROLE else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(self._columns):
            return None
        column = self._columns[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.title + (self._mark[1] if self._mark and self._mark[0] == section else "")
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(column.explanation)
            case Qt.ItemDataRole.TextAlignmentRole:
                side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
                return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None
