"""What the window knows; panels read it, and hear of changes through its signals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.estimate import Earlier
from compilescope.domain.run import Run
from compilescope.domain.scan import Scan, scan
from compilescope.domain.workload import Measurement
from compilescope.ui.selection import Selection

# why something has to wait; stands no longer than it is true
BUSY = "A comparison is running."


class AppState(QObject):
    """One setter a fact; a signal only when the fact really changed."""

    script_changed = Signal()
    selection_changed = Signal()
    earlier_changed = Signal()
    environment_changed = Signal()
    inspection_changed = Signal()
    comparison_changed = Signal()
    run_changed = Signal(str)  # run id; a run's content has grown
    shown_run_changed = Signal()
    activity_changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.selection = selection
        self.script: Path | None = None
        self.scan: Scan | None = None
        self.trace: Path | None = None
        # of a comparison out of the history: the script's text as it was, and how long was measured
        self.source: str | None = None
        self.measurement: Measurement | None = None
        self.environment: e.Environment | None = None
        self.environment_problem = ""
        self.inspection: e.WorkloadReady | None = None
        self.inspection_error: e.RunError | None = None
        self.comparison: Comparison | None = None
        self.shown_id: str | None = None
        # on several cards several runs go on at once; in the order in which they began
        self.running: list[str] = []
        # none of the comparison's runs
        self.play_off: Run | None = None
        # how long runs of this script took, the newest first
        self.earlier: tuple[Earlier, ...] = ()
        self.is_busy = False
        self.is_inspecting = False
        self.is_calibrating = False
        self.is_stopping = False
        self._follows = True

    @property
    def is_idle(self) -> bool:
        """Whether no worker is wanted for anything that the user asked for."""
        return not (self.is_busy or self.is_inspecting or self.is_calibrating)

    @property
    def runs(self) -> list[Run]:
        return self.comparison.runs if self.comparison else []

    @property
    def shown(self) -> Run | None:
        """The run whose details the panes show."""
        return self.run(self.shown_id)

    @property
    def running_id(self) -> str | None:
        """The run in progress; of several the one that is shown, or else the first."""
        return self.shown_id if self.shown_id in self.running else next(iter(self.running), None)

    def text_then(self, path: Path | None) -> str | None:
        """What a file held when a stored comparison ran; None where that is what it holds now, or is not known."""
        return self.source if path is not None and path == self.script else None

    def run(self, run_id: str | None) -> Run | None:
        return next((run for run in self.runs if run.id == run_id), None)

    def set_script(self, path: Path) -> None:
        """Read what the script offers, by its text alone. The script is not run."""
        self.source = self.measurement = None
        self._begin(script=path)

    def show_trace(self, path: Path, comparison: Comparison) -> None:
        """Show what a saved trace holds. There is no script with it, so nothing to run."""
        self.source = self.measurement = None
        self._begin(trace=path, comparison=comparison)
        for run in comparison.runs:
            self.run_changed.emit(run.id)

    def show_stored(
        self, comparison: Comparison, *, source: str | None = None, measurement: Measurement | None = None
    ) -> None:
        """Show a comparison out of the history, with the script's text as it was then."""
        self.source, self.measurement = source, measurement
        self._begin(script=Path(comparison.runs[0].workload.script), comparison=comparison)
        found = next((run.story.workload for run in comparison.runs if run.story and run.story.workload), None)
        self.set_inspection(found)
        for run in comparison.runs:
            self.run_changed.emit(run.id)

    def _begin(
        self, *, script: Path | None = None, trace: Path | None = None, comparison: Comparison | None = None
    ) -> None:
        if script != self.script:
            self.earlier = ()
        self.script = script
        self.scan = scan(script) if script else None
        self.trace = trace
        self.inspection = None
        self.inspection_error = None
        self.comparison = comparison
        self.shown_id = comparison.runs[0].id if comparison and comparison.runs else None
        self._follows = True
        self.script_changed.emit()
        self.comparison_changed.emit()
        self.shown_run_changed.emit()

    def set_selection(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit()

    def set_environment(self, environment: e.Environment | None, problem: str = "") -> None:
        self.environment = environment
        self.environment_problem = problem
        self.environment_changed.emit()

    def set_inspection(self, workload: e.WorkloadReady | None, error: e.RunError | None = None) -> None:
        if (workload, error) != (self.inspection, self.inspection_error):
            self.inspection = workload
            self.inspection_error = error
            self.inspection_changed.emit()

    def set_comparison(self, comparison: Comparison) -> None:
        """A new comparison of the script as it is now."""
        is_old = self.source is not None
        self.source = self.measurement = None
        if is_old:
            self.script_changed.emit()
        self.comparison = comparison
        self.shown_id = comparison.runs[0].id if comparison.runs else None
        self._follows = True
        self.comparison_changed.emit()
        self.shown_run_changed.emit()

    def show_run(self, run_id: str) -> None:
        """The user's own choice; from now on the panes stay with it."""
        self._follows = False
        self._show(run_id)

    def suggest_run(self, run_id: str) -> None:
        """Show a run unless the user has chosen one."""
        if self._follows:
            self._show(run_id)

    def begin_running(self, run_id: str) -> None:
        """A run has begun; the panes go along until the user has chosen a run."""
        self.running.append(run_id)
        # of several at once the panes stay with the first
        if self._follows and len(self.running) == 1:
            self._show(run_id)
        self.activity_changed.emit()

    def end_running(self, run_id: str) -> None:
        if run_id in self.running:
            self.running.remove(run_id)
            if self._follows and self.running:
                self._show(self.running[0])
            self.activity_changed.emit()

    def set_play_off(self, run: Run | None) -> None:
        self.play_off = run
        self.activity_changed.emit()

    def set_earlier(self, script: Path, earlier: Sequence[Earlier]) -> None:
        """What is known of earlier runs of a script; of interest while it is the one that is open."""
        if script == self.script and tuple(earlier) != self.earlier:
            self.earlier = tuple(earlier)
            self.earlier_changed.emit()

    def set_activity(
        self, *, busy: bool, inspecting: bool = False, calibrating: bool = False, stopping: bool = False
    ) -> None:
        before = (self.is_busy, self.is_inspecting, self.is_calibrating, self.is_stopping)
        self.is_busy, self.is_inspecting, self.is_calibrating = busy, inspecting, calibrating
        self.is_stopping = stopping
        if before != (busy, inspecting, calibrating, stopping):
            self.activity_changed.emit()

    def _show(self, run_id: str) -> None:
        if run_id != self.shown_id:
            self.shown_id = run_id
            self.shown_run_changed.emit()
