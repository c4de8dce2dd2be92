"""What became of a baseline: held, worse, which is only said of what is certain, or inconclusive."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilescope.domain import statistics, units, words
from compilescope.domain.errors import UsageError
from compilescope.domain.pairing import Row, differences, pairs
from compilescope.domain.ranking import relative
from compilescope.domain.statistics import NOISE_FLOOR, TOO_NOISY, Interval

HELD, WORSE, INCONCLUSIVE = "held", "worse", "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run beside the baseline's. `reasons`: what became worse, or why that could not be told, a sentence each;
    `change`: its speedup over the earlier one."""

    label: str
    run_id: str | None
    outcome: str
    reasons: tuple[str, ...] = ()
    change: Interval | None = None


def outcomes(results: Row, baseline: Row) -> list[Outcome]:
    """Of every run that both hold; `results` and `baseline` are results as JSON, schema 1.

    Runs are paired by configuration and workload; what only one side has is compared with nothing.
    """
    floor = max(float(side.get("noise_floor") or NOISE_FLOOR) for side in (results, baseline))
    same_device = _device(results) == _device(baseline)
    same_torch = _torch(results) == _torch(baseline)
    found = []
    for label, now, before in pairs(results, baseline):
        change = _change(now, before)
        is_slower, doubt = _speed(now, before, change, floor, same_device)
        worse = _broken(now, before) or [
            *_new_breaks(now, before),
            *_new_recompiles(now, before),
            *_lost_cuda_graphs(now, before, same_torch),
            *_wrong_numbers(now),
            *([_fell(now, before)] if is_slower else []),
        ]
        outcome = WORSE if worse else INCONCLUSIVE if doubt else HELD
        reasons = tuple(worse) or ((doubt,) if doubt else ())
        run_id = str(now["id"]) if now.get("id") else None
        found.append(Outcome(label=label, run_id=run_id, outcome=outcome, reasons=reasons, change=change))
    return found


def regressions(results: Row, baseline: Row) -> list[str]:
    """A sentence for everything in `results` that is worse than in `baseline`."""
    worse = (row for row in outcomes(results, baseline) if row.outcome == WORSE)
    return [f"{row.label}: {reason}" for row in worse for reason in row.reasons]


def baseline_json(results: Row, baseline: Row, name: str) -> dict[str, Any]:
    """What became of a baseline. One with none of these runs is not held: it would let everything pass."""
    rows = outcomes(results, baseline)
    told = {row.outcome for row in rows}
    return {
        "file": name,
        "outcome": WORSE if WORSE in told or not rows else INCONCLUSIVE if INCONCLUSIVE in told else HELD,
        "runs": [
            {"label": row.label, "id": row.run_id, "outcome": row.outcome, "reasons": list(row.reasons)}
            | {"change": asdict(row.change) if row.change else None}
            for row in rows
        ],
        "differences": differences(results, baseline),
    }


def baseline_sentences(found: Row) -> list[str]:
    """The same in words: what it came to, and a sentence for all that is worse or not known."""
    name, rows = found["file"], found["runs"]
    if not rows:
        return [
            f"Nothing could be compared with {name}, so it is not held: it has no run of this script with the same "
            "entry, arguments, configuration, input sizes and way of timing. Make a new baseline with "
            "`bench --json FILE`."
        ]
    counts = Counter(row["outcome"] for row in rows)
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (HELD, WORSE, INCONCLUSIVE) if counts[outcome])
    texts = [f"Baseline {name}: {found['outcome'].upper()} ({told})."]
    for outcome, head in ((WORSE, f"Worse than {name}"), (INCONCLUSIVE, "Inconclusive")):
        rows_so = [row for row in rows if row["outcome"] == outcome]
        texts += [f"{head}: {row['label']}: {reason}" for row in rows_so for reason in row["reasons"]]
    if found["outcome"] == HELD:
        texts.append(f"Nothing has become worse than in {name}.")
    return texts


def checked_baseline(value: object, name: str) -> Row:
    """The value of a baseline file, if it is one."""
    hint = "Give a file made by `bench --json FILE`."
    if not isinstance(value, dict) or not isinstance(value.get("runs"), list) or value.get("schema") != 1:
        raise UsageError(f"{name} is no comparison that CompileScope wrote.", hint=hint)
    try:
        # whatever is read later is read now, before an hour of measuring
        differences(value, value)
        outcomes(value, value)
    except Exception as error:
        raise UsageError(f"{name} is damaged: a part of it is not what a comparison holds.", hint=hint) from error
    return value


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
        f"new graph break at {words.place(row.get('file'), row.get('line'))}: {row.get('reason') or row.get('kind')}"
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
    return words.file_name(str(row.get("file") or ""))


def _function(row: Row) -> str:
    return f"{row.get('function') or 'a function'} ({words.place(row.get('file'), row.get('line'))})"


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


def _change(now: Row, before: Row) -> Interval | None:
    """The speedup over the earlier one; None where either is missing."""
    ours, theirs = _speedup(now), _speedup(before)
    return relative(ours, theirs) if ours and theirs else None


def _speed(now: Row, before: Row, change: Interval | None, floor: float, same_device: bool) -> tuple[bool, str]:
    """Whether the speedup fell for certain; and if not, why it may have, a sentence."""
    if change is None:
        return False, _not_timed(now, before)
    if statistics.difference(change, floor) == "slower":
        time, time_before = _compiled_ms(now), _compiled_ms(before)
        if not same_device or time is None or time_before is None or time > time_before * (1 + floor):
            return True, ""
        return False, (
            f"{_fell(now, before).removesuffix('.')}, and yet a compiled call takes no longer: either eager alone has "
            "become faster, or the machine has."
        )
    if change.low < 1 - TOO_NOISY:
        return False, (
            f"the speedup is too uncertain to exclude a loss of {units.percent(TOO_NOISY)}: {_interval(now)} now, "
            f"{_interval(before)} in the baseline."
        )
    return False, ""


def _not_timed(now: Row, before: Row) -> str:
    """Why the speed cannot be compared; empty where there was none to lose."""
    if before.get("outcome") != "finished" or (_kind(now) == _kind(before) == "not_compiled"):
        return ""
    missing = [word for word, run in (("now", now), ("in the baseline", before)) if _speedup(run) is None]
    return f"there is no speedup {' nor '.join(missing)}."


def _fell(now: Row, before: Row) -> str:
    return f"the speedup over eager fell from {_interval(before)} to {_interval(now)}."


def _speedup(run: Row) -> Interval | None:
    found = (run.get("timing") or {}).get("speedup") or {}
    value, low, high = (found.get(key) for key in ("value", "low", "high"))
    if value is None or low is None or high is None or min(value, low, high) <= 0:
        return None
    return Interval(value=float(value), low=float(low), high=float(high))


def _compiled_ms(run: Row) -> float | None:
    found = ((run.get("timing") or {}).get("compiled_ms") or {}).get("median")
    return None if found is None else float(found)


def _interval(run: Row) -> str:
    found = _speedup(run)
    return f"{units.ratio(found.value)} ({found.low:.3f} to {found.high:.3f})" if found else "none"
