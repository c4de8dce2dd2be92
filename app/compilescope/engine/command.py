"""A job into a command: arguments, environment and folder of a worker process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from compilescope import paths
from compilescope.domain.workload import MEASURED, Job, Start
from compilescope.engine.request import RunRequest

RUN_VARIABLE = "COMPILESCOPE_RUN"
# profile-guided choices of an earlier job would make a cold start another thing than it says
REMOVED = ("TORCH_COMPILE_JOB_ID",)
FROZEN = ("PYTHONHOME", "_MEIPASS2", "_PYI_ARCHIVE_FILE", "_PYI_APPLICATION_HOME_DIR", "_PYI_PARENT_PROCESS_LEVEL")
LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")


@dataclass(frozen=True, kw_only=True)
class Command:
    """How a worker process is started. `job` is its first line on stdin."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    job: Job


def worker_program() -> Path:
    """The worker is started by its file, so that nothing of CompileScope needs to be installed beside the script."""
    return Path(__file__).resolve().parents[1] / "worker" / "__main__.py"


def run_folder(run_id: str) -> Path:
    """Where a run keeps its files. Not made yet."""
    return paths.runs() / run_id


def command(request: RunRequest, start: Start, *, cache: Path | None, program: Path) -> Command:
    """The command of one of a run's processes. `cache`: the run's own compiler cache; None = the user's."""
    job = job_of(request, start)
    folder = Path(job.workload.script).parent if job.workload else Path.home()
    return Command(
        arguments=(request.python, "-u", str(program)),
        environment=environment(os.environ, request.id, cache, frozen=getattr(sys, "frozen", False)),
        folder=str(folder),
        job=job,
    )


def job_of(request: RunRequest, start: Start) -> Job:
    """The job of one of a run's processes; cold and warm share the measurement budget."""
    workload = request.workload
    if workload is not None:
        workload = replace(workload, script=str(Path(workload.script).absolute()))
    measurement = request.measurement
    trace = None
    if request.task in MEASURED:
        measurement = replace(measurement, budget_s=measurement.budget_s / 2)
    if request.task == "run":
        trace = str(run_folder(request.id) / ("trace.log" if start == "cold" else "trace.warm.log"))
    return Job(
        run=request.id,
        task=request.task,
        start=start,
        workload=workload,
        config=request.config,
        rival=request.rival,
        measurement=measurement,
        trace=trace,
        # what is stored in the user's own caches stays as their own runs would store it
        kernel_sources=request.cache == "fresh",
    )


def environment(base: Mapping[str, str], run_id: str, cache: Path | None, *, frozen: bool = False) -> dict[str, str]:
    """The user's environment with what a worker needs set, and what would falsify a run removed."""
    result = {key: value for key, value in base.items() if key not in REMOVED}
    if frozen:
        result = _unfrozen(result)
    result |= {
        RUN_VARIABLE: run_id,
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
    }
    if cache is not None:
        result["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
        result["TRITON_CACHE_DIR"] = str(cache / "triton")
    return result


def _unfrozen(base: Mapping[str, str]) -> dict[str, str]:
    """A bundle points the loader at its own libraries, which another interpreter must not find."""
    result = {key: value for key, value in base.items() if key not in FROZEN}
    for name in LIBRARY_PATHS:
        result.pop(name, None)
        original = result.pop(f"{name}_ORIG", None)
        if original:
            result[name] = original
    return result
