"""A comparison as JSON values, schema 1: what files, history and other tools read.

Keys are only ever added. None (null) means unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import compilescope
from compilescope.domain import events as e
from compilescope.domain import prose, units
from compilescope.domain.advice import Advice, advise_with_faults
from compilescope.domain.comparison import Comparison, Recommendation, Rival, recommend
from compilescope.domain.faults import HINT
from compilescope.domain.figures import Result, figures_json
from compilescope.domain.hotspots_json import hotspots_json
from compilescope.domain.measures import ShapeMeasures, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR, Interval
from compilescope.domain.story_json import story_json
from compilescope.domain.verdict import judge_with_fault

SCHEMA = 1
# of a recommendation: other runs beside the one that is chosen
RIVALS = ("same_code", "ties", "undecided", "by_chance")


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison; runs that still go on are in it with what is known of them."""
    runs = comparison.runs
    workloads = [_workload(run) for run in runs]
    workload = next((found for found in workloads if found["inputs"]), workloads[0] if workloads else None)
    result: dict[str, Any] = finite(
        {
            "schema": SCHEMA,
            "compilescope": compilescope.__version__,
            "id": comparison.id,
            "created": _instant(comparison.created),
            "environment": next((found for run in runs if (found := _environment(run))), None),
            "workload": workload,
            "noise_floor": comparison.noise_floor,
            "runs": [
                _with_advice(run_json(run, noise_floor=comparison.noise_floor, common=workload), run, comparison)
                for run in runs
            ],
            "play_offs": [row.to_json() | {"problem": row.problem or None} for row in comparison.play_offs],
            "recommendation": _recommendation(recommend(comparison)),
        }
    )
    return result


def run_json(run: Run, *, noise_floor: float = NOISE_FLOOR, common: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One run; its workload only where that differs from `common`."""
    verdict, fault = judge_with_fault(run, noise_floor)
    measures, workload = measure(run), _workload(run)
    figures = figures_json(Result(run=run, measures=measures, verdict=verdict))
    story = story_json(run)
    starts = [{"start": start} | (_interval(row) or {}) for start, row in measures.process_speedups]
    return {
        "id": run.id,
        "label": run.label,
        "config": run.config.to_json(),
        "workload": None if workload == common else workload,
        "models": _models(run),
        "outcome": run.outcome,
        "error": _error(run),
        **figures,
        **story,
        **{name: figures[name] | story[name] for name in ("compile", "cudagraphs")},
        "timing": figures["timing"] | {"process_speedups": starts},
        "shape_sweep": [_shape(row) for row in measures.shapes],
        "hotspots": hotspots_json(run),
        "warnings": _warnings(run) + ([{"code": "internal", "message": fault, "hint": HINT}] if fault else []),
        "verdict": {"kind": verdict.kind, "summary": verdict.summary, "reasons": list(verdict.reasons)}
        if verdict
        else None,
    }


def _with_advice(result: dict[str, Any], run: Run, comparison: Comparison) -> dict[str, Any]:
    advice, faults = advise_with_faults(run, comparison.runs, comparison.noise_floor, comparison.play_offs)
    result["warnings"] += [_warning(row) for row in faults]
    return result | {"advice": [_advice(row) for row in advice]}


def finite(value: Any) -> Any:
    """The same value with NaN and infinities as None, which JSON has no words for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _environment(run: Run) -> dict[str, Any] | None:
    found = next((process.environment for process in run.processes if process.environment), None)
    if found is None:
        return None
    names = ("python", "torch", "triton", "device", "device_capability", "driver", "cuda", "cpu", "os", "compiler")
    return {name: getattr(found, name) for name in names} | {"threads": found.threads}


def _workload(run: Run) -> dict[str, Any]:
    """What was measured, as the worker found it; as it was asked for until the worker has said."""
    asked = run.workload
    found = next((process.workload for process in run.processes if process.workload), None)
    return {
        "script": asked.script,
        "entry": (found.entry if found else None) or asked.entry,
        "phase": (found.phase if found else None) or asked.phase,
        "precision": (found.precision if found else None) or asked.precision,
        "device": (found.device if found else None) or asked.device,
        "train_mode": asked.train_mode,
        "grad_mode": asked.grad_mode if asked.phase == "inference" else None,
        "threads": asked.threads,
        "arguments": list(asked.arguments),
        "inputs": [
            {"name": row.name, "shape": None if row.shape is None else list(row.shape), "dtype": row.dtype}
            for row in (found.inputs if found else ())
        ],
    }


def _models(run: Run) -> dict[str, Any] | None:
    """How the eager and the compiled model were made."""
    found = next((process.workload for process in run.processes if process.workload), None)
    return {"made": found.copies, "reason": found.copies_reason} if found and found.copies else None


def _error(run: Run) -> dict[str, Any] | None:
    error = run.error
    if error is None:
        return None
    names = ("stage", "type", "message", "hint", "traceback", "file", "line")
    return {name: getattr(error, name) for name in names}


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {name: getattr(interval, name) for name in ("value", "low", "high", "confidence")}


def _shape(row: ShapeMeasures) -> dict[str, Any]:
    return {
        "inputs": [{"name": name, "shape": list(size)} for name, size in row.inputs.items()],
        "first_call_s": row.first_call_s,
        "eager_ms": row.eager.median * 1e3 if row.eager else None,
        "compiled_ms": row.compiled.median * 1e3 if row.compiled else None,
        "speedup": _interval(row.speedup),
        "recompiles": row.recompiles,
        "numerics": row.numerics,
    }


def _warnings(run: Run) -> list[dict[str, Any]]:
    """What the worker warned of, once each: where two processes tell the same with other figures, the first counts."""
    rows: dict[tuple[str, str], e.Warning] = {}
    for row in (row for process in run.processes for row in process.warnings):
        rows.setdefault((row.code, units.without_figures(row.message)), row)
    return [_warning(row) for row in rows.values()]


def _warning(row: e.Warning) -> dict[str, Any]:
    return {"code": row.code, "message": row.message, "hint": row.hint}


def _advice(row: Advice) -> dict[str, Any]:
    names = ("code", "severity", "title", "evidence", "remedy")
    found: dict[str, Any] = {name: getattr(row, name) for name in names}
    places = [{"file": place.file, "line": place.line, "function": place.function} for place in row.places]
    return found | {"source": {"title": row.source.title, "url": row.source.url}, "places": places}


def _rival(row: Rival) -> dict[str, Any]:
    return {"run": row.run_id, "label": row.label, "speedup": _interval(row.speedup)}


def _recommendation(found: Recommendation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "config": found.config.to_json() if found.config else None,
        "kind": found.kind,
        "summary": prose.summary(found),
        "snippet": found.snippet or None,
        "caveats": list(found.caveats),
        "run": found.run_id,
        "speedup": _interval(found.speedup),
        "speedup_of_code": _interval(found.pooled),
        "speedup_of_choice": _interval(found.allowing),
        "count": found.count,
        "is_best": found.is_best,
        **{name: [_rival(row) for row in getattr(found, name)] for name in RIVALS},
        "scope": found.scope or None,
        "others": [_recommendation(other) for other in found.others],
    }
