"""A table view set up the way all of ours are."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex
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
    """Whole rows, no grid, fixed row height. Copying takes the selected rows with a header, apart by tabs."""

    def __init__(self, name: str, model: QAbstractItemModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        # a table takes Tab for itself otherwise, and the keyboard never gets out of it
        self.setTabKeyNavigation(False)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setFixedHeight(HEADER_HEIGHT)
        self.horizontalHeader().setMinimumSectionSize(40)

    def set_widths(self, widths: Sequence[int], stretch: int) -> None:
        """Widths in average characters; column `stretch` takes the rest."""
        unit = self.fontMetrics().averageCharWidth()
        header = self.horizontalHeader()
        for column, width in enumerate(widths):
            header.resizeSection(column, width * unit + 18)
        header.setSectionResizeMode(stretch, QHeaderView.ResizeMode.Stretch)

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        model = self.model()
        if event.matches(QKeySequence.StandardKey.Copy) and hasattr(model, "as_text"):
            numbers = [index.row() for index in self.selectionModel().selectedRows()]
            QGuiApplication.clipboard().setText(model.as_text(numbers))
            return
        super().keyPressEvent(event)
