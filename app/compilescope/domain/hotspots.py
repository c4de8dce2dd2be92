"""Where the time of a call goes, eager beside compiled: kernels or operators, launches, waiting, what bounds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.measures import FAR, Measures, Summary, measure
from compilescope.domain.peaks import Peak, peak_of
from compilescope.domain.run import COMPILED, EAGER, Run

# a kernel that reaches this share of a peak is bounded by it; Nsight Compute's guide to its "speed of light" section
# calls less than 60 % of both a sign of waiting
BOUND_SHARE = 0.6
# and the call is, where such kernels make up most of the busy time
MOST = 0.5
# beyond a peak a figure says that caches served it, or that the estimate is wrong
_IMPOSSIBLE = 1.0


@dataclass(frozen=True, kw_only=True)
class Hotspot:
    """A kernel or operator. `share` is of the call; the two peak shares are None where they cannot be known.

    `flops_share`: of what the card can compute in that type; `bytes_share`: of its memory's bandwidth, at least.
    """

    name: str
    kind: str
    seconds: float
    share: float | None
    launches: float
    operator: str | None
    flops_per_s: float | None
    flops_share: float | None
    bytes_per_s: float | None
    bytes_share: float | None

    @property
    def label(self) -> str:
        """The name without a C++ template's arguments, and the operator that launched it."""
        plain = self.name.removeprefix("void ").replace("(anonymous namespace)::", "")
        name = plain.partition("<")[0].partition("(")[0].strip() or self.name
        return f"{name} · {self.operator}" if self.operator else name

    @property
    def rate(self) -> str:
        """How fast it computes, or else how fast it moves bytes; with the share of the peak where that is known."""
        if self.flops_per_s:
            text, share = rate_text(self.flops_per_s, "FLOP/s"), self.flops_share
        elif self.bytes_per_s:
            text, share = rate_text(self.bytes_per_s, "B/s"), self.bytes_share
        else:
            return "–"
        return f"{text}, {units.percent(share)}" if share else text

    @property
    def bound(self) -> str | None:
        """compute or memory, where the numbers carry it."""
        compute, memory = self.flops_share or 0.0, self.bytes_share or 0.0
        if max(compute, memory) < BOUND_SHARE:
            return None
        return "compute" if compute >= memory else "memory"


@dataclass(frozen=True, kw_only=True)
class SideTime:
    """One side's call. `whole_s` is what shares are of: the time per call, or on a CPU that of a profiled call.

    `idle_share`: of the time per call in which neither kernel nor copy ran on the GPU; None on a CPU. `slowdown`: how
    many times as long a call took while profiled, on a GPU its kernels alone; where that `is_far`, rows have no rates.
    """

    side: str
    clock: str
    rows: Sequence[Hotspot]
    seconds: float
    launches: float
    names: int
    whole_s: float | None
    slowdown: float | None
    idle_share: float | None
    flops_per_s: float | None
    flops_share: float | None
    is_far: bool = False

    @property
    def hidden(self) -> int:
        """How many lighter ones were not told."""
        return max(self.names - len(self.rows), 0)

    @property
    def hidden_s(self) -> float:
        return max(self.seconds - sum(row.seconds for row in self.rows), 0.0)

    @property
    def bound(self) -> str | None:
        """compute or memory, where kernels so bounded take most of the busy time."""
        for kind in ("compute", "memory"):
            if sum(row.seconds for row in self.rows if row.bound == kind) > MOST * self.seconds:
                return kind
        return None


@dataclass(frozen=True, kw_only=True)
class Hotspots:
    """Both sides of one run; `device` is the card's name where its peaks are known; `size` that of a sweep which was
    profiled."""

    eager: SideTime | None
    compiled: SideTime | None
    device: str | None = None
    launch_bound: bool | None = None
    size: str = ""

    @property
    def sides(self) -> tuple[SideTime, ...]:
        return tuple(side for side in (self.eager, self.compiled) if side)


def is_profiled(run: Run) -> bool:
    return any(process.profiles for process in run.processes)


def hotspots(run: Run) -> Hotspots | None:
    """None where no profile was told."""
    profiles: dict[str, e.Profile] = {}
    for process in run.processes:
        profiles |= process.profiles
    if not profiles:
        return None
    device = next((p.environment.device for p in run.processes if p.environment), None)
    measures = measure(run)
    peak = peak_of(device)
    sides = {
        side: _side(profiles.get(side), summary, flops, peak)
        for side, summary, flops in (
            (EAGER, measures.profiled(EAGER), _flops(profiles)),
            (COMPILED, measures.profiled(COMPILED), _flops(profiles)),
        )
    }
    return Hotspots(
        eager=sides[EAGER],
        compiled=sides[COMPILED],
        device=device if peak else None,
        launch_bound=_launch_bound(measures, sides[COMPILED]),
        size=_size(measures),
    )


def _size(measures: Measures) -> str:
    return measures.profiled_row.label if measures.profiled_row else ""


def _launch_bound(measures: Measures, compiled: SideTime | None) -> bool | None:
    return measures.launch_bound if compiled and compiled.clock == "device" else None


def _flops(profiles: Mapping[str, e.Profile]) -> Mapping[str, float]:
    """The call's FLOPs by type: the same work on both sides."""
    found = next((row.flops for row in profiles.values() if row.flops), {})
    return {str(name): float(value) for name, value in found.items() if isinstance(value, (int, float))}


def _side(
    profile: e.Profile | None, summary: Summary | None, flops: Mapping[str, float], peak: Peak | None
) -> SideTime | None:
    if profile is None:
        return None
    on_gpu = profile.clock == "device"
    per_call = summary.median if summary else None
    active = profile.active_s if profile.active_s is not None else profile.seconds
    profiled_s = active if on_gpu else profile.call_s
    slowdown = profiled_s / per_call if profiled_s and per_call else None
    # kernels may well take less than the call around them
    is_far = slowdown is not None and (slowdown > FAR or (not on_gpu and slowdown < 1 / FAR))
    kernels = [replace(row, flops=None, bytes=None) if is_far else row for row in profile.kernels]
    whole = profile.call_s if not on_gpu else None if is_far else per_call
    # on a CPU the rate of the whole call is by the timed one
    rate = None if on_gpu and is_far else _rate(sum(flops.values()) or None, active if on_gpu else per_call)
    return SideTime(
        side=profile.side,
        clock=profile.clock,
        rows=tuple(_row(row, whole, peak if on_gpu else None) for row in kernels),
        seconds=profile.seconds,
        launches=profile.launches,
        names=profile.names,
        whole_s=whole,
        slowdown=slowdown,
        idle_share=max(1 - active / per_call, 0.0) if on_gpu and per_call and not is_far else None,
        flops_per_s=rate,
        flops_share=_share_of_time(flops, active, peak) if on_gpu and not is_far else None,
        is_far=is_far,
    )


def _row(kernel: e.KernelTime, whole: float | None, peak: Peak | None) -> Hotspot:
    computed, moved = _rate(kernel.flops or None, kernel.seconds), _rate(kernel.bytes or None, kernel.seconds)
    return Hotspot(
        name=kernel.name,
        kind=kernel.kind,
        seconds=kernel.seconds,
        share=kernel.seconds / whole if whole else None,
        launches=kernel.launches,
        operator=kernel.operator,
        flops_per_s=computed,
        flops_share=_possible(computed, peak.flops.get(kernel.dtype or "") if peak else None),
        bytes_per_s=moved,
        bytes_share=_possible(moved, peak.bytes_per_s if peak else None),
    )


def _share_of_time(flops: Mapping[str, float], busy_s: float, peak: Peak | None) -> float | None:
    """The least time that the products need on this card, as a share of the busy time; mixed types add up."""
    if peak is None or not flops or busy_s <= 0 or any(name not in peak.flops for name in flops):
        return None
    share = sum(value / peak.flops[name] for name, value in flops.items()) / busy_s
    return share if share <= _IMPOSSIBLE else None


def _rate(amount: float | None, seconds: float | None) -> float | None:
    return amount / seconds if amount and seconds else None


def _possible(rate: float | None, most: float | None) -> float | None:
    return rate / most if rate and most and rate / most <= _IMPOSSIBLE else None


def rate_text(value: float | None, unit: str) -> str:
    """A rate with three digits: "312 TFLOP/s", "1.20 TB/s"."""
    if value is None:
        return "–"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor * 0.9995:
            return f"{units.significant(value / factor)} {prefix}{unit}"
    return f"{units.significant(value)} {unit}"
