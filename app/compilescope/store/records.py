"""What the history lists: comparisons, their runs, and what is needed to run one again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.playoff import PlayOff
from compilescope.domain.run import Run
from compilescope.domain.workload import Measurement, Workload
from compilescope.store.traces import localised


class Request(Protocol):
    """What the history needs to know of a run before it starts; the engine's request fits."""

    @property
    def id(self) -> str: ...
    @property
    def config(self) -> Config | None: ...
    @property
    def workload(self) -> Workload | None: ...
    @property
    def measurement(self) -> Measurement: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def cache(self) -> str: ...
    @property
    def python(self) -> str: ...
    @property
    def devices(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True)
class StoredRequest:
    """A run as it was asked for."""

    id: str
    config: Config
    workload: Workload
    measurement: Measurement = field(default_factory=Measurement)
    timeout_s: float = 900.0
    cache: str = "fresh"
    python: str = ""
    devices: tuple[str, ...] = ()
    label: str = ""


class ComparisonRow(NamedTuple):
    """One line of the history. `best_label` and `best_speedup`: the fastest run that is faster than eager.

    A tuple and no dataclass, since ten thousand are made for a keystroke in the search field.
    """

    id: str
    created: float
    title: str
    script: str
    tags_json: str
    notes: str
    runs: int
    finished: int
    failed: int
    unfinished: int
    best_label: str
    best_speedup: float | None
    torch: str | None
    device: str | None

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(json.loads(self.tags_json))


class RunRow(NamedTuple):
    """One stored run, with its comparison's title. `state`: queued, running, interrupted, over. Times in seconds."""

    id: str
    comparison_id: str
    title: str
    label: str
    config_json: str
    workload_json: str
    state: str
    outcome: str | None
    began: float | None
    ended: float | None
    eager_s: float | None
    compiled_s: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    verdict: str | None
    torch: str | None
    device: str | None

    @property
    def config(self) -> Config:
        return Config.from_json(json.loads(self.config_json))

    @property
    def workload(self) -> Workload:
        return Workload.from_json(json.loads(self.workload_json))


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A comparison that ended with its application; `requests`: the runs still to do, in order."""

    comparison_id: str
    title: str
    script: str
    requests: tuple[StoredRequest, ...]


def unfinished(rows: Iterable[sqlite3.Row]) -> list[Unfinished]:
    """The comparisons of these runs, which are in order, with their title and script beside them."""
    found: dict[str, list[sqlite3.Row]] = {}
    for row in rows:
        found.setdefault(row["comparison_id"], []).append(row)
    return [
        Unfinished(
            comparison_id=comparison_id,
            title=group[0]["title"],
            script=group[0]["script"],
            requests=tuple(stored_request(row) for row in group),
        )
        for comparison_id, group in found.items()
    ]


def request_json(request: Request) -> str:
    """All of a request besides its configuration and workload, which have columns of their own."""
    return json.dumps(
        {
            "measurement": request.measurement.to_json(),
            "timeout_s": request.timeout_s,
            "cache": request.cache,
            "python": request.python,
            "devices": list(request.devices),
        }
    )


def stored_request(row: Mapping[str, Any] | sqlite3.Row) -> StoredRequest:
    rest = json.loads(row["request"])
    return StoredRequest(
        id=row["id"],
        config=Config.from_json(json.loads(row["config"])),
        workload=Workload.from_json(json.loads(row["workload"])),
        measurement=Measurement.from_json(rest.get("measurement") or {}),
        timeout_s=float(rest.get("timeout_s", 900.0)),
        cache=str(rest.get("cache", "fresh")),
        python=str(rest.get("python", "")),
        devices=tuple(rest.get("devices") or ()),
        label=str(row["label"]),
    )


def folded(request: StoredRequest, label: str, lines: Sequence[str], folder: Path) -> Run:
    """The run that its recorded lines tell. `folder`: where its traces lie."""
    run = Run(request.id, config=request.config, workload=request.workload, label=label)
    for line in lines:
        event = e.decode(line)
        if event is not None:
            run.apply(localised(event, folder))
    return run


def summary_of(run: Run, noise_floor: float | None = None) -> dict[str, Any]:
    """The figures of a finished run that the list shows, as columns; judged by the comparison's noise floor."""
    # imported here: the statistics are not needed to open and list
    from compilescope.domain.figures import result

    found = result(run) if noise_floor is None else result(run, noise_floor)
    eager, compiled, speedup = found.measures.eager, found.measures.compiled, found.measures.speedup
    return {
        "outcome": run.outcome,
        "eager_s": eager.median if eager else None,
        "compiled_s": compiled.median if compiled else None,
        "speedup": speedup.value if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        "verdict": found.verdict.kind if found.verdict else None,
        **machine_of(run),
    }


def stored_comparison(row: sqlite3.Row, runs: list[Run]) -> Comparison:
    return Comparison(
        id=row["id"],
        created=row["created"],
        runs=runs,
        noise_floor=row["noise_floor"],
        play_offs=stored_play_offs(row["play_offs"]),
    )


def stored_play_offs(text: str) -> list[PlayOff]:
    """Those of a comparison's row. Raises ValueError where they are none."""
    return [PlayOff.from_json(row) for row in json.loads(text)]


def machine_of(run: Run) -> dict[str, Any]:
    story = run.story
    environment = story.environment if story else None
    return {
        "torch": (environment.torch if environment else None) or (story.hello.torch if story else None),
        "device": _device(environment),
    }


def _device(environment: e.Environment | None) -> str | None:
    if environment is None:
        return None
    return environment.cpu or environment.device if environment.device in (None, "cpu") else environment.device
