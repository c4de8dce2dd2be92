"""Two runs set side by side, in a window of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QGridLayout, QLabel, QVBoxLayout, QWidget

from compilescope.domain.comparison import Comparison
from compilescope.domain.difference import Difference, Row, difference
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR
from compilescope.ui.history.columns import date_text
from compilescope.ui.keeping import Stored
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.table import DataTable
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label

COLUMNS: tuple[Column[Row], ...] = (
    Column(title="Part", value=lambda row: row.section, text=lambda row: row.section, tone=lambda _: "muted"),
    Column(title="What", value=lambda row: row.name, text=lambda row: row.name, tip=lambda row: row.name),
    Column(title="First", value=lambda row: row.before, text=lambda row: row.before, tip=lambda row: row.before),
    Column(
        title="Second",
        value=lambda row: row.after,
        text=lambda row: row.after,
        tip=lambda row: row.after,
        tone=lambda row: row.tone,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A run that can be chosen. `source`: its script's text as it was, where that is known."""

    name: str
    run: Run
    source: str | None = None
    noise_floor: float = NOISE_FLOOR


class DifferenceWindow(QDialog):
    """Any two of the candidates; what differs is listed, or everything."""

    def __init__(self, candidates: Sequence[Candidate], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Difference of two configurations")
        self.resize(940, 620)
        self._candidates = list(candidates)
        self._build(theme)

    def choose(self, first: int, second: int) -> None:
        """Show the difference of two candidates."""
        for box, number in ((self._first, first), (self._second, second)):
            box.blockSignals(True)
            box.setCurrentIndex(number)
            box.blockSignals(False)
        self.refresh()

    @property
    def found(self) -> Difference:
        one, two = (self._candidates[max(box.currentIndex(), 0)] for box in (self._first, self._second))
        floor = max(one.noise_floor, two.noise_floor)
        return difference(one.run, two.run, sources=(one.source, two.source), noise_floor=floor)

    def refresh(self) -> None:
        found = self.found
        self._summary.setText(found.summary)
        cautions = list(found.cautions)
        if cautions:
            cautions.insert(0, "Not the same was measured, so the figures do not compare the configurations alone.")
        self._cautions.setText("\n".join(cautions))
        self._cautions.setVisible(bool(cautions))
        rows = [row for row in found.rows if row.is_changed or not self._changed_only.isChecked()]
        self._model.set_rows(rows)
        self._table.setVisible(bool(rows))
        self._empty.setVisible(not rows)

    def _build(self, theme: Theme) -> None:
        self._first, self._second = self._box("First configuration"), self._box("Second configuration")
        self._summary = label("", "heading", wrap=True)
        self._cautions = label("", "note", wrap=True)
        self._cautions.setObjectName("difference_cautions")
        self._empty = label("Nothing differs.", "faint")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._changed_only = QCheckBox("Only what differs")
        self._changed_only.setChecked(True)
        self._changed_only.toggled.connect(self.refresh)
        self._model = RowsModel(COLUMNS, theme, self)
        self._table = DataTable("Difference", self._model)
        self._table.setObjectName("difference")
        self._table.setSelectionMode(DataTable.SelectionMode.ExtendedSelection)
        self._table.set_widths((15, 46, 30, 30), stretch=1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 12)
        layout.setSpacing(9)
        layout.addLayout(self._choice())
        layout.addWidget(self._summary)
        layout.addWidget(self._cautions)
        layout.addWidget(self._changed_only)
        layout.addWidget(self._table, 1)
        layout.addWidget(self._empty, 1)

    def _choice(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        grid.setColumnStretch(1, 1)
        for number, (title, box) in enumerate((("First", self._first), ("Second", self._second))):
            name: QLabel = label(title, "muted")
            name.setBuddy(box)
            grid.addWidget(name, number, 0)
            grid.addWidget(box, number, 1)
        return grid

    def _box(self, name: str) -> QComboBox:
        box = QComboBox()
        box.setAccessibleName(name)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for candidate in self._candidates:
            box.addItem(candidate.name)
        box.currentIndexChanged.connect(self.refresh)
        return box


def show_difference(comparison: Comparison, selected: Sequence[str], theme: Theme, parent: QWidget) -> None:
    """Set the selected configurations side by side; where one is selected, with the first of the others."""
    measured = [run for run in comparison.runs if not run.is_trace]
    chosen = [i for i, run in enumerate(measured) if run.id in selected]
    pair = (chosen + [i for i in range(len(measured)) if i not in chosen])[:2]
    if len(pair) == 2:
        candidates = [Candidate(name=run.label, run=run, noise_floor=comparison.noise_floor) for run in measured]
        _open(candidates, sorted(pair), theme, parent)


def compare_stored(found: tuple[Stored, Stored], theme: Theme, parent: QWidget) -> bool:
    """Set any configuration of one stored comparison beside any of another; False where one has none."""
    candidates = [
        Candidate(
            name=f"{run.label}   ({date_text(stored.comparison.created)})",
            run=run,
            source=stored.source,
            noise_floor=stored.comparison.noise_floor,
        )
        for stored in found
        for run in stored.comparison.runs
    ]
    count = len(found[0].comparison.runs)
    if not 0 < count < len(candidates):
        return False
    label = candidates[0].run.label
    like = [i for i in range(count, len(candidates)) if candidates[i].run.label == label]
    _open(candidates, [0, (like or [count])[0]], theme, parent)
    return True


def _open(candidates: Sequence[Candidate], pair: Sequence[int], theme: Theme, parent: QWidget) -> None:
    window = DifferenceWindow(candidates, theme, parent)
    window.choose(*pair)
    window.show()
