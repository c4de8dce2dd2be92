"""Which runs of two comparisons are the same question, asked twice and timed alike."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from compilescope.domain.config import Config
from compilescope.domain.words import file_name

Row = Mapping[str, Any]

# how calls were timed, and what each way is called
_WAYS = {
    "l2_flush": ("The L2 cache between calls differs", {True: "flushed", False: "left as it is"}),
    "queued": ("The pauses between blocks differ", {True: "none", False: "one before each block"}),
    "restored": ("The way that calls are timed differs", {True: "each alone", False: "back to back"}),
}


def differences(results: Row, baseline: Row) -> list[str]:
    """What makes the two comparisons hard to compare, a sentence each: another torch, another machine, other runs."""
    names = {"torch": "torch", "device": "the device", "cpu": "the processor", "python": "Python", "triton": "Triton"}
    ours, theirs = results.get("environment") or {}, baseline.get("environment") or {}
    found = [
        f"{name[0].upper()}{name[1:]} differs: {ours.get(key)} now, {theirs.get(key)} in the baseline."
        for key, name in names.items()
        if ours.get(key) and theirs.get(key) and ours[key] != theirs[key]
    ]
    ways = [(says, _way(results, key), _way(baseline, key)) for key, (says, _) in _WAYS.items()]
    for says, now, before in [*ways, ("The script's arguments differ", _arguments(results), _arguments(baseline))]:
        if now and before and now != before:
            found.append(f"{says}: {now} now, {before} in the baseline.")
    paired = {label for label, _, _ in pairs(results, baseline)}
    missing = [label for run in results["runs"] if (label := _label(run)) not in paired]
    if missing:
        found.append(f"The baseline has no such run as {', '.join(missing)}; nothing was compared for it.")
    return found


def is_comparable(results: Row, baseline: Row) -> bool:
    """Whether the baseline holds any run of the same script, configuration and inputs, timed alike."""
    return any(True for _ in pairs(results, baseline))


def pairs(results: Row, baseline: Row) -> Iterator[tuple[str, Row, Row]]:
    """The label of each run that both hold, and the run of either."""
    known: dict[str, list[Row]] = defaultdict(list)
    for run in baseline["runs"]:
        known[_key(run, baseline)].append(run)
    for run in results["runs"]:
        told = _told(run, results)
        before = next((row for row in known[_key(run, results)] if _is_alike(told, _told(row, baseline))), None)
        if before is not None:
            yield _label(run), run, before


def _key(run: Row, comparison: Row) -> str:
    """What was run, in words that are the same in another checkout of the same project."""
    config = Config.from_json(run["config"])
    workload = run.get("workload") or comparison.get("workload") or {}
    plain = {
        "config": config.to_json() | {"mode": config.mode or "default"},
        "script": file_name(str(workload.get("script") or "")),
        **{key: workload.get(key) for key in ("entry", "phase", "precision", "train_mode", "grad_mode", "threads")},
        "inputs": [[row.get("shape"), row.get("dtype")] for row in workload.get("inputs") or []],
    }
    return json.dumps(plain, sort_keys=True)


def _told(run: Row, comparison: Row) -> tuple[Any, ...]:
    """The script's arguments, and how calls were timed; None where that is not told.

    Older files tell less, and a run that was not timed tells nothing of the timing.
    """
    workload = run.get("workload") or comparison.get("workload") or {}
    timing = run.get("timing") or {}
    return workload.get("arguments"), *(timing.get(key) for key in _WAYS)


def _is_alike(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, two, strict=True))


def _arguments(comparison: Row) -> str:
    told = (_told(run, comparison)[0] for run in comparison["runs"])
    return " and ".join(dict.fromkeys(shlex.join(words) or "none" for words in told if words is not None))


def _way(comparison: Row, key: str) -> str:
    told = ((run.get("timing") or {}).get(key) for run in comparison["runs"])
    return " and ".join(dict.fromkeys(_WAYS[key][1][way] for way in told if way is not None))


def _label(run: Row) -> str:
    return str(run.get("label") or Config.from_json(run["config"]).label)
