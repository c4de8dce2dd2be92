"""Configurations of one workload beside each other: which is shown to be faster than which, and which tie.

Each speedup over eager has an interval of its own, which is right 95 times in 100. Of several, the fastest is also the
luckiest, so that its own interval promises too much (the winner's curse). What is claimed of one that was chosen among
k therefore holds for all k together: their intervals, each of 1 - 0.05 / k [1]. That the best is faster than others is
claimed by comparing it with each of them, k - 1 comparisons at once, as in multiple comparisons with the best [2].
Where a play-off has timed two of them in turns, it says how they compare, and not their two speedups over eager.

[1] Dunn: Multiple Comparisons among Means, Journal of the American Statistical Association 56, 1961.
[2] Hsu: Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best, Annals of Statistics 12,
    1984.
[3] Birge: The Calculation of Errors by the Method of Least Squares, Physical Review 40, 1932.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilescope.domain import statistics
from compilescope.domain.codekey import code_key
from compilescope.domain.measures import measure
from compilescope.domain.playoff import PlayOff, between
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval
from compilescope.domain.verdict import Verdict

# verdicts on code that is compiled and right, so that it may be used
_USABLE = ("too_noisy", "slower", "faster", "no_difference")
_Z = 1.959964


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Runs that call the same generated code, the simplest configuration first; one run where that is not known.

    `speedup`: of all of them together. `is_faster`: the verdict on one of them at least.
    """

    runs: tuple[Run, ...]
    speedup: Interval | None
    is_faster: bool

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(run.id for run in self.runs)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """`count`: the entries that were timed; `has_same_code`: whether one of all entries stands for several runs.

    `best`: the one with the highest speedup, unless a play-off shows another to be faster than that one.
    `chosen`: the simplest of those that tie with the `best`.

    `ties`: the others of those. `undecided`: not shown to be faster than eager, and may yet be as fast as the best.
    `by_chance`: faster than eager by their own intervals, but not once those allow for the choice.
    """

    count: int
    has_same_code: bool = False
    chosen: Entry | None = None
    best: Entry | None = None
    ties: tuple[Entry, ...] = ()
    undecided: tuple[Entry, ...] = ()
    by_chance: tuple[Entry, ...] = ()


def rank(judged: Mapping[Run, Verdict], noise_floor: float, play_offs: Sequence[PlayOff] = ()) -> Ranking:
    """The ranking of runs of one workload, each with its verdict."""
    entries = _entries({run: verdict for run, verdict in judged.items() if verdict.kind in _USABLE})
    timed = [(entry, entry.speedup) for entry in entries if entry.speedup]
    count = len(timed)
    shown = [(entry, own) for entry, own in timed if entry.is_faster]
    faster = [(entry, own) for entry, own in shown if _is_faster(allowing_for(own, count), noise_floor)]
    is_shared = any(len(entry.runs) > 1 for entry in entries)
    if not faster:
        return Ranking(count=count, has_same_code=is_shared, by_chance=tuple(entry for entry, _ in shown))
    first, highest = max(faster, key=lambda found: found[1].value)

    def is_above(ratio: Interval | None) -> bool:
        return ratio is not None and _is_faster(allowing_for(ratio, count - 1), noise_floor)

    def is_below_first(entry: Entry, own: Interval | None) -> bool:
        return own is not None and is_above(_met(first, entry, play_offs) or relative(highest, own))

    known = [entry for entry, _ in faster]
    met = [entry for entry in known if entry is first or _met(first, entry, play_offs)]
    level = [entry for entry, own in faster if entry in met or not is_below_first(entry, own)]
    # who loses a play-off is out; where all have lost one, they contradict each other
    alike = [one for one in level if not any(is_above(_met(other, one, play_offs)) for other in level)] or level
    best = first if first in alike else max(alike, key=lambda entry: entry.speedup.value if entry.speedup else 0.0)
    chosen = min(alike, key=lambda entry: _simplicity(entry.runs[0]))
    return Ranking(
        count=count,
        has_same_code=is_shared,
        chosen=chosen,
        best=best,
        ties=tuple(entry for entry in alike if entry is not chosen),
        undecided=tuple(entry for entry in entries if entry not in known and not is_below_first(entry, entry.speedup)),
    )


def choose(faster: Sequence[Run], noise_floor: float) -> Run:
    """Of runs that are faster than eager, the simplest of those that tie with the fastest."""
    best = max(map(_speedup, faster), key=lambda found: found.value)
    others = len(faster) - 1
    alike = [run for run in faster if _speedup(run) is best or not is_apart(best, _speedup(run), noise_floor, others)]
    return min(alike, key=_simplicity)


def relative(interval: Interval, base: Interval) -> Interval:
    """One ratio to eager over another that was measured apart from it: their errors add up as independent ones do."""
    centre = math.log(interval.value / base.value)
    below = math.hypot(math.log(interval.value / interval.low), math.log(base.high / base.value))
    above = math.hypot(math.log(interval.high / interval.value), math.log(base.value / base.low))
    return Interval(value=math.exp(centre), low=math.exp(centre - below), high=math.exp(centre + above))


def is_apart(one: Interval, two: Interval, noise_floor: float, comparisons: int = 1) -> bool:
    """Whether two speedups over eager are shown to differ, as one of so many `comparisons`.

    Intervals that overlap may still be apart: their ratio is surer than what their ends, each at its worst, leave open.
    """
    return statistics.difference(allowing_for(relative(one, two), comparisons), noise_floor) is not None


def allowing_for(interval: Interval, count: int) -> Interval:
    """The interval as wide as it must be for `count` such intervals to be right together as often as this one alone.

    Its tails are long, since a run has few processes: like those of Student's distribution with two degrees of freedom.
    """
    if count < 2:
        return interval
    outside = 1 - interval.confidence
    wider = _quantile(outside / count) / _quantile(outside)
    low, high = (interval.value * (end / interval.value) ** wider for end in (interval.low, interval.high))
    return Interval(value=interval.value, low=low, high=high, confidence=1 - outside / count)


def pooled(intervals: Sequence[Interval]) -> Interval:
    """What several measurements of the same thing say together: by inverse variances, and as much wider as they
    contradict each other (Birge's ratio [3])."""
    if len(intervals) == 1:
        return intervals[0]
    logs = [math.log(one.value) for one in intervals]
    halves = [max(math.log(one.high / one.low) / 2, 1e-9) for one in intervals]
    weights = [1 / half**2 for half in halves]
    centre = math.fsum(map(math.prod, zip(weights, logs, strict=True))) / math.fsum(weights)
    misfit = math.fsum((_Z * (log - centre) / half) ** 2 for log, half in zip(logs, halves, strict=True))
    half = max(1.0, math.sqrt(misfit / (len(logs) - 1))) / math.sqrt(math.fsum(weights))
    return Interval(value=math.exp(centre), low=math.exp(centre - half), high=math.exp(centre + half))


def _entries(judged: Mapping[Run, Verdict]) -> list[Entry]:
    groups: dict[str, list[Run]] = {}
    for run in judged:
        groups.setdefault(code_key(run) or f"run {run.id}", []).append(run)
    return [
        Entry(
            runs=tuple(sorted(runs, key=_simplicity)),
            speedup=pooled(known) if (known := [found for run in runs if (found := measure(run).speedup)]) else None,
            is_faster=any(judged[run].kind == "faster" for run in runs),
        )
        for runs in groups.values()
    ]


def _met(one: Entry, two: Entry, play_offs: Sequence[PlayOff]) -> Interval | None:
    """How many times as fast the code of one was in a play-off; None where there was none."""
    found = between(play_offs, one.ids, two.ids)
    return found.ratio if found else None


def _is_faster(interval: Interval, noise_floor: float) -> bool:
    return statistics.difference(interval, noise_floor) == "faster"


def _speedup(run: Run) -> Interval:
    return measure(run).speedup or Interval(value=1.0, low=1.0, high=1.0)


def _simplicity(run: Run) -> tuple[int, int, float]:
    """Fewer ways to go wrong come first: no CUDA graphs, no autotuning, few arguments, a short first call."""
    config = run.config
    extras = (config.backend != "inductor") + (config.dynamic is not None) + config.fullgraph + (config.scope == "step")
    return (
        config.wants_cudagraphs + 2 * config.wants_autotuning,
        extras + len(config.options or {}),
        measure(run).cold_first_call_s or 0.0,
    )


def _quantile(outside: float) -> float:
    """Of Student's distribution with two degrees of freedom, beyond which this share lies to both sides together."""
    below = 1 - outside / 2
    return (2 * below - 1) / math.sqrt(2 * below * (1 - below))
