"""A play-off: two configurations timed in turns in one process, where their own runs could not tell them apart.

Two speedups that were measured apart carry the errors of both runs, and those of eager twice. Blocks that follow each
other in one process meet the machine in the same mood, so that their ratio is several times as sure. Both are compiled
anew for it; where that chooses other kernels than the runs had, the ratio is of those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilescope.domain.fields import build
from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval

NO_RATIO = "too few of its blocks counted"


@dataclass(frozen=True, kw_only=True)
class PlayOff:
    """`one` and `two` are runs of a comparison, by id.

    `ratio`: how many times as fast `one` was as `two`; None where nothing came of it, and `problem` says why, as half
    a sentence.
    """

    one: str = ""
    two: str = ""
    ratio: Interval | None = None
    problem: str = ""

    @classmethod
    def from_json(cls, value: Any) -> PlayOff:
        """Raises ValueError where the value is none."""
        found: PlayOff = build(cls, value)
        ratio = found.ratio
        if not (found.one and found.two) or (ratio and not 0 < ratio.low <= ratio.value <= ratio.high):
            raise ValueError("a play-off has two runs, and a ratio within its interval")
        return found

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def renamed(self, ids: Mapping[str, str]) -> PlayOff:
        """The same of runs that have other ids."""
        return PlayOff(
            one=ids.get(self.one, self.one), two=ids.get(self.two, self.two), ratio=self.ratio, problem=self.problem
        )


def contest(run_id: str, one: Run, two: Run) -> Run:
    """The run that a play-off is while it goes on; no row of any table."""
    return Run(run_id, config=one.config, workload=two.workload, label=f"Play-off: {two.label} against {one.label}")


def outcome(run: Run, one: Run, two: Run) -> PlayOff | None:
    """What came of a play-off whose run is over; None where it was stopped, so that it may be made again."""
    if run.outcome == "stopped":
        return None
    if run.outcome != "finished":
        lines = run.error.message.splitlines() if run.error else []
        return PlayOff(one=one.id, two=two.id, problem=lines[0].rstrip(".") if lines else f"it {run.outcome}")
    # its two sides are those of every run: `two` stands where eager stands elsewhere
    ratio = measure(run).speedup
    return PlayOff(one=one.id, two=two.id, ratio=ratio, problem="" if ratio else NO_RATIO)


def between(play_offs: Iterable[PlayOff], one: Collection[str], two: Collection[str]) -> PlayOff | None:
    """The play-off between any of these runs and any of those, the last where there are several, seen from `one`."""
    found = None
    for row in play_offs:
        if row.one in one and row.two in two:
            found = row
        elif row.two in one and row.one in two:
            found = PlayOff(one=row.two, two=row.one, ratio=_inverse(row.ratio), problem=row.problem)
    return found


def _inverse(ratio: Interval | None) -> Interval | None:
    if ratio is None:
        return None
    return Interval(value=1 / ratio.value, low=1 / ratio.high, high=1 / ratio.low, confidence=ratio.confidence)
