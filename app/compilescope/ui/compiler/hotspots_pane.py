"""Where the time of a call goes: eager's operators or kernels beside the compiled ones, heaviest first."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from compilescope.domain import units
from compilescope.domain.hotspot_sentences import sentences
from compilescope.domain.hotspots import Hotspot, SideTime, hotspots, rate_text
from compilescope.domain.peaks import SOURCE
from compilescope.domain.run import Run
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.models.rows import Column, RowsModel
from compilescope.ui.panels.bars import BarDelegate
from compilescope.ui.panels.table import DataTable
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import ElidedLabel, label

KINDS = {"operator": "operator", "triton": "Triton kernel of Inductor", "cpp": "C++ kernel of Inductor"}
_BAR, _TIME, _RATE = 1, 2, 5
# what gives way first where there is little room
_OPTIONAL = (_RATE, _TIME, _BAR)
_NAME_CHARACTERS = 14


@dataclass(frozen=True, kw_only=True)
class TimeRow:
    """One row; `reach` is its time as a share of the longest one of both sides, which is how long its bar is."""

    spot: Hotspot
    reach: float
    token: str


def _tip(row: TimeRow) -> str:
    spot = row.spot
    lines = [spot.name, KINDS.get(spot.kind, "library kernel")]
    lines += [f"launched by {spot.operator}"] if spot.operator else []
    for rate, unit, share, what in (
        (spot.flops_per_s, "FLOP/s", spot.flops_share, "of the card’s peak"),
        (spot.bytes_per_s, "B/s", spot.bytes_share, "of its memory bandwidth"),
    ):
        if rate:
            lines.append(rate_text(rate, unit) + (f", {units.percent(share)} {what}" if share else ""))
    return "\n".join(lines)


COLUMNS: tuple[Column[TimeRow], ...] = (
    Column(title="Name", value=lambda row: row.spot.name, text=lambda row: row.spot.label, tip=_tip),
    Column(title="", value=lambda row: (row.reach, row.token), text=lambda _row: ""),
    Column(
        title="Time",
        value=lambda row: row.spot.seconds,
        text=lambda row: units.duration(row.spot.seconds),
        is_number=True,
        explanation="Per call, all its launches together.",
    ),
    Column(
        title="Share",
        value=lambda row: row.spot.share,
        text=lambda row: units.percent(row.spot.share),
        is_number=True,
        explanation="Of the call. What is missing to 100 % is Python, starting kernels, and waiting.",
    ),
    Column(
        title="Launches",
        value=lambda row: row.spot.launches,
        text=lambda row: units.significant(row.spot.launches) if row.spot.launches % 1 else f"{row.spot.launches:.0f}",
        is_number=True,
        explanation="Per call.",
    ),
    Column(
        title="Rate",
        value=lambda row: row.spot.flops_share or row.spot.bytes_share,
        text=lambda row: row.spot.rate,
        tip=_tip,
        is_number=True,
        explanation="FLOPs of matrix products, convolutions and attention; for others the bytes of the tensors read "
        f"and written, each once. With the share of the card’s peak where that is known ({SOURCE}).",
    ),
)


class _TimeTable(DataTable):
    """Leaves columns out where the name would have no room."""

    def _fit(self) -> None:
        room = self.viewport().width() - _NAME_CHARACTERS * self.fontMetrics().averageCharWidth()
        header = self.horizontalHeader()
        wanted = sum(self._pixels[1:])
        for column in _OPTIONAL:
            is_hidden = wanted > room
            if header.isSectionHidden(column) != is_hidden:
                self.setColumnHidden(column, is_hidden)
            wanted -= self._pixels[column] if is_hidden else 0

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class _Side(QWidget):
    """One side's heading and table."""

    def __init__(self, name: str, theme: Theme) -> None:
        super().__init__()
        self._name = name
        self.heading = ElidedLabel("", "heading")
        self.heading.setObjectName(f"hotspots_{name}_heading")
        self.heading.setContentsMargins(12, 4, 12, 4)
        self.rest = label("", "muted")
        self.rest.setObjectName(f"hotspots_{name}_rest")
        self.rest.setContentsMargins(12, 4, 12, 4)
        self.model = RowsModel(COLUMNS, theme, self)
        self.table = _TimeTable(f"Where the time goes, {name}", self.model)
        self.table.setObjectName(f"hotspots_{name}")
        self.table.set_widths((_NAME_CHARACTERS, 7, 9, 7, 8, 19), stretch=0)
        self.table.setItemDelegate(BarDelegate(theme, _BAR, self.table))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.heading)
        column.addWidget(self.table, 1)
        column.addWidget(self.rest)

    def show_side(self, side: SideTime | None, longest: float) -> None:
        self.setVisible(side is not None)
        if side is None:
            return
        self.heading.setText(_heading(side))
        self.model.set_rows([_row(spot, longest, side.side) for spot in side.rows])
        self.rest.setText(_rest(side))
        self.rest.setVisible(bool(side.hidden))


def _row(spot: Hotspot, longest: float, token: str) -> TimeRow:
    return TimeRow(spot=spot, reach=spot.seconds / longest if longest else 0.0, token=token)


def _heading(side: SideTime) -> str:
    one, many = ("launch", "launches") if side.clock == "device" else ("operator or kernel", "operators and kernels")
    launches = f"{units.count(side.launches)} {one if round(side.launches) == 1 else many}"
    whole = f" of {units.duration(side.whole_s)}" if side.whole_s else ""
    return f"{side.side.capitalize()}: {launches}, {units.duration(side.seconds)}{whole} a call"


def _rest(side: SideTime) -> str:
    return f"and {units.plural(side.hidden, 'lighter one')}, {units.duration(side.hidden_s)} together"


class HotspotsPane(RunPane):
    """What the figures say above; eager left and compiled right below, on one scale."""

    SECTIONS = ("profiles", "samples", "environment")

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(state, "hotspots", parent)
        self._summary = label("", "", wrap=True)
        self._summary.setObjectName("hotspots_summary")
        self._summary.setContentsMargins(12, 8, 12, 8)
        self._sides = {name: _Side(name, theme) for name in ("eager", "compiled")}
        split = QSplitter(Qt.Orientation.Horizontal)
        for side in self._sides.values():
            split.addWidget(side)
        split.setSizes([500, 500])
        split.setChildrenCollapsible(False)
        self.column.addWidget(self._summary)
        self.column.addWidget(split, 1)

    def show_run(self, run: Run | None) -> None:
        found = hotspots(run) if run else None
        if found is None:
            self.show_empty("The profiler looks at a call after the timing, and tells here which kernels it spends.")
            return
        longest = max((row.seconds for side in found.sides for row in side.rows), default=0.0)
        self._summary.setText(" ".join(sentences(found)))
        for name, side in (("eager", found.eager), ("compiled", found.compiled)):
            self._sides[name].show_side(side, longest)
        self.show_content()
