"""The verdict on one run, with its evidence: failed, incorrect, not compiled, slower, faster, no difference."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.domain import statistics, units
from compilescope.domain.breakeven import BreakEven
from compilescope.domain.faults import fault
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.standing import when_text
from compilescope.domain.statistics import NOISE_FLOOR, Interval, is_settled

KINDS = ("failed", "incorrect", "not_compiled", "slower", "faster", "no_difference")
# errors whose message is a sentence of ours, to which a class adds nothing
_OWN_TYPES = ("ScriptError", "NothingToRun", "SystemExit", "SetupError")
# what the worker warns of when the machine disturbed its timing
_UNREST = ("busy_machine", "gpu_shared", "gpu_throttled")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a run came to: one of KINDS, a sentence, and the evidence, a sentence each."""

    kind: str
    summary: str
    reasons: tuple[str, ...] = ()


def judge(run: Run, noise_floor: float = NOISE_FLOOR) -> Verdict | None:
    """The verdict on a run, the first of KINDS that fits; None while it goes on, and where nothing was measured."""
    return judge_with_fault(run, noise_floor)[0]


def judge_with_fault(run: Run, noise_floor: float = NOISE_FLOOR) -> tuple[Verdict | None, str]:
    """The same, with a sentence where judging itself failed: what was measured must not be lost by that."""
    try:
        return _judge(run, noise_floor), measure(run).problem if run.is_over else ""
    except Exception as error:  # a fault of ours, whatever it is
        return None, fault("The verdict is missing", error)


def _judge(run: Run, noise_floor: float) -> Verdict | None:
    if not run.is_over or (run.is_trace and run.story is not None and run.story.graphs):
        return None
    measures = measure(run)
    if run.outcome != "finished":
        return Verdict(kind="failed", summary=_failure(run), reasons=_failure_reasons(run))
    if measures.problem:
        return None
    if measures.numerics.verdict == "differ":
        return Verdict(kind="incorrect", summary="The compiled results are wrong.", reasons=_evidence(run, measures))
    if run.story is not None and run.story.graphs == 0:
        return Verdict(
            kind="not_compiled",
            summary="Nothing was compiled: the compiler captured no graph, so the model ran eager.",
            reasons=_evidence(run, measures),
        )
    kind = statistics.difference(measures.speedup, noise_floor) or "no_difference"
    return Verdict(kind=kind, summary=_timing(kind, measures.speedup, noise_floor), reasons=_evidence(run, measures))


def noise_floor_text(noise_floor: float) -> str:
    """What a noise floor means, and where it comes from."""
    share = units.percent(noise_floor)
    if noise_floor > NOISE_FLOOR:
        return f"Noise floor {share}, by this machine's calibration: a smaller difference from eager is not called one."
    return f"Noise floor {share}, the least that is assumed: a smaller difference from eager is not called one."


def is_undecided(speedup: Interval) -> bool:
    """Whether it may be faster and may be not, and more measuring could tell: neither "pays" nor "never pays" holds."""
    return speedup.high > 1 and not is_settled(speedup)


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


def _failure(run: Run) -> str:
    error, outcome = run.error, run.outcome
    if outcome == "stopped":
        return "Stopped before it finished."
    if error is not None and outcome == "failed" and error.type and error.type not in _OWN_TYPES:
        return f"{error.type}: {_first_line(error.message)}"
    if error is not None:
        return _first_line(error.message)
    if outcome == "timed_out":
        return "Ran past its time limit and was ended."
    if outcome == "crashed":
        signal = run.ended.signal if run.ended else None
        return f"The process crashed ({signal})." if signal else "The process crashed."
    return "Failed, and nothing says why."


def _failure_reasons(run: Run) -> tuple[str, ...]:
    error = run.error
    reasons = []
    if error is not None:
        where = f" ({error.file}:{error.line})" if error.file and error.line else ""
        reasons.append(f"It ended {_when(run, error.stage)}".rstrip() + f"{where}: {_first_line(error.message)}")
        if error.hint:
            reasons.append(error.hint)
    elif run.current_stage is not None:
        reasons.append(f"It ended {_when(run, run.current_stage.name) or 'before its first stage'}.")
    return tuple(reasons)


def _when(run: Run, stage: str | None) -> str:
    """When a run ended: "while compiling", with the start where it was the second one."""
    text = when_text(stage)
    return f"{text} in the warm start" if text and len(run.processes) > 1 else text


def _timing(kind: str, speedup: Interval | None, noise_floor: float) -> str:
    if speedup is None:
        return "Too few timed calls to tell a difference."
    text = interval_text(speedup)
    if kind == "no_difference" and not is_settled(speedup):
        low, high = units.ratio(speedup.low), units.ratio(speedup.high)
        return f"Too noisy to tell: between {low} and {high} of eager's speed."
    if kind == "faster":
        return f"Faster than eager: {text}."
    if kind == "slower":
        return f"Slower than eager: {text}."
    # which would be called a difference, were it not for the floor
    within = f", within the noise floor of {units.percent(noise_floor)}" if not speedup.contains(1.0) else ""
    return f"No measurable difference from eager: {text}{within}."


def _evidence(run: Run, measures: Measures) -> tuple[str, ...]:
    found = [
        numbers_reason(measures),
        _time_reason(measures),
        disagreement_reason(measures),
        *unrest_reasons(run),
        _compile_reason(measures),
        *story_reasons(run),
    ]
    return tuple(reason for reason in found if reason)


def numbers_reason(measures: Measures) -> str:
    """What is known of the results' correctness; empty where they match."""
    numbers = measures.numerics
    detail = f" {numbers.detail}" if numbers.detail else ""
    if numbers.verdict == "differ":
        stage = f"; the first backend that differs is {numbers.backend}" if numbers.backend else ""
        error = "" if numbers.max_abs_error is None else f" by up to {numbers.max_abs_error:.3g}"
        return f"The {numbers.subject} differ from eager{error}{stage}.{detail}"
    if numbers.verdict == "nondeterministic":
        return f"The {numbers.subject} vary from call to call, so correctness could not be shown.{detail}"
    if numbers.verdict == "not_checked" and numbers.subject:
        return f"Whether the {numbers.subject} agree with eager could not be told.{detail}"
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
        + ("" if speedup.contains(eager.median / compiled.median) else WANDERED)
    )


WANDERED = (
    " The machine's speed wandered: the speedup is that of blocks timed one right after the other, and the medians of "
    "all blocks do not give it."
)


def disagreement_reason(measures: Measures) -> str:
    """A warning where the two processes contradict each other."""
    if not measures.processes_disagree:
        return ""
    parts = ", ".join(f"{start} {interval_text(interval)}" for start, interval in measures.process_speedups)
    return f"Warning: the processes disagree ({parts}); the interval spans both, and a quieter machine would narrow it."


def unrest_reasons(run: Run) -> list[str]:
    """What disturbed the machine while it timed, once a kind."""
    rows = [row for process in run.processes for row in process.warnings if row.code in _UNREST]
    told = {(row.code, units.without_figures(row.message)): row.message for row in rows}
    return [f"Warning: {message}" for message in told.values()]


# from here on a first call is not the model's alone
FIRST_USE_SHARE = 0.05


def _compile_reason(measures: Measures) -> str:
    if measures.cold_first_call_s is None:
        return ""
    text = f"First call {units.duration(measures.cold_first_call_s)} cold"
    if measures.warm_first_call_s is not None:
        text += f", {units.duration(measures.warm_first_call_s)} with a warm cache"
    if (measures.cold_first_use_s or 0.0) > FIRST_USE_SHARE * measures.cold_first_call_s:
        text += f" (of the cold one {units.duration(measures.cold_first_use_s)} went into preparing the C++ compiler)"
    if measures.cold_break_even is not None:
        text += f"; pays off after {break_even_text(measures.cold_break_even)}"
    return text + "."


def story_reasons(run: Run) -> list[str]:
    """What the compiler left out or did again."""
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


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
