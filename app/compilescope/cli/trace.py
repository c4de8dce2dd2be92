"""`compilescope trace`: what a saved TORCH_TRACE log or folder tells."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from compilescope.cli.files import check_apart, check_writable
from compilescope.domain import cacheledger, cudagraphs, units, words
from compilescope.domain.run import ProcessStory, Run
from compilescope.domain.savedtraces import Progress, SavedTrace, read_saved, saved_json
from compilescope.report import tables

_LINE = 110


def trace(arguments: argparse.Namespace) -> int:
    """Returns 0 where everything could be read, 1 where a file of a folder could not."""
    if arguments.json:
        check_writable(Path(arguments.json))
        check_apart(arguments)
    found = read_saved(arguments.path, _show if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for problem in found.problems:
        print(f"compilescope: {problem}", file=sys.stderr)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    print("\n".join(_lines(found)), flush=True)
    if arguments.json:
        tables.write_json(saved_json(found), arguments.json)
    return 1 if found.problems else 0


def _show(progress: Progress) -> bool:
    share = f"{progress.share:.0%}" if progress.share is not None else f"{units.count(progress.phases)} phases"
    print(f"\r\033[KReading {progress.file}: {share}", end="", file=sys.stderr, flush=True)
    return True


def _lines(found: SavedTrace) -> Iterator[str]:
    for number, run in enumerate(found.runs):
        if number:
            yield ""
        yield run.label
        process = run.processes[0]
        for name, text in _facts(run, process):
            yield f"  {name:14}{text}"


def _facts(run: Run, process: ProcessStory) -> Iterator[tuple[str, str]]:
    graphs = f"{units.plural(process.graphs, 'graph')}, {units.plural(process.ops, 'operation')}"
    kernels = f", {units.plural(len(process.kernels), 'kernel')}" if process.kernels else ""
    yield "Captured", graphs + kernels if process.graphs else "nothing was compiled"
    for row in process.graph_breaks.values():
        event = row.event
        yield "Graph break", _cut(f"{words.place(event.file, event.line)} {row.count}×: {event.reason}")
    for recompiles in process.recompiles.values():
        event_ = recompiles.event
        reason = event_.guard or event_.reason
        yield "Recompile", _cut(f"{event_.function or 'a function'} {recompiles.count}×: {reason}")
    for limit in process.recompile_limits:
        yield "Limit", f"{limit.function or 'a function'} now runs eager for other inputs"
    if process.cache:
        yield "Cache", cacheledger.process_sentence(process)
    for finding in cacheledger.rebuilds(run):
        yield "Cache", finding.sentence
    if process.asked_for_cudagraphs and (process.recorded_cudagraphs or not process.skipped_cudagraphs):
        yield "CUDA graphs", cudagraphs.fate(run, process)
    for skip in process.skipped_cudagraphs:
        yield "CUDA graphs", _cut(f"skipped: {skip.reason or 'no reason given'}")
    for tuned in process.autotunes:
        choice = f"{tuned.winner or 'no winner'}, {units.duration(tuned.duration_s)}"
        yield "Autotune", _cut(f"{tuned.operation}({', '.join(tuned.inputs)}): {choice}")


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LINE else f"{plain[: _LINE - 1]}…"
