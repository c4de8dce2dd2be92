"""Several configurations of one workload beside eager: a verdict on each, and which one to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compilescope.domain import statistics, units
from compilescope.domain.config import Config
from compilescope.domain.measures import BreakEven, Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR, Interval

KINDS = ("failed", "incorrect", "not_compiled", "slower", "faster", "no_difference")
# of two configurations that measure alike, the one with fewer ways to go wrong
_MODE_ORDER = (None, "default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


@dataclass(kw_only=True)
class Comparison:
    """Runs that were asked for together. `created` is Unix time; `noise_floor` what calibration found."""

    id: str
    created: float
    runs: list[Run] = field(default_factory=list)
    noise_floor: float = NOISE_FLOOR


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a run came to: one of KINDS, a sentence, and the evidence, a sentence each."""

    kind: str
    summary: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """What to use; `config` None means eager. `caveats` are what to know before relying on it."""

    config: Config | None
    summary: str
    snippet: str = ""
    caveats: tuple[str, ...] = ()
    run_id: str | None = None


def judge(run: Run, noise_floor: float = NOISE_FLOOR) -> Verdict | None:
    """The verdict on a run; None while it goes on. Of several that fit, the first of KINDS."""
    if not run.is_over:
        return None
    measures = measure(run)
    if run.outcome != "finished":
        return Verdict(kind="failed", summary=_failure(run), reasons=_failure_reasons(run))
    if measures.numerics.verdict == "differ":
        return Verdict(kind="incorrect", summary="The compiled results are wrong.", reasons=_reasons(run, measures))
    if run.story is not None and run.story.graphs == 0:
        return Verdict(
            kind="not_compiled",
            summary="Nothing was compiled: the compiler captured no graph, so the model ran eager.",
            reasons=_reasons(run, measures),
        )
    kind = statistics.difference(measures.speedup, noise_floor) or "no_difference"
    return Verdict(kind=kind, summary=_timing(kind, measures.speedup), reasons=_reasons(run, measures))


def recommend(comparison: Comparison) -> Recommendation | None:
    """Which configuration to use; None until a run is over.

    Only what is finished, correct and shown to be faster can be recommended. Where the best intervals overlap, the
    simplest configuration wins.
    """
    over = [run for run in comparison.runs if run.is_over]
    if not over:
        return None
    verdicts = {run.id: judge(run, comparison.noise_floor) for run in over}
    faster = [run for run in over if _kind(verdicts[run.id]) == "faster"]
    if not faster:
        return Recommendation(config=None, summary=_leave_it(over, [verdicts[run.id] for run in over]))
    best = max(faster, key=lambda run: _speedup(run).value)
    alike = [run for run in faster if _speedup(run).high >= _speedup(best).low]
    chosen = min(alike, key=_simplicity)
    return Recommendation(
        config=chosen.config,
        summary=_choice(chosen, best, len(over)),
        snippet=chosen.config.snippet,
        caveats=_caveats(chosen),
        run_id=chosen.id,
    )


def interval_text(interval: Interval | None) -> str:
    """A speedup as people read it: "1.84× ± 0.02"."""
    if interval is None:
        return "–"
    return units.speedup(interval.value, interval.spread)


def break_even_text(found: BreakEven | None) -> str:
    """A break-even in a phrase: "4 200 calls (3 900 to 4 500), about 70 s"."""
    if found is None:
        return "never"
    low, high = _about(found.calls_low), _about(found.calls_high)
    span = f" ({low} to {high})" if low != high else ""
    return f"{_about(found.calls)} calls{span}, about {units.duration(found.seconds)}"


def _about(calls: float) -> str:
    """A number of calls with the three digits that it may carry."""
    return units.count(float(f"{calls:.3g}"))


def _kind(verdict: Verdict | None) -> str | None:
    return verdict.kind if verdict else None


def _speedup(run: Run) -> Interval:
    return measure(run).speedup or Interval(value=1.0, low=1.0, high=1.0)


def _simplicity(run: Run) -> tuple[int, int, float]:
    config = run.config
    mode = _MODE_ORDER.index(config.mode) if config.mode in _MODE_ORDER else len(_MODE_ORDER)
    extras = (config.backend != "inductor") + bool(config.options) + (config.dynamic is not None) + config.fullgraph
    return max(mode, 1), extras, measure(run).cold_first_call_s or 0.0


def _failure(run: Run) -> str:
    error, outcome = run.error, run.outcome
    if outcome == "stopped":
        return "Stopped before it finished."
    if outcome == "timed_out":
        return "Ran past its time limit and was ended."
    if outcome == "crashed":
        signal = run.ended.signal if run.ended else None
        return f"The process crashed ({signal})." if signal else "The process crashed."
    if error is None:
        return "Failed, and nothing says why."
    return f"{error.type}: {_first_line(error.message)}" if error.type else _first_line(error.message)


def _failure_reasons(run: Run) -> tuple[str, ...]:
    error = run.error
    reasons = []
    if error is not None:
        where = f" ({error.file}:{error.line})" if error.file and error.line else ""
        reasons.append(f"It ended at stage {error.stage}{where}: {_first_line(error.message)}")
        if error.hint:
            reasons.append(error.hint)
    elif run.current_stage is not None:
        reasons.append(f"It ended at stage {run.current_stage.name}.")
    return tuple(reasons)


def _timing(kind: str, speedup: Interval | None) -> str:
    if speedup is None:
        return "Too few timed calls to tell a difference."
    text = interval_text(speedup)
    if kind == "faster":
        return f"Faster than eager: {text}."
    if kind == "slower":
        return f"Slower than eager: {text}."
    return f"No measurable difference from eager: {text}."


def _reasons(run: Run, measures: Measures) -> tuple[str, ...]:
    found = [
        _numbers_reason(measures),
        _time_reason(measures),
        _disagreement_reason(measures),
        _compile_reason(measures),
        *_story_reasons(run),
    ]
    return tuple(reason for reason in found if reason)


def _numbers_reason(measures: Measures) -> str:
    numbers = measures.numerics
    detail = f" {numbers.detail}" if numbers.detail else ""
    if numbers.verdict == "differ":
        stage = f"; the first backend that differs is {numbers.backend}" if numbers.backend else ""
        error = "" if numbers.max_abs_error is None else f" by up to {numbers.max_abs_error:.3g}"
        return f"The {numbers.subject} differ from eager{error}{stage}.{detail}"
    if numbers.verdict == "nondeterministic":
        return f"Eager does not repeat its own results, so correctness could not be shown.{detail}"
    if numbers.verdict == "not_checked":
        return f"Results were not checked against eager.{detail}"
    return ""


def _time_reason(measures: Measures) -> str:
    eager, compiled, speedup = measures.eager, measures.compiled, measures.speedup
    if eager is None or compiled is None or speedup is None:
        return ""
    stop = {"interval": "stopped once the interval was narrow enough", "budget": "stopped at the end of the budget"}
    return (
        f"Median time per call {units.duration(eager.median)} eager, {units.duration(compiled.median)} compiled; "
        f"95 % interval of the speedup {speedup.low:.3f} to {speedup.high:.3f} from {compiled.samples} blocks"
        + (f", {stop[measures.stopped_by]}." if measures.stopped_by in stop else ".")
    )


def _disagreement_reason(measures: Measures) -> str:
    if not measures.processes_disagree:
        return ""
    parts = ", ".join(f"{start} {interval_text(interval)}" for start, interval in measures.process_speedups)
    return f"Warning: the processes disagree ({parts}); the interval spans both, and a quieter machine would narrow it."


def _compile_reason(measures: Measures) -> str:
    if measures.cold_first_call_s is None:
        return ""
    text = f"First call {units.duration(measures.cold_first_call_s)} cold"
    if measures.warm_first_call_s is not None:
        text += f", {units.duration(measures.warm_first_call_s)} with a warm cache"
    if measures.cold_break_even is not None:
        text += f"; pays off after {break_even_text(measures.cold_break_even)}"
    return text + "."


def _story_reasons(run: Run) -> list[str]:
    story = run.story
    if story is None:
        return []
    breaks = sum(row.count for row in story.graph_breaks.values())
    recompiles = sum(row.count for row in story.recompiles.values())
    skips = [row for row in story.cudagraphs if row.state == "skipped"]
    reasons = []
    if breaks:
        reasons.append(f"{units.plural(breaks, 'graph break')} at {units.plural(len(story.graph_breaks), 'place')}.")
    if recompiles:
        reasons.append(f"{units.plural(recompiles, 'recompile')}.")
    if story.recompile_limits:
        reasons.append("The recompile limit was reached: for other inputs the function runs eager.")
    if skips:
        reasons.append(f"CUDA graphs were skipped: {skips[0].reason or 'no reason given'}.")
    return reasons


def _choice(chosen: Run, best: Run, count: int) -> str:
    measures = measure(chosen)
    text = f"Use {chosen.label}: {interval_text(measures.speedup)} against eager"
    if chosen is not best:
        text += f"; {best.label} measured {interval_text(_speedup(best))}, which is no provable gain over it"
    elif count > 1:
        text += f", the best of {count}"
    if measures.cold_break_even is not None:
        text += f". It pays off after {break_even_text(measures.cold_break_even)}"
    return text + "."


def _leave_it(runs: Sequence[Run], verdicts: Sequence[Verdict | None]) -> str:
    if len(runs) == 1 and verdicts[0] is not None:
        return f"Leave it eager. {runs[0].label}: {verdicts[0].summary}"
    return "Leave it eager: no configuration was shown to be faster. " + " ".join(
        f"{run.label}: {verdict.summary}" for run, verdict in zip(runs, verdicts, strict=True) if verdict
    )


def _caveats(run: Run) -> tuple[str, ...]:
    measures = measure(run)
    found = [_numbers_reason(measures), _disagreement_reason(measures), _memory_caveat(measures), *_story_reasons(run)]
    if measures.cold_first_call_s is not None and measures.cold_first_call_s > 30:
        found.append(f"The first call takes {units.duration(measures.cold_first_call_s)} with a cold cache.")
    return tuple(caveat for caveat in found if caveat)


def _memory_caveat(measures: Measures) -> str:
    eager, compiled = measures.eager_peak_bytes, measures.compiled_peak_bytes
    if not eager or not compiled or compiled < 1.2 * eager:
        return ""
    return f"Peak memory grows from {units.size(eager)} to {units.size(compiled)}."


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
