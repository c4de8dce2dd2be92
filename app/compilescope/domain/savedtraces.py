"""Saved traces as runs: one run a file, which is a process or a rank."""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.trace import TraceTranslator, find_traces, read_trace
from compilescope.domain.workload import Workload

REPORT_S = 0.2
MOST_PROBLEMS = 3
_CHECK_RECORDS = 500
_HINT = "Give a TORCH_TRACE log or a folder of them."


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far reading has come. `share` is None where the size is not known beforehand."""

    file: str
    share: float | None
    phases: int


@dataclass(kw_only=True)
class SavedTrace:
    """What was read from a path. `problems`: a sentence for each file that is damaged or no trace."""

    path: Path
    runs: list[Run] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def comparison(self) -> Comparison:
        return Comparison(id=f"trace-{self.path.name}", created=time.time(), runs=self.runs)


class ReadingStoppedError(Exception):
    """The reader's owner no longer wants the trace."""


def read_saved(path: str | Path, report: Callable[[Progress], bool] | None = None) -> SavedTrace:
    """Read a log or a folder of them. `report` is told how far it is; where it answers False, reading stops."""
    path = Path(path)
    if not os.path.lexists(path):
        raise UsageError(f"There is no file or folder {path}.", hint=_HINT)
    found = SavedTrace(path=path)
    hints: list[str] = []
    with _without_collection():
        for file in _files(path):
            run = _empty_run(file, len(found.runs))
            try:
                _read(file, run, report or _nobody)
            except AppError as error:
                told = " What comes before the damage was read." if run.processes[0].last_at else ""
                found.problems.append(error.message + told)
                hints.append(error.hint)
            if run.processes[0].last_at:
                found.runs.append(_finished(run, file))
    if not found.runs:
        raise UsageError(
            problems_text(found.problems) or f"{path} holds no records.", hint=hints[0] if hints else _HINT
        )
    _name(found.runs)
    return found


def problems_text(problems: Sequence[str]) -> str:
    """The problems as one text: of a folder of many foreign files, the first few."""
    more = len(problems) - MOST_PROBLEMS
    return " ".join([*problems[:MOST_PROBLEMS], *([f"And {more} more files like these."] if more > 0 else [])])


def _files(path: Path) -> list[Path]:
    try:
        return find_traces(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", hint=_HINT) from error


def saved_json(found: SavedTrace) -> dict[str, Any]:
    """The same JSON as a comparison's. Nothing was measured, so nothing is recommended."""
    return comparison_json(found.comparison) | {"recommendation": None, "problems": found.problems}


def _empty_run(file: Path, number: int) -> Run:
    # an id of its own each time, as runs have: by it panes know that what they show is another run's
    run = Run(
        f"trace-{number}-{uuid.uuid4().hex[:8]}", config=Config(), workload=Workload(script=str(file)), label=file.name
    )
    run.is_trace = True
    run.apply(e.Hello())
    return run


def _read(file: Path, run: Run, report: Callable[[Progress], bool]) -> None:
    translator = TraceTranslator(str(file))
    process, told, last = run.processes[0], time.monotonic(), 0.0
    try:
        size = file.stat().st_size if file.suffix != ".gz" else 0
        for number, record in enumerate(read_trace(file)):
            last = record.at
            for event in translator.feed(record):
                process.apply(event)
            if number % _CHECK_RECORDS == 0 and time.monotonic() - told > REPORT_S:
                told = time.monotonic()
                share = min(record.offset / size, 1.0) if size else None
                if not report(Progress(file=file.name, share=share, phases=len(process.phases))):
                    raise ReadingStoppedError
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.", hint=_HINT) from error
    finally:
        # of a file that breaks off, too, what was held back is told
        for event in translator.finish(last):
            process.apply(event)


def _finished(run: Run, file: Path) -> Run:
    process = run.processes[0]
    states = {row.state for row in process.cache}
    if "hit" in states and "miss" not in states:
        process.start = "warm"
    run.apply(e.Ended(outcome="finished"))
    run.label = file.name
    return run


def _name(runs: list[Run]) -> None:
    """Ranks by their number, others by what tells their files apart."""
    ranks = [next((row.rank for row in run.processes[0].texts if row.rank is not None), None) for run in runs]
    if len(runs) > 1 and None not in ranks and len(set(ranks)) == len(runs):
        for run, rank in zip(runs, ranks, strict=True):
            run.label = f"rank {rank}"
        runs.sort(key=lambda run: int(run.label.split()[1]))


def _nobody(_progress: Progress) -> bool:
    return True


@contextmanager
def _without_collection() -> Iterator[None]:
    """Hundreds of thousands of rows without a cycle among them: looking for one takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
