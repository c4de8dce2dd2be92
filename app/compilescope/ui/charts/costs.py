"""What each configuration costs: its first calls by phase, and its memory beside eager's."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from compilescope.domain import units, words
from compilescope.domain.firstcall import FIRST_USE, OUTSIDE
from compilescope.report.blocks import PhaseBar
from compilescope.report.chart_blocks import first_call_bars
from compilescope.ui.charts import groups
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.charted import Charted
from compilescope.ui.charts.legend import Key
from compilescope.ui.charts.stacks import Bar, Part, StackRow, Stacks
from compilescope.ui.charts.ticks import time_labels
from compilescope.ui.theme import Theme

_NO_FIRST_CALLS = "First calls stand here once a configuration has compiled."
_NO_MEMORY_YET = "Peaks stand here once a configuration has been measured on a GPU."
_CPU_MEMORY = "On a CPU eager and compiled share one process, so that a peak of each cannot be told."
# how much of the ground is mixed into the grey of what is no compiler phase
_GROUND = {FIRST_USE: 0.0, OUTSIDE: 0.7}
MIB, GIB = 2**20, 2**30


class FirstCallChart(Chart):
    """Cold above warm, stacked by group of compiler phases."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._stacks = Stacks(theme, self._color, _times)
        # phases are many, and those of a run that is over stay as they are
        self._known: dict[str, tuple[int, tuple[Bar, ...]]] = {}
        self._keys: dict[str, Key] = {}
        super().__init__(theme, "First call by compiler phase", scrolled(self._stacks), parent)
        for group in (*words.PHASES, *_GROUND):
            key = self._keys[group] = Key(words.phase(group))
            self.keys.add(key)
        self.restyle()

    def show_runs(self, rows: Sequence[Charted], _shown: Charted | None) -> None:
        found = [StackRow(label=row.label, bars=bars) for row in rows if (bars := self._bars(row))]
        if not found:
            self.show_empty(_NO_FIRST_CALLS)
            return
        seen = {part.kind for row in found for bar in row.bars for part in bar.parts}
        for group, key in self._keys.items():
            self.keys.set_shown(key, group in seen)
        self._stacks.show_rows(found)
        self.show_view(
            "; ".join(f"{row.label}: " + ", ".join(f"{b.title} {b.text}" for b in row.bars) for row in found)
        )

    def restyle(self) -> None:
        for group, key in self._keys.items():
            key.swatch.set_color(self._color(group).name())
        self._stacks.update()

    def _color(self, kind: str) -> QColor:
        """What is no compiler phase is grey."""
        tokens = self.theme.tokens
        if kind in _GROUND:
            return groups.mix(QColor(tokens.eager), QColor(tokens.field), _GROUND[kind])
        return groups.color(kind, tokens)

    def _bars(self, row: Charted) -> tuple[Bar, ...]:
        revision = row.run.revision["all"]
        known = self._known.get(row.run.id)
        if known is None or known[0] != revision:
            known = self._known[row.run.id] = (revision, tuple(map(_phase_bar, first_call_bars(row.run))))
        return known[1]


def _phase_bar(bar: PhaseBar) -> Bar:
    def tip(group: str, seconds: float) -> str:
        whole = f"{bar.label.lower()} {units.duration(bar.total_s)}"
        return f"{words.phase(group)}: {units.duration(seconds)} of {whole} ({100 * seconds / bar.total_s:.0f} %)"

    parts = tuple(
        Part(kind=group, name=words.phase(group), size=seconds, tip=tip(group, seconds)) for group, seconds in bar.parts
    )
    return Bar(title=bar.label.lower(), parts=parts, text=units.duration(bar.total_s))


class MemoryChart(Chart):
    """The largest allocation of eager and of compiled, each measured alone."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._stacks = Stacks(theme, lambda kind: QColor(getattr(theme.tokens, kind)), size_labels)
        super().__init__(theme, "Peak memory", scrolled(self._stacks), parent)

    def show_runs(self, rows: Sequence[Charted], _shown: Charted | None) -> None:
        found = [StackRow(label=row.label, bars=bars) for row in rows if (bars := _memory_bars(row))]
        if not found:
            is_cpu = any(row.measures.clock == "wall" and row.run.is_over for row in rows)
            self.show_empty(_CPU_MEMORY if is_cpu else _NO_MEMORY_YET)
            return
        self._stacks.show_rows(found)
        self.show_view(
            "; ".join(f"{row.label}: " + ", ".join(f"{b.title} {b.text}" for b in row.bars) for row in found)
        )

    def restyle(self) -> None:
        self._stacks.update()


def _memory_bars(row: Charted) -> tuple[Bar, ...]:
    sides = (("eager", row.measures.eager_peak_bytes), ("compiled", row.measures.compiled_peak_bytes))
    return tuple(
        Bar(
            title=side,
            parts=(Part(kind=side, name="", size=float(peak), tip=f"{side}, steady: {units.size(peak)}"),),
            text=units.size(peak),
        )
        for side, peak in sides
        if peak
    )


def _words(row: StackRow) -> str:
    return f"{row.label}: " + ", ".join(f"{bar.title} {bar.text}" for bar in row.bars)


def size_labels(values: Sequence[float]) -> list[str]:
    """Bytes in one unit for all ticks."""
    unit, name = (GIB, "GiB") if max(values, default=0.0) >= GIB else (MIB, "MiB")
    return [f"{value / unit:.3g} {name}" for value in values]


def scrolled(view: QWidget) -> QScrollArea:
    """A drawing that may be higher than its chart."""
    area = QScrollArea()
    area.setWidget(view)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    return area


def _times(values: Sequence[float]) -> list[str]:
    return time_labels(list(values))
