"""Autotuning: what was tried for each operation, how long each took, and which one won."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QSplitter, QWidget

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.run import Run
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.bars import BarDelegate
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

_BAR = 2


@dataclass(frozen=True, kw_only=True)
class ChoiceRow:
    """One implementation that was tried. `share`: the fastest one's time over this one's, so that the winner has 1."""

    name: str
    seconds: float | None
    detail: str
    is_winner: bool
    slowest: float

    @property
    def share(self) -> float:
        return self.seconds / self.slowest if self.seconds and self.slowest else 0.0


def choice_rows(event: e.Autotune | None) -> list[ChoiceRow]:
    """The choices, fastest first; those that failed last."""
    choices = event.choices if event else ()
    times = [float(choice["seconds"]) for choice in choices if choice.get("seconds")]
    slowest = max(times, default=0.0)
    rows = [
        ChoiceRow(
            name=str(choice.get("name") or "–"),
            seconds=float(choice["seconds"]) if choice.get("seconds") else None,
            detail=str(choice.get("detail") or ""),
            is_winner=event is not None and choice.get("name") == event.winner,
            slowest=slowest,
        )
        for choice in choices
    ]
    return sorted(rows, key=lambda row: (row.seconds is None, row.seconds or 0.0))


OPERATIONS: tuple[Column[e.Autotune], ...] = (
    Column(title="Operation", value=lambda row: row.operation, text=lambda row: row.operation),
    Column(
        title="Inputs",
        value=lambda row: ", ".join(row.inputs),
        text=lambda row: ", ".join(row.inputs) or "–",
        tip=lambda row: "\n".join(row.inputs),
    ),
    Column(title="Winner", value=lambda row: row.winner or "", text=lambda row: row.winner or "–"),
    Column(
        title="Took",
        value=lambda row: row.duration_s,
        text=lambda row: units.duration(row.duration_s),
        is_number=True,
        explanation="What trying the choices took, once, while compiling.",
    ),
)
CHOICES: tuple[Column[ChoiceRow], ...] = (
    Column(
        title="Choice",
        value=lambda row: row.name,
        text=lambda row: f"{row.name}  (winner)" if row.is_winner else row.name,
        tone=lambda row: "good" if row.is_winner else "",
        tip=lambda row: row.detail,
    ),
    Column(
        title="Time",
        value=lambda row: row.seconds,
        text=lambda row: units.duration(row.seconds) if row.seconds else "failed",
        tone=lambda row: "" if row.seconds else "faint",
        is_number=True,
    ),
    Column(title="", value=lambda row: (row.share, "good" if row.is_winner else "eager"), text=lambda _row: ""),
    Column(title="Settings", value=lambda row: row.detail, text=lambda row: row.detail, tip=lambda row: row.detail),
)


class AutotunePane(RunPane):
    """Left the operations, right the choices of the selected one."""

    SECTIONS = ("autotunes",)

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "autotune", parent)
        self._summary = label("", "", wrap=True)
        self._summary.setObjectName("autotune_summary")
        self._summary.setContentsMargins(12, 8, 12, 8)
        self._operations = RowsModel(OPERATIONS, theme, self)
        self._choices = RowsModel(CHOICES, theme, self)
        self._left = DataTable("Autotuned operations", self._operations)
        self._left.setObjectName("autotunes")
        self._left.set_widths((10, 22, 16, 9), stretch=1)
        self._right = DataTable("Choices", self._choices)
        self._right.setObjectName("choices")
        self._right.set_widths((26, 10, 18, 20), stretch=3)
        self._right.setItemDelegate(BarDelegate(theme, _BAR, self._right))
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self._left)
        split.addWidget(self._right)
        split.setSizes([460, 520])
        split.setChildrenCollapsible(False)
        self.column.addWidget(self._summary)
        self.column.addWidget(split, 1)
        self._left.selectionModel().currentRowChanged.connect(self._show_choices)

    def show_run(self, run: Run | None) -> None:
        rows = run.story.autotunes if run and run.story else []
        self._operations.set_rows(rows)
        if not rows:
            self.show_empty("Nothing was autotuned.")
            return
        total = sum(row.duration_s or 0.0 for row in rows)
        self._summary.setText(f"{units.plural(len(rows), 'operation')} autotuned in {units.duration(total)}.")
        self.show_content()
        if not self._left.currentIndex().isValid():
            self._left.selectRow(0)
        self._show_choices(self._left.currentIndex())

    def _show_choices(self, index: QModelIndex) -> None:
        self._choices.set_rows(choice_rows(self._operations.row(index.row())))
