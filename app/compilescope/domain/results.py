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
from compilescope.domain.hotspots_json import hotspots_json
from compilescope.domain.measures import Measures, ShapeMeasures, Summary, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR, Interval
from compilescope.domain.story_json import story_json
from compilescope.domain.verdict import Verdict, judge_with_fault

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
    measures, workload = measure(run), _workload(run)
    verdict, fault = judge_with_fault(run, noise_floor)
    return {
        "id": run.id,
        "label": run.label,
        "config": run.config.to_json(),
        "workload": None if workload == common else workload,
        "models": _models(run),
        "outcome": run.outcome,
        "error": _error(run),
        **story_json(run, measures),
        "timing": _timing(measures),
        "memory": {
            "eager_peak_bytes": measures.eager_peak_bytes,
            "compiled_peak_bytes": measures.compiled_peak_bytes,
            "compile_peak_bytes": measures.compile_peak_bytes,
            "process_rss_bytes": measures.process_rss_bytes,
        },
        "numerics": _numerics(measures),
        "break_even": _break_even(verdict),
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


def _timing(measures: Measures) -> dict[str, Any]:
    return {
        "clock": measures.clock,
        "eager_ms": _summary(measures.eager),
        "compiled_ms": _summary(measures.compiled),
        "eager_latency_ms": _summary(measures.eager_latency),
        "compiled_latency_ms": _summary(measures.compiled_latency),
        "eager_gpu_busy_ms": _ms(measures.eager_gpu_busy_s),
        "compiled_gpu_busy_ms": _ms(measures.compiled_gpu_busy_s),
        "launch_bound": measures.launch_bound,
        "speedup": _interval(measures.speedup),
        "process_speedups": [{"start": start} | (_interval(row) or {}) for start, row in measures.process_speedups],
        "processes_disagree": measures.processes_disagree,
        "void_blocks": measures.void_blocks,
        "stopped_by": measures.stopped_by,
        "l2_flush": measures.l2_flush,
        "queued": measures.queued,
        "restored": measures.restored,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "median": summary.median * 1e3,
        "p05": summary.p05 * 1e3,
        "p95": summary.p95 * 1e3,
        "samples": summary.samples,
        "processes": [{"start": start, "median": median * 1e3} for start, median in summary.processes],
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {name: getattr(interval, name) for name in ("value", "low", "high", "confidence")}


def _numerics(measures: Measures) -> dict[str, Any]:
    names = ("verdict", "subject", "backend", "max_abs_error", "reference_ratio", "detail")
    return {name: getattr(measures.numerics, name) for name in names}


def _break_even(verdict: Verdict | None) -> dict[str, Any]:
    """The bounds are told also where they are too far apart for a number between them."""
    found: dict[str, Any] = {}
    for name in ("cold", "own", "warm"):
        row = verdict.break_evens.get(name) if verdict else None
        found |= {
            f"{name}_calls": row.calls if row and row.is_known else None,
            f"{name}_calls_low": row.calls_low if row else None,
            f"{name}_calls_high": row.calls_high if row else None,
            f"{name}_s": row.seconds if row and row.is_known else None,
        }
    return found


def _shape(row: ShapeMeasures) -> dict[str, Any]:
    return {
        "inputs": [{"name": name, "shape": list(size)} for name, size in row.inputs.items()],
        "first_call_s": row.first_call_s,
        "eager_ms": _ms(row.eager.median if row.eager else None),
        "compiled_ms": _ms(row.compiled.median if row.compiled else None),
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
