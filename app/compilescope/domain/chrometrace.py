"""A run's compile timeline in the Chrome trace format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compilescope.domain.errors import AppError
from compilescope.domain.run import ProcessStory, Run

_STAGES_THREAD = 0
_US = 1e6


def chrome_trace(run: Run) -> dict[str, Any]:
    """The trace as JSON values; a process each of the run's processes, which follow each other in time."""
    events: list[dict[str, Any]] = []
    begin = 0.0
    for number, process in enumerate(run.processes, 1):
        # their clocks start with each process; Unix time says how far apart, where it is known
        first = run.processes[0].hello.time
        if number > 1:
            known = first and process.hello.time > first
            begin = process.hello.time - first if known else begin + run.processes[number - 2].last_at
        events += _process(run, number, process, begin)
    return {"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"run": run.label, "id": run.id}}


def write_chrome_trace(run: Run, path: str | Path) -> None:
    try:
        Path(path).write_text(json.dumps(chrome_trace(run)), "utf-8")
    except OSError as error:
        raise AppError(f"{path} could not be written: {error.strerror or error}.") from error


def _process(run: Run, number: int, process: ProcessStory, begin: float) -> Iterator[dict[str, Any]]:
    yield _name("process_name", number, 0, f"{run.label}, {process.start} start")
    threads = {thread: index for index, thread in enumerate(dict.fromkeys(p.thread for p in process.phases), 1)}
    if process.stages:
        yield _name("thread_name", number, _STAGES_THREAD, "worker")
    for thread, index in threads.items():
        yield _name("thread_name", number, index, f"compiler, thread {thread}" if thread else "compiler")
    for stage in process.stages:
        duration = stage.duration_s if stage.duration_s is not None else max(process.last_at - stage.began, 0.0)
        yield _span(number, _STAGES_THREAD, stage.name, "stage", begin + stage.began, duration)
    for phase in process.phases:
        is_open = phase.duration_s is None
        duration = max(process.last_at - phase.began, 0.0) if phase.duration_s is None else phase.duration_s
        span = _span(number, threads[phase.thread], phase.name, phase.group, begin + phase.began, duration)
        arguments: dict[str, Any] = {"compile_id": phase.compile_id} if phase.compile_id else {}
        yield span | {"args": arguments | ({"unfinished": True} if is_open else {})}
    for at, name, arguments in _instants(process):
        yield {"ph": "i", "s": "p", "pid": number, "tid": 1, "ts": (begin + at) * _US, "name": name, "args": arguments}


def _instants(process: ProcessStory) -> Iterator[tuple[float, str, dict[str, Any]]]:
    for row in process.graph_breaks.values():
        yield row.event.at, "graph break", _place(row.event) | {"reason": row.event.reason}
    for recompiles in process.recompiles.values():
        for event in recompiles.events:
            yield event.at, "recompile", _place(event) | {"reason": event.reason}
    for lookup in process.cache:
        yield lookup.at, f"{lookup.cache} cache {lookup.state}", {"key": lookup.key}
    for graph in process.cudagraphs:
        yield graph.at, f"CUDA graph {graph.state}", {"reason": graph.reason}


def _place(event: Any) -> dict[str, Any]:
    return {"file": event.file, "line": event.line, "function": event.function}


def _span(process: int, thread: int, name: str, category: str, began: float, duration: float) -> dict[str, Any]:
    timing = {"ts": began * _US, "dur": duration * _US}
    return {"ph": "X", "pid": process, "tid": thread, "name": name, "cat": category} | timing


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}
