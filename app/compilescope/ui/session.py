"""What the user starts and stops: comparisons, inspections, and the question what this machine can do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.run import Run
from compilescope.domain.workload import Task, Workload
from compilescope.engine.request import RunRequest, default_python, new_run_id
from compilescope.ui.bridge import Bridge
from compilescope.ui.state import AppState


class Engine(Protocol):
    """What the session needs of the supervisor."""

    def submit(self, request: RunRequest) -> None: ...

    def stop(self, run_id: str | None = None) -> None: ...

    def close(self, timeout: float = 5.0) -> None: ...


class Session(QObject):
    """Turns the user's wishes into requests, and their ends into state."""

    failed = Signal(str, str)  # sentence, hint

    def __init__(self, state: AppState, bridge: Bridge, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._bridge = bridge
        self._engine = engine
        self._tasks: dict[str, tuple[Task, Run]] = {}
        bridge.run_started.connect(self._run_started)
        bridge.run_changed.connect(self._run_changed)
        bridge.run_ended.connect(self._run_ended)

    def ask_environment(self) -> None:
        """Ask the chosen interpreter, in the background, what it and this machine offer."""
        self._submit("doctor", Run(new_run_id(), config=Config(), workload=Workload(script="")))

    def inspect(self) -> None:
        """Let the worker build model and inputs and describe them. This executes the script."""
        script = self._script()
        workload = self._state.selection.workload(script)
        self._submit("inspect", Run(new_run_id(), config=Config(), workload=workload))
        self._update_activity()

    def compare(self) -> None:
        """Queue every ticked configuration."""
        script, selection = self._script(), self._state.selection
        if selection.missing:
            raise UsageError(selection.missing)
        workload = selection.workload(script)
        runs = [Run(new_run_id(), config=config, workload=workload) for config in selection.configs]
        comparison = Comparison(id=new_run_id(), created=time.time(), runs=runs)
        self._state.set_comparison(comparison)
        for run in runs:
            self._submit("run", run)
        self._update_activity()

    def stop(self) -> None:
        """End the run in progress and what waits behind it. Always safe to call."""
        if self._state.is_busy or self._state.is_inspecting:
            self._state.set_activity(busy=self._state.is_busy, inspecting=self._state.is_inspecting, stopping=True)
        self._engine.stop()

    def close(self) -> None:
        """End everything. Returns when no process is left, or after five seconds."""
        self._bridge.stop()
        self._engine.close(timeout=5.0)

    def name(self, run_id: str) -> str:
        """What a run is called in the log; empty where its log is of no interest."""
        run = self._state.run(run_id)
        if run is not None:
            return run.label
        task, _ = self._tasks.get(run_id, ("doctor", None))
        return "" if task == "doctor" else task

    def _script(self) -> Path:
        script = self._state.script
        if script is None:
            raise UsageError("There is no script yet.", hint="Drop a Python file on the window, or open one.")
        if self._state.is_busy:
            raise UsageError("A comparison is running.", hint="Stop it first (Esc).")
        return script

    def _submit(self, task: Task, run: Run) -> None:
        selection = self._state.selection
        self._tasks[run.id] = (task, run)
        self._bridge.watch(run)
        request = RunRequest(
            id=run.id,
            task=task,
            config=run.config if task == "run" else None,
            workload=run.workload if task != "doctor" else None,
            measurement=selection.measurement,
            timeout_s=selection.timeout_s,
            python=selection.python or default_python(),
        )
        try:
            self._engine.submit(request)
        except AppError as error:
            self.failed.emit(error.message, error.hint)

    def _run_started(self, run_id: str) -> None:
        if self._task(run_id) == "run":
            self._state.set_running(run_id)

    def _run_changed(self, run_id: str) -> None:
        task, run = self._tasks[run_id]
        story = run.story
        if task == "doctor" and story and story.environment and story.environment is not self._state.environment:
            self._state.set_environment(story.environment)
        if task == "run":
            self._state.run_changed.emit(run_id)
        if story and story.workload and task != "doctor":
            self._state.set_inspection(story.workload)

    def _run_ended(self, run_id: str) -> None:
        task, run = self._tasks.pop(run_id)
        if task == "inspect" and run.outcome not in ("finished", "stopped"):
            self._state.set_inspection(None, run.error)
            if run.error:
                self.failed.emit(run.error.message, run.error.hint)
        if task == "doctor" and run.outcome != "finished" and self._state.environment is None:
            self._state.set_environment(None, run.error.message if run.error else "The interpreter gave no answer.")
        if self._state.running_id == run_id:
            self._state.set_running(None)
        self._update_activity()

    def _task(self, run_id: str) -> Task:
        return self._tasks[run_id][0]

    def _update_activity(self) -> None:
        kinds = [task for task, _ in self._tasks.values()]
        busy, inspecting = "run" in kinds, "inspect" in kinds
        stopping = self._state.is_stopping and (busy or inspecting)
        self._state.set_activity(busy=busy, inspecting=inspecting, stopping=stopping)
