"""A table view set up the way all of ours are."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

ROW_HEIGHT = 26
HEADER_HEIGHT = 28


class ToneDelegate(QStyledItemDelegate):
    """A cell keeps its colour when its row is selected."""

    # Qt overrides

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        palette = option.palette
        palette.setBrush(QPalette.ColorRole.HighlightedText, palette.brush(QPalette.ColorRole.Text))
        option.palette = palette


class DataTable(QTableView):
    """Whole rows, no grid, fixed row height. Copying takes what is shown of the selected rows with a header, apart by
    tabs."""

    def __init__(self, name: str, model: QAbstractItemModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._characters: tuple[int, ...] = ()
        self._pixels: tuple[int, ...] = ()
        self.setModel(model)
        self.setItemDelegate(ToneDelegate(self))
        self.setAccessibleName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        self.setWordWrap(False)
        # names and paths that begin alike differ at their ends
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        # a table takes Tab for itself otherwise, and the keyboard never gets out of it
        self.setTabKeyNavigation(False)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setFixedHeight(HEADER_HEIGHT)
        self.horizontalHeader().setMinimumSectionSize(40)

    def set_widths(self, widths: Sequence[int], stretch: int) -> None:
        """Least widths in average characters; column `stretch` takes the rest, and none is narrower than its title."""
        self._characters = tuple(widths)
        self.horizontalHeader().setSectionResizeMode(stretch, QHeaderView.ResizeMode.Stretch)
        self._measure_columns()

    def _measure_columns(self) -> None:
        unit = max(self.fontMetrics().averageCharWidth(), self.fontMetrics().horizontalAdvance("0"))
        header = self.horizontalHeader()
        self._pixels = tuple(
            max(width * unit + 18, header.sectionSizeFromContents(column).width())
            for column, width in enumerate(self._characters)
        )
        for column, width in enumerate(self._pixels):
            header.resizeSection(column, width)

    # Qt overrides

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        # the style sheet's font arrives after the widths were asked for
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._measure_columns()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        model = self.model()
        if event.matches(QKeySequence.StandardKey.Copy) and hasattr(model, "as_text"):
            numbers = [index.row() for index in self.selectionModel().selectedRows()]
            columns = [i for i in range(model.columnCount()) if not self.isColumnHidden(i)]
            QGuiApplication.clipboard().setText(model.as_text(numbers, columns))
            return
        super().keyPressEvent(event)
