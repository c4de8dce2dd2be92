"""The verdict on one run, the first of KINDS that fits, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilescope.domain import statistics, units, words
from compilescope.domain.agreement import Agreement
from compilescope.domain.breakeven import BreakEven, break_even, break_even_text, pays_off_text
from compilescope.domain.faults import fault
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import EAGER, CompileRow, ProcessStory, Run
from compilescope.domain.standing import when_failed
from compilescope.domain.statistics import NOISE_FLOOR, Interval, is_settled
from compilescope.domain.workload import Measurement

# from here on the mean of calls is another story than their median
MEANS_APART = 0.05
# too_noisy: no difference was shown, and the interval leaves room for one that matters, or nothing was timed
KINDS = ("failed", "incorrect", "not_compiled", "too_noisy", "slower", "faster", "no_difference")
# errors whose message is a sentence of ours, to which a class adds nothing
_OWN_TYPES = ("ScriptError", "NothingToRun", "SystemExit", "SetupError")
# what it warns of where two models, or two calls, are not alike and there is nothing to time
NOT_COMPARABLE = "not_comparable"
# what the worker warns of when the machine disturbed its timing
_UNREST = ("busy_machine", "gpu_shared", "gpu_throttled")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a run came to: one of KINDS, a sentence, and the evidence, a sentence each.

    Only what is faster has break-evens, how much the rest saves, if anything, is not shown: of the cold first call
    ("cold"), of that without what it would have paid for any model ("own"), and of the warm one ("warm").
    """

    kind: str
    summary: str
    reasons: tuple[str, ...] = ()
    break_evens: Mapping[str, BreakEven] = field(default_factory=dict)

    @property
    def cold_break_even(self) -> BreakEven | None:
        """None also where it is not known well enough to be a number."""
        return self._known("cold")

    @property
    def warm_break_even(self) -> BreakEven | None:
        return self._known("warm")

    def _known(self, name: str) -> BreakEven | None:
        found = self.break_evens.get(name)
        return found if found and found.is_known else None

    @property
    def pays_off(self) -> str:
        """When it pays off, as a clause; empty where nothing is shown to save anything."""
        found = self.break_evens.get("cold")
        return pays_off_text(found, self.break_evens.get("own")) if found else ""


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
        summary = f"The compiled results are wrong: the {_apart_text(measures.numerics)}."
        return Verdict(kind="incorrect", summary=summary, reasons=_evidence(run, measures))
    if summary := _not_compiled(run):
        return Verdict(kind="not_compiled", summary=summary, reasons=_evidence(run, measures))
    kind = _timed_kind(measures.speedup, noise_floor)
    break_evens = _break_evens(run, measures) if kind == "faster" else {}
    return Verdict(
        kind=kind,
        summary=why_not_timed(run) or _of_sizes(_timing(kind, measures.speedup, noise_floor), measures),
        reasons=_evidence(run, measures, break_evens, noise_floor),
        break_evens=break_evens,
    )


def _timed_kind(speedup: Interval | None, noise_floor: float) -> str:
    return statistics.difference(speedup, noise_floor) or ("no_difference" if is_settled(speedup) else "too_noisy")


def stored_kind(run: Mapping[str, Any]) -> str | None:
    """The kind of a run as JSON. Files of earlier versions call "no_difference" what was too noisy to tell."""
    kind: str | None = (run.get("verdict") or {}).get("kind")
    if kind != "no_difference":
        return kind
    found = (run.get("timing") or {}).get("speedup")
    is_known = found and is_settled(Interval(value=found["value"], low=found["low"], high=found["high"]))
    return kind if is_known else "too_noisy"


def _not_compiled(run: Run) -> str:
    """Why no compiled code ran, a sentence; empty where some did, or where that is not known."""
    story = run.story
    if story is None:
        return ""
    if story.graphs == 0:
        if failed := story.failed_compiles:
            return f"Nothing was compiled: {failure_text(failed[0])}, so the model ran eager."
        return "Nothing was compiled: the compiler captured no graph, so the model ran eager."
    if story.entries_per_call != 0:
        return ""
    graphs = f"{units.plural(story.graphs, 'graph')} {'was' if story.graphs == 1 else 'were'} captured"
    if story.recompile_limits:
        return f"Compiled code no longer runs: {graphs}, but past the recompile limit a call enters none of it."
    return f"Compiled code never ran: {graphs}, but a call enters none of it, so the model ran eager."


def failure_text(row: CompileRow) -> str:
    """That a function could not be compiled, and why: the beginning of a sentence."""
    return f"compiling {row.function or 'the model'} failed" + (f" with {row.reason}" if row.reason else "")


def why_not_timed(run: Run) -> str:
    """Why the worker timed nothing although the run finished; empty where it did time."""
    rows = [row for process in run.processes for row in process.warnings if row.code == NOT_COMPARABLE]
    return rows[0].message if rows and measure(run).speedup is None else ""


def _break_evens(run: Run, measures: Measures) -> dict[str, BreakEven]:
    # beside the user's own cache nobody knows what a cold start costs
    cold_s = None if run.uses_own_cache else measures.cold_first_call_s
    costs = {"cold": cold_s, "warm": measures.warm_first_call_s}
    if cold_s is not None and is_first_use_told(measures):
        costs["own"] = cold_s - (measures.cold_first_use_s or 0.0)
    blocks = [kept for process in run.processes if (kept := process.samples(EAGER).ordered())]
    eager = statistics.level_interval(measures.eager.median, blocks) if measures.eager else None
    found = {name: break_even(cost_s, eager, measures.speedup) for name, cost_s in costs.items()}
    return {name: even for name, even in found.items() if even}


def noise_floor_text(noise_floor: float) -> str:
    """What a noise floor means, and where it comes from."""
    share = units.percent(noise_floor)
    if noise_floor > NOISE_FLOOR:
        return f"Noise floor {share}, by this machine's calibration: a smaller difference from eager is not called one."
    return f"Noise floor {share}, the least that is assumed: a smaller difference from eager is not called one."


def break_even_word(verdict: Verdict) -> str:
    """The cold break-even as a value; empty for what is wrong or not compiled, which has none to speak of."""
    if "cold" in verdict.break_evens:
        return break_even_text(verdict.break_evens["cold"])
    if verdict.kind == "faster":
        return "not known"
    return {"too_noisy": "too noisy to tell", "slower": "never", "no_difference": "never"}.get(verdict.kind, "")


def is_as_narrow_as_asked(speedup: Interval) -> bool:
    """Whether the interval of the whole run is as narrow as it was to become, to the digit that is shown.

    No option asks for another width than the default.
    """
    return round(speedup.half_width, 3) <= Measurement.interval


def interval_text(interval: Interval | None) -> str:
    """A speedup as people read it: "1.84× ± 0.02"."""
    if interval is None:
        return "–"
    return units.speedup(interval.value, interval.spread)


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
        where = words.where(error.file, error.line)
        reasons.append(f"It ended {_when(run, when_failed(error))}".rstrip() + f"{where}: {_first_line(error.message)}")
        if error.hint:
            reasons.append(error.hint)
    elif run.current_stage is not None:
        reasons.append(f"It ended {_when(run, words.when(run.current_stage.name)) or 'before its first stage'}.")
    return tuple(reasons)


def _when(run: Run, text: str) -> str:
    """When a run ended: "while compiling", with the start where it was the second one."""
    return f"{text} in the warm start" if text and len(run.processes) > 1 else text


def _of_sizes(sentence: str, measures: Measures) -> str:
    """A sentence on the speedup, with the size that it is of, and what other sizes of a sweep came to."""
    if not measures.shapes:
        return sentence
    timed = [row.speedup for row in measures.shapes[1:] if row.speedup]
    others = [found.value for found in timed if statistics.is_told(found)]
    text = f"{sentence.removesuffix('.')} at {measures.shapes[0].label}"
    if others:
        which = "other" if len(others) == len(timed) else f"{len(others)} of {len(timed)} other"
        low, high = units.ratio(min(others)), units.ratio(max(others))
        text += f"; at {which} sizes {low}" + (f" to {high}" if low != high else "")
    if noisy := len(timed) - len(others):
        text += f"; {units.plural(noisy, 'size')} {'is' if noisy == 1 else 'are'} too noisy to tell"
    return f"{text}."


def slower_sizes_reason(measures: Measures, noise_floor: float) -> str:
    """The sizes of a sweep at which eager is faster, where the first one's speedup decides the verdict."""
    slower = [row for row in measures.shapes[1:] if statistics.difference(row.speedup, noise_floor) == "slower"]
    if not slower:
        return ""
    return f"Slower than eager at {', '.join(f'{row.label} ({interval_text(row.speedup)})' for row in slower)}."


def _timing(kind: str, speedup: Interval | None, noise_floor: float) -> str:
    if speedup is None:
        return "Too few timed calls to tell a difference."
    text = interval_text(speedup)
    if kind == "too_noisy":
        low, high = units.ratio(speedup.low), units.ratio(speedup.high)
        return f"Too noisy to tell: between {low} and {high} of eager's speed."
    if kind == "faster":
        return f"Faster than eager: {text}."
    if kind == "slower":
        return f"Slower than eager: {text}."
    # which would be called a difference, were it not for the floor
    within = f", within the noise floor of {units.percent(noise_floor)}" if not speedup.contains(1.0) else ""
    return f"No measurable difference from eager: {text}{within}."


def _evidence(
    run: Run, measures: Measures, break_evens: Mapping[str, BreakEven] | None = None, noise_floor: float = NOISE_FLOOR
) -> tuple[str, ...]:
    found = [
        numbers_reason(measures),
        _time_reason(measures),
        slower_sizes_reason(measures, noise_floor),
        _means_reason(measures),
        disagreement_reason(measures),
        *unrest_reasons(run),
        _compile_reason(run, measures, break_evens or {}),
        *story_reasons(run),
    ]
    return tuple(reason for reason in found if reason)


def _apart_text(numbers: Agreement) -> str:
    """What differs, by how much, and where the compiler begins to be wrong."""
    stage = f"; the first backend that differs is {numbers.backend}" if numbers.backend else ""
    error = "" if numbers.max_abs_error is None else f" by up to {numbers.max_abs_error:.3g}"
    verb = "differs" if numbers.subject in ("loss", "state", "update") else "differ"
    return f"{numbers.subject} {verb} from eager{error}{stage}"


def numbers_reason(measures: Measures) -> str:
    """What is known of the results' correctness; empty where they match."""
    numbers = measures.numerics
    detail = f" {numbers.detail}" if numbers.detail else ""
    if numbers.verdict == "differ":
        # what differs stands in the verdict itself
        return numbers.detail
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
    return (
        f"Median time per call {units.duration(eager.median)} eager, {units.duration(compiled.median)} compiled; "
        f"95 % interval of the speedup {speedup.low:.3f} to {speedup.high:.3f} from {compiled.samples} blocks"
        f"{_stop_text(measures.stopped_by, speedup)}."
        + ("" if speedup.contains(eager.median / compiled.median) else WANDERED)
        + _processes_text(measures)
    )


def _processes_text(measures: Measures) -> str:
    """Each process's own median where they differ, since one of both tells neither."""
    sides = (
        ("eager", measures.eager),
        ("compiled", measures.compiled),
        ("eager latency", measures.eager_latency),
        ("compiled latency", measures.compiled_latency),
    )
    apart = [
        f"{name} {', '.join(f'{units.duration(median)} {start}' for start, median in found.processes)}"
        for name, found in sides
        if found and found.is_apart
    ]
    return f" The two processes' medians differ: {'; '.join(apart)}." if apart else ""


def _stop_text(stopped_by: str | None, speedup: Interval) -> str:
    """How the timing ended. A process stops by what it expects of both, and they may come out farther apart."""
    if stopped_by == "budget":
        return ", stopped at the end of the budget"
    if stopped_by != "interval":
        return ""
    if is_as_narrow_as_asked(speedup):
        return ", stopped once the interval was narrow enough"
    asked, came_to = units.percent(Measurement.interval), units.percent(speedup.half_width)
    return f"; each process stopped when it expected ± {asked}, and together they came to ± {came_to}"


def _means_reason(measures: Measures) -> str:
    """Where single calls vary so that their mean tells another speedup than their median."""
    mean, speedup = measures.speedup_of_means, measures.speedup
    if mean is None or speedup is None or speedup.contains(mean) or abs(math.log(mean / speedup.value)) < MEANS_APART:
        return ""
    return (
        f"By the mean of single calls instead of their median it is {units.ratio(mean)}: some calls take longer than "
        "most, by the model or by what else the machine did, and a loop waits for those too."
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


def is_first_use_told(measures: Measures) -> bool:
    """Whether the cold first call paid for more than the model."""
    return (measures.cold_first_use_s or 0.0) > FIRST_USE_SHARE * (measures.cold_first_call_s or 0.0)


def _compile_reason(run: Run, measures: Measures, break_evens: Mapping[str, BreakEven]) -> str:
    if measures.cold_first_call_s is None:
        return ""
    own = run.uses_own_cache
    text = f"First call {units.duration(measures.cold_first_call_s)} {'with your own cache' if own else 'cold'}"
    if measures.warm_first_call_s is not None:
        second = "in a second process" if own else "with a warm cache"
        text += f", {units.duration(measures.warm_first_call_s)} {second}"
    if is_first_use_told(measures):
        first, use = "first" if own else "cold", units.duration(measures.cold_first_use_s)
        text += f" (of the {first} one {use} went into preparing the C++ compiler)"
    if "cold" in break_evens:
        text += f"; {pays_off_text(break_evens['cold'], break_evens.get('own'))}"
    return text + "."


def story_reasons(run: Run) -> list[str]:
    """What the compiler left out or did again."""
    story = run.story
    if story is None:
        return []
    reasons = []
    if story.graphs and story.failed_compiles:
        text = failure_text(story.failed_compiles[0])
        reasons.append(f"{text[0].upper()}{text[1:]}: it runs eager.")
    if story.break_count:
        reasons.append(f"{units.plural(story.break_count, 'graph break')}{places_text(story)}.")
    if story.recompile_count:
        reasons.append(f"{units.plural(story.recompile_count, 'recompile')}.")
    if story.recompile_limits:
        reasons.append("The recompile limit was reached: for other inputs the function runs eager.")
    if around := step_sentence(story):
        reasons.append(around)
    if skips := story.skipped_cudagraphs:
        reasons.append(f"CUDA graphs were skipped: {skips[0].reason or 'no reason given'}.")
    return reasons


def places_text(story: ProcessStory) -> str:
    """Where the graph breaks are, behind their number: ", all at net.py:9", " at 2 places"."""
    places, rows = story.break_places, story.graph_breaks.values()
    if not places:
        return ""
    if not all(row.event.file and row.event.line for row in rows):
        return f" at {units.plural(len(places), 'known place')}"
    if len(places) > 1:
        return f" at {units.plural(len(places), 'place')}"
    file, line = places[0]
    return f"{'' if story.break_count == 1 else ', all'} at {words.place(file, line)}"


def step_sentence(story: ProcessStory) -> str:
    """What of the training step around the model was left or compiled again; empty where nothing was."""
    breaks = sum(row.count for row in story.step_breaks.values())
    recompiles = sum(row.count for row in story.step_recompiles.values())
    parts = [units.plural(count, name) for count, name in ((breaks, "graph break"), (recompiles, "recompile")) if count]
    if not parts:
        return ""
    verb = "lies" if breaks + recompiles == 1 else "lie"
    return (
        f"{' and '.join(parts)} {verb} in the training step around the model, at the backward pass or in torch's "
        "optimizer: that belongs to compiling a whole step, and nothing in the script can change it."
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
