"""A run's traces as a folder that tlparse and other readers of TORCH_TRACE take."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from compilescope.domain.errors import AppError
from compilescope.domain.run import Run

WARNING = "A trace holds the model's source code and its paths: share it only with whom you would show those."
# what torch itself calls its files; a rank that is not distributed has no number
_NAME = "dedicated_log_torch_trace_{start}_{number}.log"


def trace_files(run: Run) -> list[tuple[str, Path]]:
    """The run's trace files that are there: which start, and where."""
    found: dict[Path, str] = {Path(run.workload.script): run.processes[0].start} if run.is_trace else {}
    for process in run.processes:
        for text in process.texts:
            found.setdefault(Path(text.file), process.start)
            break
    return [(start, path) for path, start in found.items() if path.is_file()]


def save_trace_folder(run: Run, folder: str | Path) -> list[Path]:
    """Copy the run's traces into a folder, unpacked. What is written, in the order of the processes."""
    files = trace_files(run)
    if not files:
        raise AppError("This run has no trace file any more.", hint="Run it again, then save the trace.")
    folder = Path(folder)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, (start, source) in enumerate(files):
            target = folder / _NAME.format(start=start, number=number)
            _copy(source, target)
            written.append(target)
    except OSError as error:
        raise AppError(f"{folder} could not be written: {error.strerror or error}.") from error
    return written


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as stream:
        is_packed = stream.read(2) == b"\x1f\x8b"
    if not is_packed:
        shutil.copyfile(source, target)
        return
    with gzip.open(source) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
