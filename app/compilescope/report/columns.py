"""The columns that a comparison is read by: the same in Markdown and in the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilescope.domain import units, words

JsonRun = Mapping[str, Any]
# of a workload, what rows of one comparison may differ in
SCOPE = ("phase", "precision", "device")

OWN_CACHE = "First calls began with your own compiler cache, whatever it held: they are no cold ones."


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its title, the text of a run's cell, and whether it is set to the right."""

    title: str
    text: Callable[[JsonRun], str]
    right: bool = True


def at(value: Any, path: str) -> Any:
    """The value at a dotted path; None where any part of the way is missing."""
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def duration_ms(path: str) -> Callable[[JsonRun], str]:
    """Text of a time that is stored in milliseconds."""

    def text(run: JsonRun) -> str:
        value = at(run, path)
        return units.duration(None if value is None else value / 1e3)

    return text


def duration_s(path: str) -> Callable[[JsonRun], str]:
    """Text of a time that is stored in seconds."""
    return lambda run: units.duration(at(run, path))


def number(path: str) -> Callable[[JsonRun], str]:
    """Text of a whole number."""
    return lambda run: units.count(at(run, path))


def speedup(run: JsonRun) -> str:
    """Text like "1.84× ± 0.02"."""
    found = at(run, "timing.speedup")
    if not found:
        return "–"
    return units.speedup(found["value"], (found["high"] - found["low"]) / 2)


def of_script(rows: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Of graph breaks or recompiles, those of the script."""
    return [row for row in rows or () if not row.get("origin")]


def total(path: str) -> Callable[[JsonRun], str]:
    """Text of the sum of the counts in a list; unknown where nothing was compiled to the end.

    What lies in the training step around the model is not counted: it is not the script's.
    """

    def text(run: JsonRun) -> str:
        rows = at(run, path)
        if not rows and at(run, "compile.graphs") is None:
            return "–"
        return units.count(sum(row["count"] for row in of_script(rows)))

    return text


def verdict(run: JsonRun) -> str:
    """The verdict's word."""
    return str(run["verdict_word"])


def first_call(run: JsonRun) -> str:
    """The first compiled call, with an empty cache or, where that was chosen, with the user's own."""
    own = at(run, "compile.own_cache_first_call_s")
    return units.duration(at(run, "compile.cold_first_call_s") if own is None else own)


def cache_note(comparison: Mapping[str, Any]) -> str:
    """What to know of the first calls of runs that began with the user's own cache; empty where none did."""
    own = any(at(run, "compile.own_cache_first_call_s") is not None for run in comparison["runs"])
    return OWN_CACHE if own else ""


def numerics(run: JsonRun) -> str:
    """The numerics verdict in words."""
    return words.AGREEMENTS[at(run, "numerics.verdict") or "not_checked"]


def label(run: JsonRun) -> str:
    """The configuration's name."""
    return str(run.get("label") or run.get("id"))


def told_apart(comparison: Mapping[str, Any]) -> list[JsonRun]:
    """The runs, each with the phase, precision and device in its label that runs differ in and that it lacks."""
    common = comparison.get("workload") or {}
    runs: Sequence[JsonRun] = comparison["runs"]
    workloads = [run.get("workload") or common for run in runs]
    # a run that never began knows no device
    parts = [name for name in SCOPE if len({workload[name] for workload in workloads if workload.get(name)}) > 1]
    found = []
    for run, workload in zip(runs, workloads, strict=True):
        known = re.split(r"[(), ]+", label(run))
        own = ", ".join(str(workload[part]) for part in parts if workload.get(part) and workload[part] not in known)
        found.append({**run, "label": f"{label(run)} ({own})"} if own else run)
    return found


def subject(comparison: Mapping[str, Any]) -> list[str]:
    """What all rows are about: entry, phase, precision, device; where rows differ, all that there are."""
    common = comparison.get("workload") or {}
    workloads = [common, *(run["workload"] for run in comparison["runs"] if run.get("workload"))]
    words = []
    for name in ("entry", *SCOPE):
        known = dict.fromkeys(str(workload[name]) for workload in workloads if workload.get(name))
        words += [" and ".join(known)] if known else []
    return words


def has_several_workloads(comparison: Mapping[str, Any]) -> bool:
    """Whether rows differ in phase or precision, so that each has an eager of another kind."""
    common = comparison.get("workload") or {}
    workloads = [run.get("workload") or common for run in comparison["runs"]]
    return len({(workload.get("phase"), workload.get("precision")) for workload in workloads}) > 1


COLUMNS = (
    Column(title="Configuration", text=label, right=False),
    Column(title="Eager", text=duration_ms("timing.eager_ms.median")),
    Column(title="Compiled", text=duration_ms("timing.compiled_ms.median")),
    Column(title="Speedup", text=speedup),
    Column(title="First call", text=first_call),
    Column(title="Warm call", text=duration_s("compile.warm_first_call_s")),
    Column(title="Graphs", text=number("compile.graphs")),
    Column(title="Breaks", text=total("graph_breaks")),
    Column(title="Recompiles", text=total("recompiles")),
    Column(title="Results", text=numerics, right=False),
    Column(title="Verdict", text=verdict, right=False),
)
