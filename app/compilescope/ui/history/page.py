"""The history as a page of the window: find a comparison, look at it again, set two side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from compilescope.domain import units
from compilescope.domain.errors import AppError
from compilescope.ui.history.columns import COLUMNS, date_text, runs_text
from compilescope.ui.keeping import HistoryCommands
from compilescope.ui.models.rows import RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import ElidedLabel, button, label

if TYPE_CHECKING:
    from compilescope.store.records import ComparisonRow

MOST_SHOWN = 500


class HistoryPage(QWidget):
    """Rows are read when the page is shown and at each letter of the search; edits are stored on leaving a field."""

    back_wanted = Signal()

    def __init__(self, commands: HistoryCommands, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._commands = commands
        self._edited: ComparisonRow | None = None
        self._build(theme)
        self._connect()
        self._show_details()

    def refresh(self) -> None:
        """Read the list anew; what was selected stays selected."""
        chosen = {row.id for row in self._chosen}
        try:
            rows = self._commands.history.comparisons(self._search.text(), limit=MOST_SHOWN)
            count = self._commands.history.count()
        except AppError as error:
            self._commands.failed.emit(error.message, error.hint)
            return
        self._model.set_rows(rows)
        self._count.setText(_count_text(len(rows), count, bool(self._search.text().strip())))
        self._select(chosen)
        self._show_details()

    def focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @property
    def _chosen(self) -> list[ComparisonRow]:
        numbers = sorted(index.row() for index in self._table.selectionModel().selectedRows())
        return [row for number in numbers if (row := self._model.row(number))]

    def _select(self, chosen: set[str]) -> None:
        selection = self._table.selectionModel()
        if not chosen or {row.id for row in self._chosen} == chosen:
            return
        selection.clearSelection()
        flags = selection.SelectionFlag.Select | selection.SelectionFlag.Rows
        for number, row in enumerate(self._model.rows):
            if row.id in chosen:
                selection.select(self._model.index(number, 0), flags)

    def _show_details(self) -> None:
        chosen = self._chosen
        row = chosen[0] if len(chosen) == 1 else None
        self._store_edits()
        self._edited = row
        self._open.setEnabled(row is not None)
        self._export.setEnabled(row is not None)
        self._delete.setEnabled(bool(chosen))
        self._compare.setEnabled(len(chosen) == 2)
        self._resume.setVisible(bool(row and row.unfinished))
        for field in (self._tags, self._notes):
            field.setEnabled(row is not None)
        self._tags.setText(", ".join(row.tags) if row else "")
        self._notes.setText(row.notes if row else "")
        self._title.setText(_title(chosen))

    def _store_edits(self) -> None:
        row = self._edited
        if row is None:
            return
        tags = tuple(part for tag in self._tags.text().split(",") if (part := tag.strip()))
        if tags != row.tags or self._notes.text() != row.notes:
            # before the list answers with a refresh, so that this is stored once
            self._edited = None
            self._commands.edit(row, tags=tags, notes=self._notes.text())

    def _open_row(self, index: QModelIndex) -> None:
        row = self._model.row(index.row())
        if row:
            self._commands.open(row.id)

    def _open_chosen(self) -> None:
        for row in self._chosen[:1]:
            self._commands.open(row.id)

    def _resume_chosen(self) -> None:
        for row in self._chosen[:1]:
            self._commands.resume_id(row.id)

    def _compare_chosen(self) -> None:
        chosen = self._chosen
        if len(chosen) == 2:
            # the older one first: what changed since
            older, newer = sorted(chosen, key=lambda row: row.created)
            self._commands.compare((older.id, newer.id))

    def _export_chosen(self) -> None:
        for row in self._chosen[:1]:
            self._commands.export(row, self)

    def _delete_chosen(self) -> None:
        self._edited = None
        self._commands.delete(self._chosen)

    def _import(self) -> None:
        self._commands.import_(self)

    def _connect(self) -> None:
        self._search.textChanged.connect(self.refresh)
        self._commands.changed.connect(self._refresh_if_seen)
        self._table.selectionModel().selectionChanged.connect(self._show_details)
        self._table.doubleClicked.connect(self._open_row)
        self._table.activated.connect(self._open_row)
        self._tags.editingFinished.connect(self._store_edits)
        self._notes.editingFinished.connect(self._store_edits)
        for part, do in (
            (self._open, self._open_chosen),
            (self._resume, self._resume_chosen),
            (self._compare, self._compare_chosen),
            (self._export, self._export_chosen),
            (self._delete, self._delete_chosen),
            (self._import_button, self._import),
        ):
            part.clicked.connect(do)
        self._back.clicked.connect(self.back_wanted)

    def _refresh_if_seen(self) -> None:
        if self.isVisible():
            self.refresh()

    def _build(self, theme: Theme) -> None:
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("History", self._model)
        self._table.setObjectName("history")
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._table.set_widths((16, 19, 5, 12, 21, 12, 15, 12), stretch=7)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        layout.addWidget(self._table, 1)
        layout.addWidget(self._foot())
        self.setFocusProxy(self._search)

    def _head(self) -> QHBoxLayout:
        self._back = button("Back")
        self._back.setToolTip("To the comparison (Ctrl+H)")
        self._search = QLineEdit()
        self._search.setObjectName("history_search")
        self._search.setAccessibleName("Search the history")
        self._search.setPlaceholderText("Search script, configuration, result, tag, note, torch, device")
        self._search.setClearButtonEnabled(True)
        self._count = label("", "muted")
        self._import_button = button("Import…")
        self._import_button.setToolTip("Add a comparison that was exported here or elsewhere")
        head = QHBoxLayout()
        head.setContentsMargins(10, 10, 10, 10)
        head.setSpacing(10)
        head.addWidget(self._back)
        head.addWidget(self._search, 1)
        head.addWidget(self._count)
        head.addWidget(self._import_button)
        return head

    def _foot(self) -> QFrame:
        self._title = ElidedLabel("", "heading")
        self._tags, self._notes = QLineEdit(), QLineEdit()
        for field, name, hint in ((self._tags, "Tags", "tags, apart by commas"), (self._notes, "Notes", "notes")):
            field.setObjectName(f"history_{name.lower()}")
            field.setAccessibleName(name)
            field.setPlaceholderText(hint)
        self._open = button("Open", "primary")
        self._resume = button("Resume")
        self._compare = button("Compare two")
        self._compare.setToolTip("Select two comparisons (Ctrl+click) to set them side by side")
        self._export, self._delete = button("Export…"), button("Delete")
        fields = QHBoxLayout()
        fields.setSpacing(8)
        fields.addWidget(self._tags, 1)
        fields.addWidget(self._notes, 2)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self._title, 1)
        for part in self._buttons():
            top.addWidget(part)
        foot = QFrame()
        foot.setObjectName("panel")
        inside = QVBoxLayout(foot)
        inside.setContentsMargins(12, 9, 12, 10)
        inside.setSpacing(8)
        inside.addLayout(top)
        inside.addLayout(fields)
        return foot

    def _buttons(self) -> list[QPushButton]:
        return [self._delete, self._export, self._compare, self._resume, self._open]


def _title(chosen: list[ComparisonRow]) -> str:
    if not chosen:
        return "Select a comparison"
    if len(chosen) > 1:
        return f"{len(chosen)} comparisons"
    row = chosen[0]
    return f"{row.title}, {date_text(row.created)}, {runs_text(row)}"


def _count_text(shown: int, count: int, is_search: bool) -> str:
    if is_search:
        return f"{shown} found" if shown < MOST_SHOWN else f"the newest {MOST_SHOWN} that fit"
    if shown < count:
        return f"the newest {shown} of {units.count(count)}"
    return units.plural(count, "comparison")
