"""What the user starts and stops: comparisons, inspections, and the question what this machine can do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.matrix import next_label
from compilescope.domain.run import Run
from compilescope.domain.workload import Task, Workload
from compilescope.engine.calibration import calibration_requests
from compilescope.engine.request import RunRequest, default_python, new_run_id
from compilescope.ui.bridge import Bridge
from compilescope.ui.playoffs import PlayOffs
from compilescope.ui.state import BUSY, AppState


class Engine(Protocol):
    """What the session needs of the supervisor."""

    def submit(self, request: RunRequest) -> None: ...

    def stop(self, run_id: str | None = None) -> None: ...

    def arrange(self, run_ids: Sequence[str]) -> None: ...

    def close(self, timeout: float = 5.0) -> None: ...


class Recording(Protocol):
    """What the session tells the history before it submits."""

    def begin(self, comparison: Comparison, requests: Sequence[RunRequest]) -> None: ...

    def begin_more(self, comparison_id: str, request: RunRequest, label: str) -> None: ...

    def resume(self, requests: Sequence[RunRequest]) -> None: ...

    def arrange(self, comparison_id: str, run_ids: Sequence[str]) -> None: ...

    def heed_calibration(self, comparison: Comparison, run: Run) -> None: ...

    def note_play_offs(self, comparison: Comparison) -> None: ...


class Session(QObject):
    """Turns the user's wishes into requests, and their ends into state."""

    failed = Signal(str, str)  # sentence, hint
    calibration_changed = Signal(object)  # list[Run]: one of them has begun or ended

    def __init__(self, state: AppState, bridge: Bridge, engine: Engine, recording: Recording) -> None:
        super().__init__()
        self._state = state
        self._bridge = bridge
        self._engine = engine
        self._recording = recording
        self._tasks: dict[str, tuple[Task, Run]] = {}
        self._calibration: list[Run] = []
        self.play_offs = PlayOffs(state, recording, self)
        self.play_offs.wanted.connect(self._play_off)
        self.play_offs.changed.connect(self._update_activity)
        self.play_offs.failed.connect(self.failed)
        bridge.run_started.connect(self._run_started)
        bridge.run_changed.connect(self._run_changed)
        bridge.run_ended.connect(self._run_ended)

    def ask_environment(self) -> None:
        """Ask the chosen interpreter, in the background, what it and this machine offer."""
        run = Run(new_run_id(), config=Config(), workload=Workload(script=""))
        self._submit("doctor", run, self._request("doctor", run))

    def inspect(self) -> None:
        """Let the worker build model and inputs and describe them. This executes the script."""
        script = self._script()
        workload = self._state.selection.workload(script)
        run = Run(new_run_id(), config=Config(), workload=workload)
        self._submit("inspect", run, self._request("inspect", run))
        self._update_activity()

    def calibrate(self) -> None:
        """Queue what finds the noise floor of the chosen device. Needs no script."""
        if not self._state.is_idle:
            raise UsageError("Something is running.", hint="Stop it first (Esc).")
        selection = self._state.selection
        requests = calibration_requests(device=selection.device, python=selection.python)
        self._calibration = [Run(row.id, config=Config(), workload=row.workload) for row in requests if row.workload]
        for run, request in zip(self._calibration, requests, strict=True):
            self._submit("calibrate", run, request)
        self._update_activity()

    def compare(self) -> None:
        """Queue what is planned: every ticked configuration in every phase and precision, in the user's order."""
        script, selection = self._script(), self._state.selection
        if selection.missing:
            raise UsageError(selection.missing)
        runs = [
            Run(new_run_id(), config=row.config, workload=row.workload, label=row.label)
            for row in selection.planned(script)
        ]
        comparison = Comparison(id=new_run_id(), created=time.time(), runs=runs)
        self._state.set_comparison(comparison)
        requests = [self._request("run", run) for run in runs]
        self._recording.begin(comparison, requests)
        for run, request in zip(runs, requests, strict=True):
            self._submit("run", run, request)
        self._update_activity()

    def resume(self, requests: Sequence[RunRequest]) -> None:
        """Queue runs of the comparison that is shown, which a former session did not get to."""
        self._recording.resume(requests)
        for request in requests:
            run = self._state.run(request.id)
            if run is not None:
                self._submit("run", run, request)
        self._update_activity()

    def repeat(self, run_id: str) -> None:
        """Run a configuration of the comparison once more, as a row of its own."""
        comparison, run = self._state.comparison, self._state.run(run_id)
        if comparison is None or run is None or run.is_trace:
            return
        label = next_label(run.label, [other.label for other in comparison.runs])
        again = Run(new_run_id(), config=run.config, workload=run.workload, label=label)
        request = self._request("run", again)
        self._recording.begin_more(comparison.id, request, label)
        comparison.runs.append(again)
        self._submit("run", again, request)
        self._state.run_changed.emit(again.id)
        self._update_activity()

    def skip(self, run_id: str) -> None:
        """End one run, or leave it out where it still waits; the others go on."""
        self._engine.stop(run_id)

    def hurry(self, run_id: str) -> None:
        """Let a waiting run be the next."""
        waiting = [run.id for run in self.waiting if run.id != run_id]
        self._arrange([run_id, *waiting])

    def move(self, run_id: str, step: int) -> None:
        """Let a waiting run wait so many places later, or earlier where `step` is negative."""
        waiting = [run.id for run in self.waiting]
        if run_id in waiting:
            place = min(max(waiting.index(run_id) + step, 0), len(waiting) - 1)
            waiting.remove(run_id)
            waiting.insert(place, run_id)
            self._arrange(waiting)

    @property
    def waiting(self) -> list[Run]:
        """Runs of the comparison that have not begun, in the order in which they will."""
        running = self._state.running
        return [
            run for run in self._state.runs if run.id in self._tasks and run.id not in running and not run.processes
        ]

    def _arrange(self, waiting: Sequence[str]) -> None:
        comparison = self._state.comparison
        if comparison is None:
            return
        places = iter(waiting)
        # what has begun or is over stays where it is
        order = [next(places) if run.id in waiting else run.id for run in comparison.runs]
        by_id = {run.id: run for run in comparison.runs}
        comparison.runs[:] = [by_id[run_id] for run_id in order]
        self._engine.arrange(waiting)
        self._recording.arrange(comparison.id, order)
        self._state.run_changed.emit(waiting[0])

    def stop(self) -> None:
        """End the run in progress and what waits behind it. Always safe to call."""
        if not self._state.is_idle:
            self.play_offs.drop()
            self._set_activity(stopping=True)
        self._engine.stop()

    def close(self) -> None:
        """End everything. Returns when no process is left, or after five seconds."""
        self._bridge.stop()
        self.play_offs.close()
        self._engine.close(timeout=5.0)

    def name(self, run_id: str) -> str:
        """What a run is called in the log; empty where its log is of no interest."""
        run = self._state.run(run_id)
        if run is not None:
            return run.label
        task, _ = self._tasks.get(run_id, ("doctor", None))
        return {"doctor": "", "calibrate": "", "playoff": "play-off"}.get(task, task)

    def _script(self) -> Path:
        script = self._state.script
        if script is None:
            raise UsageError("There is no script yet.", hint="Drop a Python file on the window, or open one.")
        if self._state.is_busy:
            raise UsageError(BUSY, hint="Stop it first (Esc).")
        return script

    def _request(self, task: Task, run: Run) -> RunRequest:
        selection = self._state.selection
        return RunRequest(
            id=run.id,
            task=task,
            config=run.config if task == "run" else None,
            workload=run.workload if task != "doctor" else None,
            measurement=selection.measurement,
            timeout_s=selection.timeout_s,
            python=selection.python or default_python(),
            devices=selection.cards if task == "run" else (),
        )

    def _submit(self, task: Task, run: Run, request: RunRequest) -> None:
        self._tasks[run.id] = (task, run)
        if task == "run":
            self.play_offs.note(request)
        self._bridge.watch(run)
        try:
            self._engine.submit(request)
        except AppError as error:
            self.failed.emit(error.message, error.hint)

    def _play_off(self, request: RunRequest, run: Run) -> None:
        self._submit("playoff", run, request)

    def _run_started(self, run_id: str) -> None:
        if self._task(run_id) == "run":
            self._state.begin_running(run_id)
        if self._task(run_id) == "calibrate":
            self.calibration_changed.emit(self._calibration)

    def _run_changed(self, run_id: str) -> None:
        task, run = self._tasks[run_id]
        story = run.story
        if task == "doctor" and story and story.environment and story.environment is not self._state.environment:
            self._state.set_environment(story.environment)
        if task == "run":
            if self._state.comparison is not None:
                self._recording.heed_calibration(self._state.comparison, run)
            self._state.run_changed.emit(run_id)
        if story and story.workload and task in ("run", "inspect"):
            self._state.set_inspection(story.workload)

    def _run_ended(self, run_id: str) -> None:
        task, run = self._tasks.pop(run_id)
        if task == "inspect" and run.outcome not in ("finished", "stopped"):
            self._state.set_inspection(None, run.error)
            if run.error:
                self.failed.emit(run.error.message, run.error.hint)
        if task == "doctor" and run.outcome != "finished" and self._state.environment is None:
            self._state.set_environment(None, run.error.message if run.error else "The interpreter gave no answer.")
        self._state.end_running(run_id)
        if task == "playoff":
            self.play_offs.conclude(run)
        elif task == "run" and not self._state.is_stopping:
            self.play_offs.look()
        self._update_activity()
        if task == "calibrate":
            self._end_calibration_run(run)

    def _end_calibration_run(self, run: Run) -> None:
        if run.outcome != "finished":
            # the others would come to nothing
            for other in self._calibration:
                self._engine.stop(other.id)
        self.calibration_changed.emit(self._calibration)

    def _task(self, run_id: str) -> Task:
        return self._tasks[run_id][0]

    @property
    def _kinds(self) -> set[Task]:
        return {task for task, _ in self._tasks.values()}

    def _update_activity(self) -> None:
        self._set_activity(stopping=self._state.is_stopping)

    def _set_activity(self, *, stopping: bool) -> None:
        kinds = self._kinds
        self._state.set_activity(
            busy=bool(kinds & {"run", "playoff"}) or self.play_offs.is_thinking,
            inspecting="inspect" in kinds,
            calibrating="calibrate" in kinds,
            stopping=stopping and bool(kinds - {"doctor"}),
        )
