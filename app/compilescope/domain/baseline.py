"""What got worse since a baseline: only what is certain, never what the noise of a machine explains."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from compilescope.domain import units
from compilescope.domain.config import Config
from compilescope.domain.errors import UsageError
from compilescope.domain.statistics import NOISE_FLOOR

Row = Mapping[str, Any]

_FLUSHES = {True: "flushed", False: "left as it is"}


def regressions(results: Row, baseline: Row) -> list[str]:
    """A sentence for everything in `results` that is worse than in `baseline`; both are results as JSON, schema 1.

    Runs are paired by configuration and workload; what only one side has is compared with nothing.
    """
    floor = max(float(side.get("noise_floor") or NOISE_FLOOR) for side in (results, baseline))
    same_device = _device(results) == _device(baseline)
    same_torch = _torch(results) == _torch(baseline)
    found: list[str] = []
    for label, now, before in _pairs(results, baseline):
        sentences = _broken(now, before) or [
            *_new_breaks(now, before),
            *_new_recompiles(now, before),
            *_lost_cuda_graphs(now, before, same_torch),
            *_wrong_numbers(now),
            *_slowdown(now, before, floor, same_device),
        ]
        found += [f"{label}: {sentence}" for sentence in sentences]
    return found


def differences(results: Row, baseline: Row) -> list[str]:
    """What makes the two comparisons hard to compare, a sentence each: another torch, another machine, other runs."""
    names = {"torch": "torch", "device": "the device", "cpu": "the processor", "python": "Python", "triton": "Triton"}
    ours, theirs = results.get("environment") or {}, baseline.get("environment") or {}
    found = [
        f"{name[0].upper()}{name[1:]} differs: {ours.get(key)} now, {theirs.get(key)} in the baseline."
        for key, name in names.items()
        if ours.get(key) and theirs.get(key) and ours[key] != theirs[key]
    ]
    for says, tell in (("The L2 cache between calls differs", _flushes), ("The script's arguments differ", _arguments)):
        now, before = tell(results), tell(baseline)
        if now and before and now != before:
            found.append(f"{says}: {now} now, {before} in the baseline.")
    paired = {label for label, _, _ in _pairs(results, baseline)}
    missing = [label for run in results["runs"] if (label := _label(run)) not in paired]
    if missing:
        found.append(f"The baseline has no such run as {', '.join(missing)}; nothing was compared for it.")
    return found


def is_comparable(results: Row, baseline: Row) -> bool:
    """Whether the baseline holds any run of the same script, configuration and inputs, timed alike."""
    return any(True for _ in _pairs(results, baseline))


def checked_baseline(value: object, name: str) -> Row:
    """The value of a baseline file, if it is one."""
    hint = "Give a file made by `bench --json FILE`."
    if not isinstance(value, dict) or not isinstance(value.get("runs"), list) or value.get("schema") != 1:
        raise UsageError(f"{name} is no comparison that CompileScope wrote.", hint=hint)
    try:
        # whatever is read later is read now, before an hour of measuring
        differences(value, value)
        regressions(value, value)
    except Exception as error:
        raise UsageError(f"{name} is damaged: a part of it is not what a comparison holds.", hint=hint) from error
    return value


def _pairs(results: Row, baseline: Row) -> Iterator[tuple[str, Row, Row]]:
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
        "script": PurePath(str(workload.get("script") or "")).name,
        **{key: workload.get(key) for key in ("entry", "phase", "precision", "train_mode", "grad_mode", "threads")},
        "inputs": [[row.get("shape"), row.get("dtype")] for row in workload.get("inputs") or []],
    }
    return json.dumps(plain, sort_keys=True)


def _told(run: Row, comparison: Row) -> tuple[Any, Any]:
    """The script's arguments, and whether the L2 cache was flushed between calls; None where that is not told.

    Older files tell no arguments, and a run that was not timed tells nothing of the cache.
    """
    workload = run.get("workload") or comparison.get("workload") or {}
    return workload.get("arguments"), (run.get("timing") or {}).get("l2_flush")


def _is_alike(one: tuple[Any, Any], two: tuple[Any, Any]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, two, strict=True))


def _arguments(comparison: Row) -> str:
    told = (_told(run, comparison)[0] for run in comparison["runs"])
    return " and ".join(dict.fromkeys(shlex.join(words) or "none" for words in told if words is not None))


def _flushes(comparison: Row) -> str:
    told = (_told(run, comparison)[1] for run in comparison["runs"])
    return " and ".join(dict.fromkeys(_FLUSHES[flush] for flush in told if flush is not None))


def _label(run: Row) -> str:
    return str(run.get("label") or Config.from_json(run["config"]).label)


def _device(comparison: Row) -> tuple[object, object]:
    environment = comparison.get("environment") or {}
    return environment.get("device"), environment.get("cpu")


def _torch(comparison: Row) -> object:
    return (comparison.get("environment") or {}).get("torch")


def _broken(now: Row, before: Row) -> list[str]:
    """What leaves nothing else to compare."""
    if now.get("outcome") != "finished":
        if before.get("outcome") != "finished":
            return []
        message = ((now.get("error") or {}).get("message") or "").partition("\n")[0]
        outcome = now.get("outcome") or "did not end"
        return [f"{outcome}, and finished in the baseline{': ' if message else ''}{message}."]
    if _kind(now) == "not_compiled" and _kind(before) not in ("not_compiled", "failed", None):
        return ["nothing is compiled any more."]
    return []


def _kind(run: Row) -> str | None:
    verdict = run.get("verdict")
    return verdict.get("kind") if verdict else None


def _new_breaks(now: Row, before: Row) -> list[str]:
    """Breaks are told apart by cause, file and function: an edit above moves the line and is no new break."""
    if before.get("outcome") != "finished":
        return []
    return [
        f"new graph break at {_place(row)}: {row.get('reason') or row.get('kind')}"
        for row in _added(_of_script(now.get("graph_breaks")), _of_script(before.get("graph_breaks")), _break_key)
    ]


def _of_script(rows: Sequence[Row] | None) -> list[Row]:
    """Without what lies in the training step around the model, which older files do not tell apart."""
    return [row for row in rows or () if not row.get("origin")]


def _new_recompiles(now: Row, before: Row) -> list[str]:
    if before.get("outcome") != "finished":
        return []
    rows, known = _of_script(now.get("recompiles")), _of_script(before.get("recompiles"))
    found = [
        f"new recompile of {_function(row)}: {row.get('reason') or row.get('guard')}"
        for row in _added(rows, known, _recompile_key)
    ]
    counts, allowed = _totals(rows), _totals(known)
    for key, count in counts.items():
        if 0 < allowed.get(key, 0) < count:
            row = next(row for row in rows if _recompile_key(row) == key)
            times = f"recompiled {count} times, {allowed[key]} in the baseline"
            found.append(f"{_function(row)} {times}: {row.get('reason') or row.get('guard')}")
    return found


def _totals(rows: Sequence[Row]) -> dict[object, int]:
    totals: Counter[object] = Counter()
    for row in rows:
        totals[_recompile_key(row)] += row.get("count") or 1
    return dict(totals)


def _added(rows: Sequence[Row], known: Sequence[Row], key: Callable[[Row], object]) -> list[Row]:
    """The rows beyond as many of the same key as were known; those on lines that were known are excused first."""
    lines: dict[object, list[object]] = defaultdict(list)
    for row in known:
        lines[key(row)].append(row.get("line"))
    groups: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    found = []
    for name, group in groups.items():
        group.sort(key=lambda row: row.get("line") not in lines[name])
        found += group[len(lines[name]) :]
    return found


def _break_key(row: Row) -> object:
    return row.get("id") or row.get("kind"), _file(row), row.get("function")


def _recompile_key(row: Row) -> object:
    # sizes and counters in a guard's text change from run to run
    guard = row.get("source") or re.sub(r"\d+", "#", str(row.get("guard") or row.get("reason") or ""))
    return _file(row), row.get("function"), guard, row.get("dimension")


def _file(row: Row) -> str:
    return PurePath(str(row.get("file") or "")).name


def _function(row: Row) -> str:
    return f"{row.get('function') or 'a function'} ({_place(row)})"


def _place(row: Row) -> str:
    if not row.get("file"):
        return "an unknown place"
    return f"{_file(row)}:{row['line']}" if row.get("line") else _file(row)


def _lost_cuda_graphs(now: Row, before: Row, same_torch: bool) -> list[str]:
    """The torch that told of recordings before would tell of them now; another one may not."""
    ours, theirs = now.get("cudagraphs") or {}, before.get("cudagraphs") or {}
    if theirs.get("captured") is not True:
        return []
    skips = ours.get("skips") or []
    is_silent = ours.get("captured") is None and same_torch and (now.get("compile") or {}).get("graphs")
    if ours.get("captured") is False or is_silent:
        reason = next((row.get("reason") for row in skips if row.get("reason")), None)
        return [f"CUDA graphs are lost{f': {reason}' if reason else ''}."]
    known = {_skip_key(row) for row in theirs.get("skips") or []}
    new = {_skip_key(row): row for row in skips if _skip_key(row) not in known}
    return [f"a CUDA graph is skipped now: {row.get('reason') or 'no reason given'}." for row in new.values()]


def _skip_key(row: Row) -> str:
    return re.sub(r"\d+", "#", str(row.get("reason")))


def _wrong_numbers(now: Row) -> list[str]:
    numerics = now.get("numerics") or {}
    if numerics.get("verdict") != "differ":
        return []
    error = numerics.get("max_abs_error")
    return [f"results differ from eager{'' if error is None else f' by up to {error:.3g}'}."]


def _slowdown(now: Row, before: Row, floor: float, same_device: bool) -> list[str]:
    """A speedup that fell: both 95 % intervals apart, and by more than the noise floor.

    Where eager has become faster and the compiled side has not become slower, nothing was lost.
    """
    ours, theirs = _speedup(now), _speedup(before)
    if ours is None or theirs is None or ours["high"] >= theirs["low"]:
        return []
    if ours["value"] >= theirs["value"] * (1 - floor):
        return []
    time, time_before = _compiled_ms(now), _compiled_ms(before)
    if same_device and time is not None and time_before is not None and time <= time_before * (1 + floor):
        return []
    return [f"the speedup over eager fell from {_interval(theirs)} to {_interval(ours)}."]


def _speedup(run: Row) -> Row | None:
    found = (run.get("timing") or {}).get("speedup")
    complete = found is not None and all(found.get(key) is not None for key in ("value", "low", "high"))
    return found if complete else None


def _compiled_ms(run: Row) -> float | None:
    found = ((run.get("timing") or {}).get("compiled_ms") or {}).get("median")
    return None if found is None else float(found)


def _interval(speedup: Row) -> str:
    return f"{units.ratio(speedup['value'])} ({speedup['low']:.3f} to {speedup['high']:.3f})"
