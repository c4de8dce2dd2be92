"""Which two configurations of a comparison are worth a play-off."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compilescope.domain.comparison import Comparison, groups_of, ranked
from compilescope.domain.playoff import between
from compilescope.domain.ranking import Entry, Ranking, relative
from compilescope.domain.run import Run

MOST = 2


def next_pair(comparison: Comparison, among: Collection[str]) -> tuple[Run, Run] | None:
    """A challenger and the run that would be recommended without it; None where nothing is left to play for.

    The two call different code as far as that is known, are both shown to be faster than eager, cannot be told apart,
    have not met, and the interval of their ratio reaches beyond the noise floor, so that more timing can matter. Of
    several challengers the one with the highest speedup is the first.

    The rule for time: each play-off gets as long as one run's timing; there are at most two, and at most one to two
    runs that finished, so that a comparison takes no more than half as long again.

    `among`: the ids of runs that were made here and now. Where a run reached the recompile limit, what it calls depends
    on what its process compiled before, and nothing else may be compiled there.
    """
    finished = sum(run.outcome == "finished" for run in comparison.runs)
    if len(comparison.play_offs) >= min(MOST, finished // 2):
        return None
    for group in groups_of(comparison.runs):
        _, ranking = ranked(group, comparison)
        runs = {entry: run for entry in (ranking.chosen, *ranking.ties) if entry and (run := _player(entry, among))}
        challenger = _challenger(ranking, runs, comparison)
        if ranking.chosen and challenger:
            return runs[challenger], runs[ranking.chosen]
    return None


def _player(entry: Entry, among: Collection[str]) -> Run | None:
    """The run that stands for an entry."""
    limited = any(process.recompile_limits for run in entry.runs for process in run.processes)
    return None if limited else next((run for run in entry.runs if run.id in among), None)


def _challenger(ranking: Ranking, runs: Mapping[Entry, Run], comparison: Comparison) -> Entry | None:
    chosen = ranking.chosen
    if chosen is None or chosen not in runs:
        return None
    open_ones = [entry for entry in ranking.ties if entry in runs and _is_open(chosen, entry, comparison)]
    return max(open_ones, key=lambda entry: entry.speedup.value if entry.speedup else 0.0, default=None)


def _is_open(one: Entry, two: Entry, comparison: Comparison) -> bool:
    if between(comparison.play_offs, one.ids, two.ids) or one.speedup is None or two.speedup is None:
        return False
    ratio = relative(one.speedup, two.speedup)
    return max(ratio.high, 1 / ratio.low) > 1 + comparison.noise_floor
