"""The compile timeline of a run: every phase as it happens."""

from __future__ import annotations

import time

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QWidget

from compilescope.domain import units, words
from compilescope.domain.run import PhaseRow, ProcessStory, Run
from compilescope.ui.charts import groups
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.lanes import Lanes
from compilescope.ui.charts.legend import Key
from compilescope.ui.charts.timeline_view import TimelineView
from compilescope.ui.theme import Theme

SILENCE_S = 30.0
_NO_RUN = "Choose a run to see what the compiler did, phase by phase."
_NO_PHASES = "Phases appear here as soon as the compiler starts."
_NEVER_COMPILED = "The compiler told of no phase in this process."


class Timeline(Chart):
    """Signals: `phase_selected` (PhaseRow | None)."""

    phase_selected = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self.view = TimelineView(theme)
        super().__init__(theme, "Compile timeline", self.view, parent)
        self._run: Run | None = None
        self._lanes = Lanes()
        self._keys_by_group = {group: Key(name) for group, name in words.PHASES.items()}
        for key in self._keys_by_group.values():
            self.keys.add(key)
        self._last_at = 0.0
        self._heard = time.monotonic()
        self._process = QComboBox()
        self._process.setObjectName("timeline.process")
        self._process.setAccessibleName("Process whose phases are shown")
        self._process.currentIndexChanged.connect(self._start_over)
        self._process.hide()
        self.add_control(self._process)
        self.view.phase_selected.connect(self.phase_selected)
        self.view.range_chosen.connect(self.note_zoom)
        self.restyle()
        self.show_run(None)

    def show_run(self, run: Run | None) -> None:
        """Show another run's compile story, or none."""
        self._run = run
        self._process.blockSignals(True)
        self._process.clear()
        self._process.blockSignals(False)
        self._process.hide()
        self._start_over()

    def refresh(self) -> None:
        """Take in what the run has got since; meant for ten times a second."""
        story = self._story()
        if story is None:
            self.show_empty(_NO_RUN if self._run is None else _NO_PHASES)
            return
        self._offer_processes()
        has_grown = self._lanes.read(story.phases)
        if not self._lanes.count:
            is_over = bool(self._run and (self._run.is_over or story is not self._run.processes[-1]))
            self.show_empty(_NEVER_COMPILED if is_over else _NO_PHASES)
        elif has_grown or self.is_empty or story.last_at != self._last_at:
            self._show(story)
        self._note_silence(story)

    def select(self, row: PhaseRow | None) -> None:
        self.view.select(row)

    def fit_range(self) -> None:
        end = max(self._lanes_end(), self._lanes.begin + 1e-3)
        self.view.set_range(self._lanes.begin, end + (end - self._lanes.begin) * 0.01)

    def restyle(self) -> None:
        self.view.restyle()
        for group, key in self._keys_by_group.items():
            key.swatch.set_color(groups.color(group, self.theme.tokens).name())

    def _story(self) -> ProcessStory | None:
        if self._run is None or not self._run.processes:
            return None
        index = self._process.currentIndex()
        return self._run.processes[index] if 0 <= index < len(self._run.processes) else self._run.story

    def _offer_processes(self) -> None:
        processes = self._run.processes if self._run else []
        # the first item that comes is chosen at once, which is no choice of the user's
        self._process.blockSignals(True)
        for process in processes[self._process.count() :]:
            self._process.addItem(f"{process.start} start")
        self._process.blockSignals(False)
        self._process.setVisible(len(processes) > 1)

    def _start_over(self) -> None:
        self._lanes = Lanes()
        self.view.select(None)
        self.view.show_lanes(self._lanes, 0.0)
        self.show_note("")
        self.fit()
        self.refresh()

    def _show(self, story: ProcessStory) -> None:
        self._last_at, self._heard = story.last_at, time.monotonic()
        for group, key in self._keys_by_group.items():
            self.keys.set_shown(key, group in self._lanes.groups)
        self.view.show_lanes(self._lanes, story.last_at)
        if self.is_fitted:
            self.fit_range()
        self.show_view(f"{units.plural(self._lanes.count, 'phase')} on {len(self._lanes.threads)} threads")

    def _lanes_end(self) -> float:
        lanes = [lane for thread in self._lanes.threads.values() for lane in thread]
        return max((self._end_of(lane.rows[-1]) for lane in lanes if lane.rows), default=0.0)

    def _end_of(self, row: PhaseRow) -> float:
        return row.began + row.duration_s if row.duration_s is not None else max(self._last_at, row.began)

    def _note_silence(self, story: ProcessStory) -> None:
        silent = time.monotonic() - self._heard
        is_open = any(row.duration_s is None for row in story.phases[-50:])
        is_on = self._run is not None and not self._run.is_over and is_open
        self.show_note(f"no news for {units.clock(silent)}" if is_on and silent >= SILENCE_S else "")
