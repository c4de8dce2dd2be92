"""What Markdown, CSV and terminal read of a comparison's JSON beside its figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from compilescope.domain.figures import at

JsonRun = Mapping[str, Any]
# of a workload, what rows of one comparison may differ in
SCOPE = ("phase", "precision", "device")

OWN_CACHE = "First calls began with your own compiler cache, whatever it held: they are no cold ones."


def of_script(rows: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Of graph breaks or recompiles, those of the script."""
    return [row for row in rows or () if not row.get("origin")]


def cache_note(comparison: Mapping[str, Any]) -> str:
    """What to know of the first calls of runs that began with the user's own cache; empty where none did."""
    own = any(at(run, "compile.own_cache_first_call_s") is not None for run in comparison["runs"])
    return OWN_CACHE if own else ""


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
