"""What Run would do: the product of all that is ticked, row by row, with about how long each takes."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QDropEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from compilescope.domain.estimate import rough
from compilescope.domain.matrix import Row
from compilescope.ui.panels.table import HEADER_HEIGHT, ROW_HEIGHT
from compilescope.ui.state import AppState
from compilescope.ui.widgets import ElidedLabel, label, plain_tip

COLUMNS = ("Configuration", "Phase", "Precision", "Takes", "Estimated")
HINT = "Untick a row to skip it. Drag rows, or Alt+Up and Alt+Down, to change their order."
MOST_ROWS_SHOWN = 8
# with results below it, or in a low window, it gives way and scrolls
LOW, ROWS_SHOWN_LOW = 720, 3
_KEY = Qt.ItemDataRole.UserRole
MOVES = (("Up", -1, "Alt+Up", "Run this row earlier"), ("Down", 1, "Alt+Down", "Run this row later"))


class PlanPanel(QWidget):
    """Writes the order and the skipped rows into the selection. Shown while nothing runs and there is a plan."""

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._is_showing = False
        # what the comparison that is shown was made of
        self._carried_out: tuple[str, ...] = ()
        self._build()
        state.script_changed.connect(self.refresh)
        state.selection_changed.connect(self.refresh)
        state.earlier_changed.connect(self.refresh)
        state.activity_changed.connect(self.refresh)
        state.comparison_changed.connect(self._note_comparison)
        self.refresh()

    def refresh(self) -> None:
        rows = self._state.selection.rows(self._state.script) if self._is_wanted() else []
        self.setVisible(bool(rows))
        self._is_showing = True
        current = self._current_key()
        while self._rows.topLevelItemCount() > len(rows):
            self._rows.takeTopLevelItem(len(rows))
        for number, row in enumerate(rows):
            item = self._item(number)
            self._fill(item, row)
            if row.key == current:
                self._rows.setCurrentItem(item)
        self._is_showing = False
        self._rows.set_low(bool(self._state.runs))

    def _is_wanted(self) -> bool:
        """Before the first run, and again once something else is ticked than what has run."""
        state = self._state
        has_entries = state.scan is not None and bool(state.scan.entries)
        if state.is_busy or not has_entries:
            return False
        return not state.runs or self._wanted() != self._carried_out

    def _wanted(self) -> tuple[str, ...]:
        selection = self._state.selection
        return (str(selection.measurement), *(row.key for row in selection.planned(self._state.script)))

    def _note_comparison(self) -> None:
        self._carried_out = self._wanted()
        self.refresh()

    def _item(self, number: int) -> QTreeWidgetItem:
        item = self._rows.topLevelItem(number)
        if item is None:
            item = QTreeWidgetItem(self._rows)
            item.setSizeHint(0, QSize(0, ROW_HEIGHT))
            # rows change places, and none becomes part of another
            item.setFlags((item.flags() | Qt.ItemFlag.ItemIsUserCheckable) & ~Qt.ItemFlag.ItemIsDropEnabled)
        return item

    def _fill(self, item: QTreeWidgetItem, row: Row) -> None:
        is_skipped = row.key in self._state.selection.skipped
        found = self._state.selection.estimate(row, self._state.earlier)
        texts = (
            row.config.label,
            row.workload.phase,
            row.workload.precision,
            "skipped" if is_skipped else f"about {rough(found.seconds)}",
            found.basis,
        )
        for column, text in enumerate(texts):
            item.setText(column, text)
        item.setData(0, _KEY, row.key)
        item.setCheckState(0, Qt.CheckState.Unchecked if is_skipped else Qt.CheckState.Checked)
        item.setToolTip(0, plain_tip(row.config.snippet))

    def _choose(self, item: QTreeWidgetItem, column: int) -> None:
        if self._is_showing or column:
            return
        key = str(item.data(0, _KEY))
        is_skipped = item.checkState(0) is Qt.CheckState.Unchecked
        skipped = self._state.selection.skipped
        self._write(skipped=skipped | {key} if is_skipped else skipped - {key})

    def _move(self) -> None:
        action = self.sender()
        item = self._rows.currentItem()
        if not isinstance(action, QAction) or item is None:
            return
        keys = self._keys()
        place = keys.index(str(item.data(0, _KEY)))
        target = place + int(action.data())
        if 0 <= target < len(keys):
            keys[place], keys[target] = keys[target], keys[place]
            self._write(order=tuple(keys))

    def _take_order(self) -> None:
        """Rows have been dragged."""
        self._write(order=tuple(self._keys()))

    def _write(self, **changes: object) -> None:
        self._state.set_selection(dataclasses.replace(self._state.selection, **changes))  # type: ignore[arg-type]

    def _keys(self) -> list[str]:
        items = [self._rows.topLevelItem(number) for number in range(self._rows.topLevelItemCount())]
        return [str(item.data(0, _KEY)) for item in items if item is not None]

    def _current_key(self) -> str | None:
        item = self._rows.currentItem()
        return None if item is None else str(item.data(0, _KEY))

    def _build(self) -> None:
        self._rows = _Rows()
        self._rows.itemChanged.connect(self._choose)
        self._rows.dropped.connect(self._take_order)
        top = QHBoxLayout()
        top.setContentsMargins(12, 4, 8, 4)
        top.setSpacing(8)
        top.addWidget(label("Plan", "heading"))
        top.addWidget(ElidedLabel(HINT, "muted"), 1)
        for text, step, keys, tip in MOVES:
            top.addWidget(self._move_button(text, step, keys, tip))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(self._rows)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def _move_button(self, text: str, step: int, keys: str, tip: str) -> QToolButton:
        action = QAction(text, self)
        action.setData(step)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.setToolTip(f"{tip} ({keys})")
        action.triggered.connect(self._move)
        self.addAction(action)
        result = QToolButton()
        result.setDefaultAction(action)
        result.setAccessibleName(tip)
        return result


class _Rows(QTreeWidget):
    """As high as its rows, as far as the window has room."""

    dropped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._is_low = False
        self.setObjectName("plan")
        self.setAccessibleName("Plan")
        self.setHeaderLabels(COLUMNS)
        self.setRootIsDecorated(False)
        self.setIndentation(4)
        self.setUniformRowHeights(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.header().setStretchLastSection(True)
        self.header().setSectionsMovable(False)
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def set_low(self, is_low: bool) -> None:
        """Show fewer rows at once, and scroll."""
        self._is_low = is_low
        self.updateGeometry()

    # Qt overrides

    def sizeHint(self) -> QSize:
        most = ROWS_SHOWN_LOW if self._is_low or self.window().height() < LOW else MOST_ROWS_SHOWN
        rows = min(max(self.topLevelItemCount(), 1), most)
        return QSize(300, HEADER_HEIGHT + rows * ROW_HEIGHT + 4)

    def dropEvent(self, event: QDropEvent) -> None:
        super().dropEvent(event)
        self.dropped.emit()
