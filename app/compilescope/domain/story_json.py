"""What the compiler did in a run, as JSON values: a part of `results`."""

from __future__ import annotations

from typing import Any

from compilescope.domain.codekey import code_key
from compilescope.domain.run import GraphBreakRow, ProcessStory, RecompileRow, Run


def story_json(run: Run) -> dict[str, Any]:
    """The lists of a run from "compile" to "autotunes"."""
    story = run.story
    return {
        "compile": _compile(run),
        "graph_breaks": [_graph_break(row) for row in (*story.graph_breaks.values(), *story.step_breaks.values())]
        if story
        else [],
        "recompiles": [_recompile(row) for row in (*story.recompiles.values(), *story.step_recompiles.values())]
        if story
        else [],
        "recompile_limits": _recompile_limits(story),
        "cache": _cache(run.cold),
        "warm_cache": _cache(run.warm),
        "cudagraphs": _cudagraphs(run),
        "autotunes": _autotunes(story),
    }


def _compile(run: Run) -> dict[str, Any]:
    return {
        "first_uses": _first_uses(run.cold),
        "warm_first_uses": _first_uses(run.warm),
        "failures": _failures(run.story),
        "code": code_key(run),
        "phases": _phases(run.cold),
        "warm_phases": _phases(run.warm),
    }


def _failures(story: ProcessStory | None) -> list[dict[str, Any]]:
    names = ("function", "file", "line", "reason")
    return [{name: getattr(row, name) for name in names} for row in (story.failed_compiles if story else ())]


def _first_uses(process: ProcessStory | None) -> list[dict[str, Any]]:
    return [{"name": use.name, "duration_s": use.duration_s} for use in (process.first_uses if process else ())]


def _phases(process: ProcessStory | None) -> list[dict[str, Any]]:
    return [
        {"name": row.name, "group": row.group, "start_s": row.began, "duration_s": row.duration_s, "depth": row.depth}
        for row in (process.phases if process else ())
    ]


def _graph_break(row: GraphBreakRow) -> dict[str, Any]:
    names = ("id", "kind", "reason", "explanation", "file", "line", "function", "in_loop", "frame_skipped", "origin")
    found: dict[str, Any] = {name: getattr(row.event, name) for name in names}
    return found | {"hints": list(row.event.hints), "count": row.count}


def _recompile(row: RecompileRow) -> dict[str, Any]:
    names = ("function", "file", "line", "guard", "reason", "source", "dimension", "expected", "actual", "origin")
    found: dict[str, Any] = {name: getattr(row.event, name) for name in names}
    return found | {"count": row.count}


def _recompile_limits(story: ProcessStory | None) -> list[dict[str, Any]]:
    names = ("function", "file", "line", "limit", "reason")
    return [{name: getattr(row, name) for name in names} for row in (story.recompile_limits if story else ())]


def _cache(process: ProcessStory | None) -> dict[str, Any]:
    """Lookups by cache; a cache that was never asked is not there."""
    found: dict[str, Any] = {}
    plural = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}
    for row in process.cache if process else ():
        entry = found.setdefault(row.cache, {"hits": 0, "misses": 0, "bypasses": 0, "reasons": []})
        if row.state in plural:
            entry[plural[row.state]] += 1
        if row.reason and row.reason not in entry["reasons"]:
            entry["reasons"].append(row.reason)
    return found


def _cudagraphs(run: Run) -> dict[str, Any]:
    rows = run.story.skipped_cudagraphs if run.story else []
    skips = [{"reason": row.reason, "file": row.file, "line": row.line} for row in rows]
    return {"skips": skips}


def _autotunes(story: ProcessStory | None) -> list[dict[str, Any]]:
    """What was tried for each operation, fastest first; a choice without a time failed."""
    return [
        {
            "operation": row.operation,
            "inputs": list(row.inputs),
            "winner": row.winner,
            "duration_s": row.duration_s,
            "choices": [{"name": str(one.get("name", "")), "seconds": one.get("seconds")} for one in row.choices],
        }
        for row in (story.autotunes if story else ())
    ]
