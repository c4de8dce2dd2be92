"""How long a run is going to take: as an earlier one of the same script did, or else by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compilescope.domain.config import Config
from compilescope.domain.matrix import Row
from compilescope.domain.workload import Workload

# by rule: starting Python and torch, building the model, its checks, twice
START_S = 9.0
# and the first call with an empty cache, of a model of middling size
COMPILE_S = {"reduce-overhead": 20.0, "max-autotune": 60.0, "max-autotune-no-cudagraphs": 60.0}
COMPILE_DEFAULT_S = 15.0
OTHER_BACKEND_S = 4.0
# the timed part that ended by this share of its budget had its interval before
ENDED_EARLY = 0.9


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A run that finished. `whole_s`: from its start to its end; `timed_s`: of that, the timing; `budget_s` then."""

    config: Config
    workload: Workload
    whole_s: float
    timed_s: float
    budget_s: float

    def expected_s(self, budget_s: float) -> float:
        """What the same would take with this budget for the timing."""
        is_full = self.timed_s >= ENDED_EARLY * self.budget_s
        timed_s = budget_s if is_full else min(self.timed_s, budget_s)
        return max(self.whole_s - self.timed_s, 0.0) + timed_s


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds, roughly, and what they come from: "as before", "after a similar run", "by rule"."""

    seconds: float
    basis: str


def estimate(row: Row, budget_s: float, earlier: Sequence[Earlier]) -> Estimate:
    """`earlier`: finished runs of the same script, the newest first."""
    alike = [found for found in earlier if _is_alike(row, found)]
    if not alike:
        return Estimate(seconds=_by_rule(row, budget_s), basis="by rule")
    # of those that have as much in common, the newest
    best = max(alike, key=lambda found: _in_common(row, found))
    is_same = _in_common(row, best) == _MOST_IN_COMMON
    return Estimate(seconds=best.expected_s(budget_s), basis="as before" if is_same else "after a similar run")


def total_s(seconds: Iterable[float], lanes: int = 1) -> float:
    """How long runs of so many seconds each take together, on so many devices at once."""
    ends = [0.0] * max(lanes, 1)
    for length in seconds:
        ends[ends.index(min(ends))] += length
    return max(ends)


def rough(seconds: float) -> str:
    """A forecast, no more exact than it is: "30 s", "2 min", "1.5 h"."""
    if seconds < 90:
        return f"{max(round(seconds / 10), 1) * 10} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 1800) / 2:g} h"


def _is_alike(row: Row, found: Earlier) -> bool:
    """What decides the order of magnitude: what compiles, whether backwards too, and where."""
    mode, other = row.config.mode or "default", found.config.mode or "default"
    same = (row.config.backend, mode, row.workload.phase) == (found.config.backend, other, found.workload.phase)
    return same and _kind(row.workload.device) == _kind(found.workload.device)


_MOST_IN_COMMON = 3


def _in_common(row: Row, found: Earlier) -> int:
    own, other = row.workload, found.workload
    return sum(
        (
            row.config.label == found.config.label,
            own.precision == other.precision,
            (own.entry, own.inputs, own.arguments) == (other.entry, other.inputs, tuple(other.arguments)),
        )
    )


def _kind(device: str | None) -> str:
    return (device or "").partition(":")[0]


def _by_rule(row: Row, budget_s: float) -> float:
    compile_s = COMPILE_S.get(row.config.mode or "", COMPILE_DEFAULT_S)
    if row.config.backend != "inductor":
        compile_s = OTHER_BACKEND_S
    # a graph for the way back as well
    return 2 * START_S + compile_s * (2 if row.workload.phase == "training" else 1) + budget_s
