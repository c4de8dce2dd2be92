"""One comparison as one file: a zip of JSON, safe to open wherever it comes from."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.playoff import PlayOff
from compilescope.domain.workload import Workload
from compilescope.store import traces

FORMAT = "compilescope-comparison"
VERSION = 1
INDEX = "comparison.json"
MAX_RUNS = 2_000
MAX_INDEX_BYTES = 32 * 2**20
MAX_RUN_BYTES = 256 * 2**20
MAX_BYTES = 1024 * 2**20
# a date that neither comes from the clock nor changes, so that the same comparison gives the same bytes
ZIP_DATE = (1980, 1, 1, 0, 0, 0)

# what a file that is none of ours, or damaged, makes the readers raise
FOREIGN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError),
    *(ValueError, RecursionError, NotImplementedError),
)

_TEXTS = ("label", "outcome", "verdict", "torch", "device", "log_tail")
_NUMBERS = ("began", "ended", "eager_s", "compiled_s", "speedup", "speedup_low", "speedup_high")
_OBJECTS = ("config", "workload", "request")


class HistoryError(AppError):
    """Something in the history, or in a file for it, cannot be read or used."""


class UnknownComparisonError(HistoryError, UsageError):
    """A name that no stored comparison has, or more than one."""


@dataclass(frozen=True, kw_only=True)
class ArchivedRun:
    """A run's row and its event lines."""

    values: Mapping[str, Any]
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Archive:
    """What a file holds, checked: columns of the comparison and of its runs."""

    id: str
    comparison: Mapping[str, Any]
    source: str | None
    runs: Sequence[ArchivedRun]


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def write(
    file: Path,
    comparison: sqlite3.Row,
    source: str | None,
    runs: Sequence[tuple[sqlite3.Row, Sequence[str]]],
    folder: Path,
) -> None:
    """Write a comparison; the file appears whole or not at all. `folder`: where the folders of its runs lie."""
    index = {
        "format": FORMAT,
        "version": VERSION,
        **{key: comparison[key] for key in ("id", "created", "noise_floor", "title", "script", "notes")},
        "source": source,
        "tags": json.loads(comparison["tags"]),
        "play_offs": json.loads(comparison["play_offs"]),
        "runs": [_run_json(number, row) for number, (row, _) in enumerate(runs)],
    }
    temporary = file.with_name(f".{file.name}.{new_id()}.part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, INDEX, json.dumps(index, ensure_ascii=False, indent=1))
            for number, (row, lines) in enumerate(runs):
                _add(archive, _member(number), "\n".join(lines))
                traces.pack(archive, number, folder / row["id"], ZIP_DATE)
        temporary.replace(file)
    except OSError as error:
        raise HistoryError(f"{file} cannot be written ({error}).", hint="Choose another place.") from error
    finally:
        temporary.unlink(missing_ok=True)


def read(file: Path) -> Archive:
    """Read and check a file that `write` made. Only members of known names are read, into memory, up to a limit."""
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive, file.name)
    except OSError as error:
        raise HistoryError(f"{file} cannot be read ({error}).", hint="Choose a file that exists.") from error
    except FOREIGN as error:
        raise _foreign(file, error) from error


def unpack_traces(file: Path, folders: Mapping[int, Path]) -> None:
    """Write the traces of an export's runs into folders that are not there yet; all of them or none."""
    try:
        traces.unpack(file, folders)
    except (OSError, *FOREIGN) as error:
        traces.remove(folders)
        if isinstance(error, OSError):
            raise HistoryError(f"The traces in {file.name} cannot be stored ({error.strerror or error}).") from error
        raise _foreign(file, error) from error


def _foreign(file: Path, error: Exception) -> HistoryError:
    return HistoryError(
        f"{file.name} is no comparison that CompileScope exported ({error}).",
        hint="Export it again where it comes from.",
    )


def _read(archive: zipfile.ZipFile, name: str) -> Archive:
    index = json.loads(_member_text(archive, INDEX, MAX_INDEX_BYTES))
    if index["format"] != FORMAT:
        raise ValueError("another format")
    if index["version"] > VERSION:
        raise HistoryError(f"{name} was written by a newer CompileScope.", hint="Update CompileScope to open it.")
    if len(index["runs"]) > MAX_RUNS:
        raise ValueError(f"more than {MAX_RUNS} runs")
    left = MAX_BYTES
    runs = []
    for number, run in enumerate(index["runs"]):
        text = _member_text(archive, _member(number), min(MAX_RUN_BYTES, left))
        left -= len(text)
        runs.append(ArchivedRun(values=_run_values(run), lines=_event_lines(text)))
    source = None if index.get("source") is None else _text(index["source"])
    return Archive(id=_text(index["id"])[:64], comparison=_comparison_values(index), source=source, runs=runs)


def _comparison_values(index: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "created": _number(index["created"]),
        "noise_floor": _number(index["noise_floor"]),
        "title": _text(index["title"]),
        "script": _text(index["script"]),
        "notes": _text(index["notes"]),
        "tags": json.dumps([_text(tag) for tag in index["tags"]], ensure_ascii=False),
        "play_offs": json.dumps([PlayOff.from_json(row).to_json() for row in index.get("play_offs") or ()]),
    }


def _run_values(run: Mapping[str, Any]) -> dict[str, Any]:
    # built once, so that whatever is wrong with them shows now and not when the run is opened
    _ = (Config.from_json(run["config"]).label, Config.from_json(run["config"]).snippet)
    Workload.from_json(run["workload"]).to_json()
    values: dict[str, Any] = {"id": _run_id(run["id"])}
    values |= {key: json.dumps(dict(run[key])) for key in _OBJECTS}
    values |= {key: _optional(_text, run.get(key)) for key in _TEXTS}
    values |= {key: _optional(_number, run.get(key)) for key in _NUMBERS}
    values["label"] = values["label"] or "run"
    values["log_tail"] = values["log_tail"] or ""
    values["began"] = values["began"] or 0.0
    return values


def _run_id(value: object) -> str:
    """An id becomes the name of a folder."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", _text(value)):
        raise ValueError(f"{value!r:.40} cannot name a run")
    return _text(value)


def _run_json(number: int, row: sqlite3.Row) -> dict[str, Any]:
    plain = {key: row[key] for key in ("id", *_TEXTS, *_NUMBERS)}
    return plain | {key: json.loads(row[key]) for key in _OBJECTS} | {"lines": _member(number)}


def _event_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if e.decode(line) is not None]


def _member(number: int) -> str:
    return f"runs/{number:04}.jsonl"


def _member_text(archive: zipfile.ZipFile, name: str, limit: int) -> str:
    # the size in the header is the file's own word, so what is really unpacked counts
    with archive.open(name) as member:
        content = member.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name} is larger than {limit} bytes")
    return content.decode("utf-8")


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name, ZIP_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, text)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} should be text")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"{value!r:.40} should be a number")
    return float(value)


def _optional(check: Callable[[object], object], value: object) -> object:
    return None if value is None else check(value)
