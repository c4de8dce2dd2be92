"""A table whose rows can be sorted and whose columns can be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QMenu, QWidget

from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable

RowType = TypeVar("RowType")


class SortableTable(DataTable):
    """A click on a header sorts, a second one the other way round, a third one restores the order of the runs.

    The rows are sorted by whoever sets them (`in_order`), so that live figures move rows and selections stay.
    """

    order_changed = Signal()

    def __init__(self, name: str, model: RowsModel[Any], parent: QWidget | None = None) -> None:
        super().__init__(name, model, parent)
        self._rows_model = model
        self._column: int | None = None
        self._is_descending = False
        self._hidden: set[int] = set()
        self._spared: set[int] = set()
        self._spare_first: tuple[int, ...] = ()
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        header = self.horizontalHeader()
        header.setSectionsClickable(True)
        header.sectionClicked.connect(self._sort_by)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._show_chooser)

    def in_order(self, rows: Sequence[RowType], columns: Sequence[Column[RowType]]) -> list[RowType]:
        """The rows sorted as the user wants; those without a value stand last either way."""
        if self._column is None:
            return list(rows)
        value = columns[self._column].value
        known = [row for row in rows if value(row) is not None]
        known.sort(key=lambda row: _key(value(row)), reverse=self._is_descending)
        return known + [row for row in rows if value(row) is None]

    def spare_first(self, columns: Sequence[int]) -> None:
        """The columns to leave out, in this order, as long as there is no room for all that the user wants."""
        self._spare_first = tuple(columns)
        self._fit(self.viewport().width())

    def offer(self, columns: Iterable[int]) -> None:
        """The columns that are hidden until they are chosen."""
        self._hidden.update(columns)
        self._fit(self.viewport().width())

    def chooser(self) -> QMenu:
        """The columns, ticked where they are shown; the first always is."""
        menu = QMenu(self)
        for column in range(1, self.model().columnCount()):
            title = str(self.model().headerData(column, Qt.Orientation.Horizontal))
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setChecked(column not in self._hidden)
            action.toggled.connect(lambda is_shown, column=column: self._set_shown(column, is_shown))
        return menu

    def _set_shown(self, column: int, is_shown: bool) -> None:
        (self._hidden.discard if is_shown else self._hidden.add)(column)
        self._fit(self.viewport().width())

    def _fit(self, room: int) -> None:
        self._spared = set()
        needed = sum(width for column, width in enumerate(self._pixels) if column not in self._hidden)
        for column in self._spare_first:
            if needed <= room:
                break
            if column not in self._hidden:
                self._spared.add(column)
                needed -= self._pixels[column]
        for column in range(self.model().columnCount()):
            self.setColumnHidden(column, column in self._hidden | self._spared)

    def _sort_by(self, column: int) -> None:
        if column != self._column:
            self._column, self._is_descending = column, False
        elif not self._is_descending:
            self._is_descending = True
        else:
            self._column = None
        self._rows_model.mark_sorted(self._column, descending=self._is_descending)
        self.order_changed.emit()

    def _show_chooser(self, place: QPoint) -> None:
        menu = self.chooser()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.horizontalHeader().mapToGlobal(place))

    def _measure_columns(self) -> None:
        super()._measure_columns()
        self._fit(self.viewport().width())

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit(event.size().width())
        super().resizeEvent(event)


def _key(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
