"""`compilescope bench`: run every configuration, one after the other, and report."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import IO

from compilescope.cli.arguments import cards, measurement, rows
from compilescope.cli.baseline import is_held, read_baseline
from compilescope.cli.files import Files, check_writable
from compilescope.cli.progress import Progress
from compilescope.cli.stored import opened_history
from compilescope.domain import units
from compilescope.domain.baseline import baseline_json
from compilescope.domain.comparison import Comparison
from compilescope.domain.errors import UsageError
from compilescope.domain.estimate import estimate, rough, total_s
from compilescope.domain.keyhistory import with_keys
from compilescope.domain.matrix import Row
from compilescope.domain.playoff import contest, outcome
from compilescope.domain.rematch import next_pair
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.scan import scan
from compilescope.engine.feed import LogLines, RunEvents, RunStarted
from compilescope.engine.request import RunRequest, new_run_id, play_off_request
from compilescope.engine.supervisor import Supervisor, forget
from compilescope.recording import RecordedFeed, key_sources, sweep_runs
from compilescope.report import tables
from compilescope.store.history import History

TICK_S = 0.1
_ON_THE_LOG = re.compile(r"\b(log|traceback)\b")


def bench(arguments: argparse.Namespace) -> int:
    """Returns the exit status: 0 all finished, 1 one did not or a baseline was not held, 130 stopped by the user.

    A baseline of which that cannot be told is held, unless `--strict` is given.
    """
    planned = rows(arguments, _script(arguments))
    requests = [_request(row, arguments) for row in planned]
    files = Files.wanted(arguments)
    if arguments.log:
        check_writable(Path(arguments.log))
    if arguments.strict and not arguments.baseline:
        raise UsageError("--strict is about a baseline, and none is given.", hint="Give --baseline FILE with it.")
    baseline = read_baseline(arguments.baseline) if arguments.baseline else None
    comparison = Comparison(id=new_run_id(), created=time.time())
    keeps = False
    try:
        with _history(arguments) as history:
            keeps = history is not None and history.path is not None
            if history:
                sweep_runs(history)
            with _log(arguments.log) as log:
                _tell_plan(planned, arguments, history)
                comparison.runs.extend(
                    Run(request.id, config=row.config, workload=row.workload, label=row.label)
                    for request, row in zip(requests, planned, strict=True)
                )
                was_stopped = _Bench(
                    requests, comparison, history, log, plays_off=not arguments.no_play_off
                ).carry_out()
            source = history.source(comparison.id) if history else None
            result = with_keys(comparison_json(comparison), comparison, key_sources(history))
            if baseline:
                result["baseline"] = baseline_json(result, baseline, arguments.baseline)
    finally:
        for request in requests if not keeps else ():
            forget(request.id)
    problems = files.write(comparison, result, source=source, measurement=requests[0].measurement)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    print(tables.text_table(result) + _where_to_read_on(comparison, arguments), end="", flush=True)
    if problems:
        raise problems[0]
    if was_stopped:
        return 130
    held = baseline is None or is_held(result["baseline"], strict=arguments.strict)
    return 0 if held and all(run.outcome == "finished" for run in comparison.runs) else 1


def _where_to_read_on(comparison: Comparison, arguments: argparse.Namespace) -> str:
    """Where the log and the tracebacks are that hints speak of; only their ends were shown."""
    hints = [run.error.hint for run in comparison.runs if run.error]
    if arguments.log or not any(_ON_THE_LOG.search(hint) for hint in hints):
        return ""
    return "\nThe log is kept whole with --log FILE; a --json FILE holds the tracebacks.\n"


def _log(path: str | None) -> AbstractContextManager[IO[bytes] | None]:
    return Path(path).open("wb", buffering=0) if path else nullcontext()


def _history(arguments: argparse.Namespace) -> AbstractContextManager[History | None]:
    return nullcontext() if arguments.no_history else opened_history(to_write=True)


def _request(row: Row, arguments: argparse.Namespace) -> RunRequest:
    return RunRequest(
        config=row.config,
        workload=row.workload,
        measurement=measurement(arguments),
        timeout_s=arguments.timeout,
        cache=arguments.cache,
        python=arguments.python,
        devices=cards(arguments),
    )


def _tell_plan(rows: Sequence[Row], arguments: argparse.Namespace, history: History | None) -> None:
    """What is about to run, and about how long it takes."""
    if len(rows) < 2:
        return
    earlier = history.earlier(rows[0].workload.script) if history else []
    found = [estimate(row, arguments.budget, earlier) for row in rows]
    whole_s = total_s([one.seconds for one in found], len(cards(arguments)))
    width = max(len(row.label) for row in rows)
    print(f"{units.plural(len(rows), 'configuration')}, about {rough(whole_s)}:", file=sys.stderr)
    for number, (row, one) in enumerate(zip(rows, found, strict=True), 1):
        print(f"{number:4}  {row.label:{width}}  about {rough(one.seconds)}, {one.basis}", file=sys.stderr)


def _script(arguments: argparse.Namespace) -> str:
    path = Path(arguments.script)
    if not path.exists():
        raise UsageError(f"There is no file {path}.", hint="Give the path of a model script.")
    found = scan(path)
    # an entry that is named may be one that only running the script brings to light
    if found.problem and not arguments.entry:
        raise UsageError(found.problem, hint="The README says what counts as a model script, with an example of each.")
    return str(path.absolute())


class _Bench:
    """The loop between the engine and the terminal."""

    def __init__(
        self,
        requests: Sequence[RunRequest],
        comparison: Comparison,
        history: History | None,
        log: IO[bytes] | None = None,
        *,
        plays_off: bool,
    ) -> None:
        self._requests = requests
        self._plays_off = plays_off
        self._log = log
        self._comparison = comparison
        self._progress = Progress(len(requests))
        self._feed = RecordedFeed(lambda: history)
        self._requested = {request.id: request for request in requests}
        self._runs = {run.id: run for run in comparison.runs}
        self._interrupts = 0
        self._feed.begin(comparison, requests)

    def carry_out(self) -> bool:
        """Run everything; True where the user stopped it."""
        with self._interruptible(), Supervisor(self._feed) as supervisor:
            self._run(supervisor, self._requests)
            while not self._interrupts and (pair := self._next_pair()):
                self._play_off(supervisor, *pair)
        return self._interrupts > 0

    def _run(self, supervisor: Supervisor, requests: Sequence[RunRequest]) -> None:
        """Until all of these are over."""
        for request in requests:
            supervisor.submit(request)
        heeded = 0
        while not all(self._runs[request.id].is_over for request in requests):
            if self._interrupts > heeded:
                heeded = self._interrupts
                self._progress.say("Stopping …" if heeded == 1 else "Stopping at once …")
                supervisor.stop(now=heeded > 1)
            self._feed.wait(TICK_S)
            self._take()

    def _next_pair(self) -> tuple[Run, Run] | None:
        return next_pair(self._comparison, self._requested) if self._plays_off else None

    def _play_off(self, supervisor: Supervisor, one: Run, two: Run) -> None:
        request = play_off_request(self._requested[one.id], self._requested[two.id])
        run = self._runs[request.id] = contest(request.id, one, two)
        self._run(supervisor, [request])
        found = outcome(run, one, two)
        if found:
            self._comparison.play_offs.append(found)
            self._feed.note_play_offs(self._comparison)

    def _take(self) -> None:
        for item in self._feed.drain():
            run = self._runs[item.run_id]
            match item:
                case LogLines(lines=lines) if self._log:
                    self._write_log(lines)
                case RunStarted(request=request):
                    if request.task == "playoff":
                        self._progress.begin_play_off(run)
                    else:
                        self._progress.begin(list(self._runs).index(run.id) + 1, run)
                case RunEvents(events=events):
                    run.apply_all(events)
                    if run.id in self._requested:
                        self._feed.heed_calibration(self._comparison, run)
                    if run.is_over:
                        self._progress.end(run)
                        self._feed.finish(run)
        for run in self._runs.values():
            if run.processes and not run.is_over:
                self._progress.show(run)

    def _write_log(self, lines: Sequence[bytes]) -> None:
        try:
            if self._log:
                self._log.write(b"".join(line + b"\n" for line in lines))
        except OSError as error:  # a full disk must not cost the comparison
            self._log = None
            self._progress.say(f"The log could not be written further: {error.strerror or error}.")

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl+C, and what ends a job in CI, stop the run and not this loop; a second time stops it at once."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            self._interrupts += 1

        numbers = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP"):
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, interrupt) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
