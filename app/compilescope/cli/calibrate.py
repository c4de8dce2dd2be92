"""`compilescope calibrate`: eager beside eager, to find how far this machine's timing can be trusted."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from pathlib import Path

from compilescope.cli.progress import Progress
from compilescope.domain import units
from compilescope.domain.calibration import QUIET, Calibration, calibration_of
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError
from compilescope.domain.run import Run
from compilescope.domain.verdict import noise_floor_text
from compilescope.engine.calibration import calibration_requests
from compilescope.engine.feed import Feed, RunEvents, RunStarted
from compilescope.engine.request import RunRequest
from compilescope.engine.supervisor import Supervisor
from compilescope.store import calibrations


def calibrate(device: str | None, python: str) -> int:
    """Measure, store and tell the noise floor. Returns 0; a KeyboardInterrupt leaves everything as it was."""
    requests = calibration_requests(device=device, python=python)
    runs = _carried_out(requests)
    found = calibration_of(runs, platform.node(), time.time())
    if found is None:
        error = next((run.error for run in runs if run.error), None)
        raise AppError(
            f"The calibration failed: {error.message}" if error else "The calibration was not measured to its end.",
            hint=(error.hint if error else "") or "`compilescope doctor` says what is missing.",
        )
    print("\n".join(_lines(found)))
    if found.problem:
        raise AppError(found.problem, hint=QUIET)
    try:
        calibrations.keep(found)
    except OSError as error:
        message = f"The calibration could not be stored: {error}."
        raise AppError(message, hint="Free some space, and repeat it.") from error
    print(noise_floor_text(found.noise_floor))
    return 0


def _carried_out(requests: Sequence[RunRequest]) -> list[Run]:
    feed, progress = Feed(), Progress(len(requests))
    runs = {row.id: Run(row.id, config=Config(), workload=row.workload) for row in requests if row.workload}
    with Supervisor(feed) as supervisor:
        for request in requests:
            supervisor.submit(request)
        while not all(run.is_over for run in runs.values()):
            feed.wait()
            for item in feed.drain():
                run = runs[item.run_id]
                if isinstance(item, RunStarted):
                    run.label = f"eager beside eager, {Path(run.workload.script).stem}"
                    progress.begin(list(runs).index(run.id) + 1, run)
                if isinstance(item, RunEvents):
                    run.apply_all(item.events)
                    if run.is_over:
                        progress.end(run)
                        if run.outcome != "finished":
                            return list(runs.values())
    return list(runs.values())


def _lines(found: Calibration) -> list[str]:
    machine = found.machine
    lines = [f"{machine.device}, torch {machine.torch}: a function beside itself, in two processes each time"]
    for trial in found.trials:
        value, low, high = (f"{number:.4f}" for number in (trial.speedup, trial.low, trial.high))
        lines.append(f"  {trial.callable:6} {units.duration(trial.eager_s):>9} a call: {value}× ({low} to {high})")
    if found.load_average is not None:
        lines.append(f"Load average while it was measured: up to {found.load_average:.1f}.")
    return lines
