"""Several configurations of one workload beside eager: a verdict on each, and which one to use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from compilescope.domain import units
from compilescope.domain.breakeven import BreakEven
from compilescope.domain.config import Config
from compilescope.domain.faults import fault
from compilescope.domain.matrix import workload_name
from compilescope.domain.measures import Measures, measure
from compilescope.domain.playoff import PlayOff
from compilescope.domain.ranking import Ranking, allowing_for, rank
from compilescope.domain.run import Run
from compilescope.domain.standing import verdict_word
from compilescope.domain.statistics import NOISE_FLOOR, Interval
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
    "Outcome",
    "Recommendation",
    "Rival",
    "Verdict",
    "interval_text",
    "judge",
    "recommend",
    "shown_range",
]

# the warnings with which the worker ends a timing in which no block counts
GIVEN_UP = ("no_step_counts", "recompiles_while_timed", "not_comparable")


@dataclass(kw_only=True)
class Comparison:
    """Runs that were asked for together. `created` is Unix time; `noise_floor` what calibration found.

    `play_offs` between the runs, as they were made.
    """

    id: str
    created: float
    runs: list[Run] = field(default_factory=list)
    noise_floor: float = NOISE_FLOOR
    play_offs: list[PlayOff] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Another configuration beside the one that is chosen, with its own speedup over eager."""

    run_id: str
    label: str
    speedup: Interval | None


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """A play-off with the labels of its two; see `PlayOff`."""

    one: str
    two: str
    ratio: Interval | None
    problem: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run came to: its verdict's kind and sentence, and the word for it."""

    run_id: str
    label: str
    kind: str
    summary: str
    word: str


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """What to use, and what that rests on; `prose` makes sentences of it. `config` None means eager.

    `kind`: use, leave_eager, no_answer (something is still open), nothing (no run finished, or `problem` says why).
    `count`: configurations that were timed, those that run the same code counted once.
    `speedup`: of the chosen run; `pooled`: of it and those of the same code together; `allowing`: that, as wide as the
    choice among `count` makes it. `ties`, `undecided`, `by_chance`: see `Ranking`.
    `meetings`: the play-offs between its runs.
    `break_even`: of the cold first call, known or not; `own_break_even`: see `Verdict`.
    `caveats`: what to know before relying on it. `given_up`: why nothing more can be measured.
    `scope`: the workload that it holds for, where there are several; `others`: what holds for the other ones.
    """

    kind: Literal["use", "leave_eager", "no_answer", "nothing"]
    config: Config | None = None
    run_id: str | None = None
    label: str = ""
    snippet: str = ""
    speedup: Interval | None = None
    pooled: Interval | None = None
    allowing: Interval | None = None
    break_even: BreakEven | None = None
    own_break_even: BreakEven | None = None
    first_call_s: float | None = None
    count: int = 0
    has_same_code: bool = False
    same_code: tuple[Rival, ...] = ()
    ties: tuple[Rival, ...] = ()
    undecided: tuple[Rival, ...] = ()
    by_chance: tuple[Rival, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    given_up: tuple[str, ...] = ()
    problem: str = ""
    caveats: tuple[str, ...] = ()
    scope: str = ""
    others: tuple[Recommendation, ...] = ()

    @property
    def is_best(self) -> bool:
        """Whether it is shown to be faster than every other one, and none is open."""
        return self.kind == "use" and self.count > 1 and not self.ties and not self.undecided


def recommend(comparison: Comparison) -> Recommendation | None:
    """Which configuration to use; None until a run is over.

    Only what is finished, correct and shown to be faster can be recommended. Where several tie, the simplest wins. Each
    phase and precision is a question of its own, with its own eager: the one that most runs have is answered first, and
    the others behind it.
    """
    try:
        return _recommend(comparison)
    except Exception as error:  # a fault of ours, whatever it is
        return Recommendation(kind="nothing", problem=fault("the choice is missing", error))


def _recommend(comparison: Comparison) -> Recommendation | None:
    groups = groups_of(comparison.runs)
    found = [_recommend_one(group, comparison) for group in groups]
    if len(found) < 2:
        return found[0] if found else None
    named = [replace(one, scope=workload_name(group[0].workload)) for one, group in zip(found, groups, strict=True)]
    return replace(named[0], others=tuple(named[1:]))


def ranked(over: Sequence[Run], comparison: Comparison) -> tuple[dict[Run, Verdict], Ranking]:
    """Verdicts on runs of one workload, and how they rank."""
    judged = {run: verdict for run in over if (verdict := judge(run, comparison.noise_floor))}
    return judged, rank(judged, comparison.noise_floor, comparison.play_offs)


def _recommend_one(over: Sequence[Run], comparison: Comparison) -> Recommendation:
    """The answer for runs of one workload."""
    judged, ranking = ranked(over, comparison)
    if ranking.chosen is None:
        return replace(_leave_it(over, judged, ranking), meetings=_meetings(over, comparison.play_offs))
    chosen, *same_code = ranking.chosen.runs
    pooled = ranking.chosen.speedup
    return Recommendation(
        kind="use",
        config=chosen.config,
        run_id=chosen.id,
        label=chosen.label,
        snippet=chosen.config.snippet,
        speedup=measure(chosen).speedup,
        pooled=pooled,
        allowing=allowing_for(pooled, ranking.count) if pooled else None,
        break_even=judged[chosen].break_evens.get("cold"),
        own_break_even=judged[chosen].break_evens.get("own"),
        first_call_s=measure(chosen).cold_first_call_s,
        count=ranking.count,
        has_same_code=ranking.has_same_code,
        same_code=_rivals(same_code),
        ties=_rivals(run for entry in ranking.ties for run in entry.runs),
        undecided=_rivals(run for entry in ranking.undecided for run in entry.runs),
        meetings=_meetings(over, comparison.play_offs),
        outcomes=_outcomes(judged),
        caveats=_caveats(chosen, comparison.noise_floor),
    )


def _leave_it(over: Sequence[Run], judged: Mapping[Run, Verdict], ranking: Ranking) -> Recommendation:
    if len(judged) < len(over):
        lost = units.plural(len(over) - len(judged), "run")
        return Recommendation(kind="nothing", problem=f"CompileScope failed to judge {lost}.")
    if all(run.outcome != "finished" for run in over):
        return Recommendation(kind="nothing", outcomes=_outcomes(judged))
    noisy = [run for run, verdict in judged.items() if verdict.kind == "too_noisy"]
    given_up = [_why_given_up(run) for run in noisy]
    # what the noise may hide is no reason to leave it
    is_open = bool(noisy or ranking.by_chance)
    return Recommendation(
        kind="no_answer" if is_open else "leave_eager",
        count=ranking.count,
        has_same_code=ranking.has_same_code,
        by_chance=_rivals(run for entry in ranking.by_chance for run in entry.runs if judged[run].kind == "faster"),
        outcomes=_outcomes(judged),
        given_up=tuple(dict.fromkeys(given_up)) if all(given_up) and not ranking.by_chance else (),
    )


def _rivals(runs: Iterable[Run]) -> tuple[Rival, ...]:
    return tuple(Rival(run_id=run.id, label=run.label, speedup=measure(run).speedup) for run in runs)


def _meetings(over: Sequence[Run], play_offs: Iterable[PlayOff]) -> tuple[Meeting, ...]:
    labels = {run.id: run.label for run in over}
    return tuple(
        Meeting(one=labels[row.one], two=labels[row.two], ratio=row.ratio, problem=row.problem)
        for row in play_offs
        if row.one in labels and row.two in labels
    )


def _outcomes(judged: Mapping[Run, Verdict]) -> tuple[Outcome, ...]:
    return tuple(
        Outcome(
            run_id=run.id,
            label=run.label,
            kind=verdict.kind,
            summary=verdict.summary,
            word=verdict_word(run, verdict),
        )
        for run, verdict in judged.items()
    )


def groups_of(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs that are over by what they measure, the largest group first."""
    groups: list[list[Run]] = []
    for run in (run for run in runs if run.is_over and not run.is_trace):
        group = next((group for group in groups if group[0].workload == run.workload), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return sorted(groups, key=len, reverse=True)


def shown_range(speedups: Sequence[Interval]) -> tuple[float, float]:
    """The lowest and the highest speedup that a chart shows, eager's 1 among them.

    An interval that says nothing must not press those that do into a corner.
    """
    centres = [1.0, *(found.value for found in speedups)]
    ends = [end for found in speedups for end in (found.low, found.high)]
    return max(min([*centres, *ends]), 0.5 * min(centres)), min(max([*centres, *ends]), 1.5 * max(centres))


def _why_given_up(run: Run) -> str:
    """Why the timing ended before its time, and what to do; empty where it did not."""
    rows = [row for process in run.processes for row in process.warnings if row.code in GIVEN_UP]
    return f"{rows[0].message} {rows[0].hint}".strip() if rows else ""


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
