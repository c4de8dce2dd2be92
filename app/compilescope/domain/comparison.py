"""Several configurations of one workload beside eager: a verdict on each, and which one to use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compilescope.domain import statistics, units
from compilescope.domain.config import Config
from compilescope.domain.faults import HINT, fault
from compilescope.domain.matrix import workload_name
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR, Interval, is_settled
from compilescope.domain.verdict import (
    KINDS,
    Verdict,
    disagreement_reason,
    interval_text,
    judge,
    numbers_reason,
    slower_sizes_reason,
    story_reasons,
    unrest_reasons,
)

__all__ = [
    "KINDS",
    "Comparison",
    "Recommendation",
    "Verdict",
    "interval_text",
    "judge",
    "recommend",
    "relative",
]

LEAVE_IT, NO_ANSWER = "Leave it eager", "No answer yet"
LONG_JOB_S, MINUTE_S = 36_000.0, 60.0
MOST_NAMED = 4
# the warnings with which the worker ends a timing in which no block counts
GIVEN_UP = ("no_step_counts", "recompiles_while_timed", "not_comparable")
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
class Recommendation:
    """What to use; `config` None means eager. `caveats` are what to know before relying on it.

    `scope`: the workload that it holds for, where there are several; `others`: what holds for the other ones.
    """

    config: Config | None
    summary: str
    snippet: str = ""
    caveats: tuple[str, ...] = ()
    run_id: str | None = None
    scope: str = ""
    others: tuple[Recommendation, ...] = ()


def recommend(comparison: Comparison) -> Recommendation | None:
    """Which configuration to use; None until a run is over.

    Only what is finished, correct and shown to be faster can be recommended. Of those than which the best was not shown
    to be faster, the simplest configuration wins. Each phase and precision is a question of its own, with its own
    eager: the one that most runs have is answered first, and the others behind it.
    """
    try:
        return _recommend(comparison)
    except Exception as error:  # a fault of ours, whatever it is
        return Recommendation(config=None, summary=f"{fault('Nothing can be recommended', error)} {HINT}")


def _recommend(comparison: Comparison) -> Recommendation | None:
    groups = _groups([run for run in comparison.runs if run.is_over and not run.is_trace])
    found = [_recommend_one(group, comparison.noise_floor) for group in groups]
    if len(found) < 2:
        return found[0] if found else None
    named = [replace(one, scope=workload_name(group[0].workload)) for one, group in zip(found, groups, strict=True)]
    rest = " ".join(f"{one.scope[0].upper()}{one.scope[1:]}: {_briefly(one)}" for one in named[1:])
    summary = f"{named[0].summary} This holds for {named[0].scope}. {rest}"
    return replace(named[0], summary=summary, others=tuple(named[1:]))


def _recommend_one(over: Sequence[Run], noise_floor: float) -> Recommendation:
    """The answer for runs of one workload."""
    verdicts = [judge(run, noise_floor) for run in over]
    faster = {run: verdict for run, verdict in zip(over, verdicts, strict=True) if verdict and verdict.kind == "faster"}
    if not faster:
        return Recommendation(config=None, summary=_leave_it(over, verdicts))
    chosen, best = choose(list(faster), noise_floor)
    return Recommendation(
        config=chosen.config,
        summary=_choice(chosen, best, faster[chosen], len(over)),
        snippet=chosen.config.snippet,
        caveats=_caveats(chosen, noise_floor),
        run_id=chosen.id,
    )


def choose(faster: Sequence[Run], noise_floor: float) -> tuple[Run, Run]:
    """Of runs that are faster than eager: the one to use, and the fastest."""
    best = max(faster, key=lambda run: _speedup(run).value)
    alike = [run for run in faster if not is_apart(_speedup(best), _speedup(run), noise_floor)]
    return min(alike, key=_simplicity), best


def _briefly(found: Recommendation) -> str:
    """The first sentence alone; what it says more stands with that workload's own rows."""
    first = found.summary.partition(". ")[0].partition("; ")[0].removesuffix(".")
    return f"{first[0].lower()}{first[1:]}."


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs by what they measure, the largest group first."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if group[0].workload == run.workload), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return sorted(groups, key=len, reverse=True)


def _speedup(run: Run) -> Interval:
    return measure(run).speedup or Interval(value=1.0, low=1.0, high=1.0)


def _simplicity(run: Run) -> tuple[int, int, float]:
    config = run.config
    mode = _MODE_ORDER.index(config.mode) if config.mode in _MODE_ORDER else len(_MODE_ORDER)
    extras = (config.backend != "inductor") + bool(config.options) + (config.dynamic is not None) + config.fullgraph
    extras += config.scope == "step"
    return max(mode, 1), extras, measure(run).cold_first_call_s or 0.0


def _choice(chosen: Run, best: Run, verdict: Verdict, count: int) -> str:
    measures = measure(chosen)
    text = f"Use {chosen.label}: {interval_text(measures.speedup)} against eager"
    if chosen is not best:
        text += f"; {best.label} measured {interval_text(_speedup(best))}, which is no provable gain over it"
    elif count > 1:
        text += f", the best of {count}"
    if verdict.pays_off:
        text += f". It {verdict.pays_off}"
        text += saving_text(_speedup(chosen), measures.cold_first_call_s or 0.0)
    return text + "."


def shown_range(speedups: Sequence[Interval]) -> tuple[float, float]:
    """The lowest and the highest speedup that a chart shows, eager's 1 among them.

    An interval that says nothing must not press those that do into a corner.
    """
    centres = [1.0, *(found.value for found in speedups)]
    ends = [end for found in speedups for end in (found.low, found.high)]
    return max(min([*centres, *ends]), 0.5 * min(centres)), min(max([*centres, *ends]), 1.5 * max(centres))


def saving_text(speedup: Interval, first_call_s: float) -> str:
    """What a long job would save, between the ends of the interval; nothing to say where that is no minute."""
    least, most = (LONG_JOB_S * (1 - 1 / ratio) - first_call_s for ratio in (speedup.low, speedup.high))
    if most < MINUTE_S:
        return ""
    low, high = units.duration(least), units.duration(most)
    span = f"at most {high}" if least < MINUTE_S else high if low == high else f"{low} to {high}"
    return f"; of {units.duration(LONG_JOB_S)} in eager it saves {span}"


def _leave_it(runs: Sequence[Run], verdicts: Sequence[Verdict | None]) -> str:
    known = [(run, verdict) for run, verdict in zip(runs, verdicts, strict=True) if verdict]
    if len(known) < len(runs):
        lost = units.plural(len(runs) - len(known), "run")
        return f"Nothing can be recommended, since CompileScope failed to judge {lost}. {HINT}"
    if all(run.outcome != "finished" for run, _ in known):
        return "Nothing can be recommended, since no run finished."
    still_open = [run for run, verdict in known if _is_open(run, verdict)]
    is_open, given_up = bool(still_open), [_why_given_up(run) for run in still_open]
    rest = " A longer measurement, or a quieter machine, could still tell otherwise." if is_open else ""
    if is_open and all(given_up):
        # more of the same would end the same way
        rest = " " + " ".join(dict.fromkeys(given_up))
    # what the noise may hide is no reason to leave it
    head = NO_ANSWER if is_open else LEAVE_IT
    if len(known) == 1:
        return f"{head}. {_named(known)}{rest}"
    if len(known) <= MOST_NAMED:
        return f"{head}: no configuration was shown to be faster. {_named(known)}{rest}"
    counts = Counter(_kind_word(run, verdict) for run, verdict in known)
    listed = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return f"{head}: of {len(known)} configurations none was shown to be faster ({listed}).{rest}"


def _why_given_up(run: Run) -> str:
    """Why the timing ended before its time, and what to do; empty where it did not."""
    rows = [row for process in run.processes for row in process.warnings if row.code in GIVEN_UP]
    return f"{rows[0].message} {rows[0].hint}".strip() if rows else ""


def _is_open(run: Run, verdict: Verdict) -> bool:
    return verdict.kind == "no_difference" and not is_settled(measure(run).speedup)


def _kind_word(run: Run, verdict: Verdict) -> str:
    if verdict.kind == "no_difference" and measure(run).speedup is None:
        return "without a speedup"
    if _is_open(run, verdict):
        return "too noisy to tell"
    return verdict.kind.replace("_", " ")


def _named(known: Sequence[tuple[Run, Verdict]]) -> str:
    return " ".join(f"{run.label}: {verdict.summary}" for run, verdict in known)


def _caveats(run: Run, noise_floor: float) -> tuple[str, ...]:
    measures = measure(run)
    found = [
        numbers_reason(measures),
        slower_sizes_reason(measures, noise_floor),
        disagreement_reason(measures),
        *unrest_reasons(run),
        _memory_caveat(measures),
        *story_reasons(run),
    ]
    if measures.cold_first_call_s is not None and measures.cold_first_call_s > 30:
        cache = "your own cache" if run.uses_own_cache else "a cold cache"
        found.append(f"The first call takes {units.duration(measures.cold_first_call_s)} with {cache}.")
    return tuple(caveat for caveat in found if caveat)


def _memory_caveat(measures: Measures) -> str:
    eager, compiled = measures.eager_peak_bytes, measures.compiled_peak_bytes
    if not eager or not compiled or compiled < 1.2 * eager:
        return ""
    return f"Peak memory grows from {units.size(eager)} to {units.size(compiled)}."


def relative(interval: Interval, base: Interval) -> Interval:
    """One ratio to eager over another that was measured apart from it: their errors add up as independent ones do."""
    centre = math.log(interval.value / base.value)
    below = math.hypot(math.log(interval.value / interval.low), math.log(base.high / base.value))
    above = math.hypot(math.log(interval.high / interval.value), math.log(base.value / base.low))
    return Interval(value=math.exp(centre), low=math.exp(centre - below), high=math.exp(centre + above))


def is_apart(one: Interval, two: Interval, noise_floor: float) -> bool:
    """Whether two speedups over eager are shown to differ. Intervals that overlap may still be apart: their ratio is
    surer than what their ends, each at its worst, leave open."""
    return statistics.difference(relative(one, two), noise_floor) is not None
