"""What was measured of one run, from its events: medians, speedup, first calls, memory, GPU busy share."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from compilescope.domain import statistics
from compilescope.domain.agreement import Agreement, agreement, verdict_at
from compilescope.domain.faults import fault
from compilescope.domain.firstcall import first_use_s
from compilescope.domain.run import COMPILED, EAGER, ProcessStory, Run
from compilescope.domain.statistics import Interval, Pairs

# below this share of busy time the GPU waits for Python more than launches can overlap
LAUNCH_BOUND_SHARE = 0.7
# a profiled call that takes so many times as long as a timed one is another call: it carries neither rates nor shares
FAR = 1.5
# calls as long as this are told one by one on a CPU: `each_from_s` of the worker's WallClock
TOLD_ALONE_S = 1e-4

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Seconds per call of one side: quantiles of one sample, the blocks (or calls) of all processes, each process
    weighing the same. `processes`: each one's own median, by its start."""

    median: float
    p05: float
    p95: float
    samples: int
    processes: tuple[tuple[str, float], ...] = ()

    @property
    def is_apart(self) -> bool:
        """Whether the processes' medians differ by more than anybody would leave unsaid."""
        medians = [median for _, median in self.processes]
        return bool(medians) and max(medians) > (1 + statistics.TOO_NOISY) * min(medians)


@dataclass(frozen=True, kw_only=True)
class ShapeMeasures:
    """One size of a shape sweep. `inputs`: sizes chosen by name; `first_call_s`: of the compiled side, in the process
    that tells the compile story; `recompiles`: what this size made compile again; `numerics`: match, differ,
    nondeterministic, not_checked."""

    shape: int
    inputs: Mapping[str, Sequence[int]]
    first_call_s: float | None
    recompiles: int | None
    eager: Summary | None
    compiled: Summary | None
    speedup: Interval | None
    numerics: str | None = None

    @property
    def label(self) -> str:
        """The sizes by input: "x 8 × 128, mask 8"."""
        named = (f"{name} {' × '.join(map(str, size)) or 'scalar'}" for name, size in self.inputs.items())
        return ", ".join(named) or "the script's own size"


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Every figure of a run; seconds and bytes, None where unknown. `problem`: why nothing could be worked out.

    `speedup_of_means`: by the mean of single calls, where blocks are worth their median call; a loop gets the mean.
    """

    clock: str | None = None
    eager: Summary | None = None
    compiled: Summary | None = None
    eager_latency: Summary | None = None
    compiled_latency: Summary | None = None
    eager_gpu_busy_s: float | None = None
    compiled_gpu_busy_s: float | None = None
    compiled_gpu_copies_s: float | None = None
    eager_launches: float | None = None
    compiled_launches: float | None = None
    speedup: Interval | None = None
    speedup_of_means: float | None = None
    process_speedups: tuple[tuple[str, Interval], ...] = ()
    processes_disagree: bool | None = None
    stopped_by: str | None = None
    l2_flush: bool | None = None
    queued: bool | None = None
    restored: bool | None = None
    void_blocks: int = 0
    eager_first_call_s: float | None = None
    cold_first_call_s: float | None = None
    warm_first_call_s: float | None = None
    cold_first_use_s: float | None = None
    warm_first_use_s: float | None = None
    eager_peak_bytes: int | None = None
    compiled_peak_bytes: int | None = None
    compile_peak_bytes: int | None = None
    process_rss_bytes: int | None = None
    numerics: Agreement = field(default_factory=Agreement)
    shapes: tuple[ShapeMeasures, ...] = ()
    profiled_shape: int = 0
    problem: str = ""

    def profiled(self, side: str) -> Summary | None:
        """The time per call that the profiler's figures are a share of: of the size that was profiled, the last of a
        sweep. None where the cache was flushed, as it is not while profiling."""
        if self.l2_flush:
            return None
        if not self.profiled_shape:
            return self.eager if side == EAGER else self.compiled
        row = self.profiled_row
        return None if row is None else row.eager if side == EAGER else row.compiled

    @property
    def profiled_row(self) -> ShapeMeasures | None:
        """The size of a sweep that was profiled; None where there is no sweep, or no block of that size."""
        return next((row for row in self.shapes if row.shape == self.profiled_shape), None)

    @property
    def eager_busy_share(self) -> float | None:
        """The sum of kernel times as a share of the time per call."""
        return _share(self.eager_gpu_busy_s, self.profiled(EAGER))

    @property
    def compiled_busy_share(self) -> float | None:
        return _share(self.compiled_gpu_busy_s, self.profiled(COMPILED))

    @property
    def first_call_in_eager_calls(self) -> float | None:
        """How many eager calls the first process's first compiled call takes the time of."""
        return self.cold_first_call_s / self.eager.median if self.cold_first_call_s and self.eager else None

    @property
    def launch_bound(self) -> bool | None:
        """Whether the compiled side leaves the GPU waiting for Python; None where that is not known."""
        busy_s, whole = self.compiled_gpu_busy_s, self.profiled(COMPILED)
        if busy_s is None or whole is None or self.clock != "cuda_event":
            return None
        if self.compiled_busy_share is None:
            return None
        # while memory is copied the GPU does not wait for Python
        return (busy_s + (self.compiled_gpu_copies_s or 0.0)) / whole.median < LAUNCH_BOUND_SHARE


_measured: weakref.WeakKeyDictionary[Run, tuple[int, Measures]] = weakref.WeakKeyDictionary()


def measure(run: Run) -> Measures:
    """The run's figures as of now; the same object until the run changes.

    While the run goes on, the interval comes from a cheaper estimate of the spread within processes.
    """
    revision = run.revision["all"]
    known = _measured.get(run)
    if known is None or known[0] != revision:
        known = _measured[run] = (revision, _measure_or_tell(run))
    return known[1]


def _measure_or_tell(run: Run) -> Measures:
    try:
        return _measure(run)
    except Exception as error:  # a fault of ours, whatever it is
        return Measures(problem=fault(f"The figures of {run.label} are missing", error))


def _measure(run: Run) -> Measures:
    processes = run.processes
    by_process = [(process, pairs_of(process)) for process in processes]
    pairs = [found for _, found in by_process if found]
    speedup = _speedup(run, pairs)
    eager, compiled = _summary(processes, EAGER), _summary(processes, COMPILED)
    cold, warm = _first_call(run.cold, COMPILED), _first_call(run.warm, COMPILED)
    return Measures(
        clock=_clock(processes),
        eager=eager,
        compiled=compiled,
        eager_latency=_summary(processes, EAGER, measure="latency"),
        compiled_latency=_summary(processes, COMPILED, measure="latency"),
        eager_gpu_busy_s=_mean(p.gpu_busy[EAGER].seconds for p in processes if EAGER in p.gpu_busy),
        compiled_gpu_busy_s=_mean(p.gpu_busy[COMPILED].seconds for p in processes if COMPILED in p.gpu_busy),
        compiled_gpu_copies_s=_mean(p.gpu_busy[COMPILED].copies_s for p in processes if COMPILED in p.gpu_busy),
        eager_launches=_mean(p.gpu_busy[EAGER].launches for p in processes if EAGER in p.gpu_busy),
        compiled_launches=_mean(p.gpu_busy[COMPILED].launches for p in processes if COMPILED in p.gpu_busy),
        speedup=speedup,
        speedup_of_means=_speedup_of_means(processes),
        process_speedups=_process_speedups(by_process),
        processes_disagree=statistics.disagree(pairs),
        stopped_by=_stopped_by(processes),
        l2_flush=next((p.measured[0].l2_flush for p in processes if 0 in p.measured), None),
        queued=next((p.measured[0].queued for p in processes if 0 in p.measured), None),
        restored=next((p.measured[0].restored for p in processes if 0 in p.measured), None),
        void_blocks=sum(len({row.block for row in p.voids}) for p in processes),
        eager_first_call_s=_first_call(run.story, EAGER),
        cold_first_call_s=cold,
        warm_first_call_s=warm,
        cold_first_use_s=first_use_s(run.cold),
        warm_first_use_s=first_use_s(run.warm),
        eager_peak_bytes=_peak(processes, EAGER, "steady"),
        compiled_peak_bytes=_peak(processes, COMPILED, "steady"),
        compile_peak_bytes=_peak(processes, COMPILED, "first_call"),
        process_rss_bytes=_largest(row.rss_bytes for p in processes for row in p.memory.values()),
        numerics=agreement(run),
        shapes=_shapes(run),
        profiled_shape=max((len(sizes) for sizes in (run.workload.inputs or {}).values() if sizes), default=1) - 1,
    )


def pairs_of(process: ProcessStory, shape: int = 0) -> Pairs:
    """Blocks that both sides of a process have."""
    eager, compiled = (process.samples(side, shape=shape) for side in (EAGER, COMPILED))
    if eager.blocks == compiled.blocks and all(map((0.0).__lt__, itertools.chain(eager.seconds, compiled.seconds))):
        return Pairs(eager=eager.seconds, compiled=compiled.seconds, clock=eager.clock)
    other = dict(zip(compiled.blocks, compiled.seconds, strict=True))
    both = [
        (seconds, other[block])
        for block, seconds in zip(eager.blocks, eager.seconds, strict=True)
        if seconds > 0 and other.get(block, 0.0) > 0
    ]
    return Pairs(eager=[one for one, _ in both], compiled=[two for _, two in both], clock=eager.clock)


def _speedup(run: Run, pairs: Sequence[Pairs]) -> Interval | None:
    if not run.is_over:
        return statistics.rough_interval(pairs)
    # NumPy takes a while to load, and a window that opens has no use for it
    from compilescope.domain.resampling import ratio_interval

    return ratio_interval(pairs)


def _summary(
    processes: Sequence[ProcessStory], side: str, *, shape: int = 0, measure: str = "back_to_back"
) -> Summary | None:
    told = [(p.start, p.samples(side, shape=shape, measure=measure).ordered()) for p in processes]
    told = [(start, kept) for start, kept in told if kept]
    if not told:
        return None
    everything = statistics.balanced([kept for _, kept in told])
    return Summary(
        median=statistics.quantile(everything, 0.5),
        p05=statistics.quantile(everything, 0.05),
        p95=statistics.quantile(everything, 0.95),
        samples=sum(len(kept) for _, kept in told),
        processes=tuple((start, statistics.quantile(kept, 0.5)) for start, kept in told),
    )


def _speedup_of_means(processes: Sequence[ProcessStory]) -> float | None:
    """Calls beyond the 98th percentile count as that: such are the machine's, and a few of them would decide.

    None for calls too short to be told one by one, whose blocks are worth their mean.
    """
    ratios = []
    for process in processes if _clock(processes) == "wall" else ():
        sides = [process.samples(side, measure="latency").ordered() for side in (EAGER, COMPILED)]
        if all(side and statistics.median(side) >= TOLD_ALONE_S for side in sides):
            ratios.append(_mean_below_edge(sides[0]) / _mean_below_edge(sides[1]))
    return statistics.geometric_mean(ratios) if ratios else None


def _mean_below_edge(seconds: Sequence[float]) -> float:
    edge = statistics.quantile(seconds, 0.98)
    return math.fsum(min(value, edge) for value in seconds) / len(seconds)


def _process_speedups(by_process: Sequence[tuple[ProcessStory, Pairs]]) -> tuple[tuple[str, Interval], ...]:
    found = [(process.start, statistics.quick_interval(pairs)) for process, pairs in by_process]
    return tuple((start, interval) for start, interval in found if interval)


def _clock(processes: Sequence[ProcessStory]) -> str | None:
    clocks = {series.clock for p in processes for key, series in p.series.items() if key[2] == "back_to_back"}
    return clocks.pop() if len(clocks) == 1 else None


def _stopped_by(processes: Sequence[ProcessStory]) -> str | None:
    """What ended the timing: the interval only where it did so in every process."""
    stops = [p.measured[0].stop for p in processes if 0 in p.measured]
    if not stops:
        return None
    return "interval" if all(stop == "interval" for stop in stops) else "budget"


def _first_call(process: ProcessStory | None, side: str, shape: int = 0) -> float | None:
    if process is None:
        return None
    calls = process.first_calls
    found = calls.get((side, "step")) or calls.get((side, "forward"))
    if shape:
        found = process.later_first_calls.get((shape, side))
    return found.duration_s if found else None


def _peak(processes: Sequence[ProcessStory], side: str, when: str) -> int | None:
    """The largest peak of device memory of any process. On a CPU both sides share the process, so none can be told."""
    return _largest(row.allocated_peak_bytes for p in processes if (row := p.memory.get((side, when))))


def _largest(values: Iterable[_Number | None]) -> _Number | None:
    return max((value for value in values if value is not None), default=None)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(busy_s: float | None, whole: Summary | None) -> float | None:
    share = None if busy_s is None or whole is None else busy_s / whole.median
    return share if share is not None and share <= FAR else None


def _shapes(run: Run) -> tuple[ShapeMeasures, ...]:
    shapes = sorted({key[0] for p in run.processes for key in p.series if key[2] == "back_to_back"})
    if len(shapes) < 2:
        return ()
    return tuple(
        ShapeMeasures(
            shape=shape,
            inputs=_sizes(run, shape),
            first_call_s=_first_call(run.story, COMPILED, shape),
            recompiles=_recompiles(run.story, shape),
            eager=_summary(run.processes, EAGER, shape=shape),
            compiled=_summary(run.processes, COMPILED, shape=shape),
            speedup=_speedup(run, [pairs_of(process, shape) for process in run.processes]),
            numerics=verdict_at(run, shape),
        )
        for shape in shapes
    )


def _sizes(run: Run, shape: int) -> dict[str, Sequence[int]]:
    """The sizes of one shape; an input with fewer sizes than others keeps its last."""
    chosen = {name: sizes for name, sizes in (run.workload.inputs or {}).items() if sizes}
    return {name: sizes[min(shape, len(sizes) - 1)] for name, sizes in chosen.items()}


def _recompiles(story: ProcessStory | None, shape: int) -> int | None:
    """Recompiles after the timing of the shape before and until that of this one; None before that."""
    if story is None or shape not in story.measured:
        return None
    since = story.measured[shape - 1].at if shape - 1 in story.measured else float("-inf")
    until = story.measured[shape].at
    return sum(since < event.at <= until for row in story.recompiles.values() for event in row.events)
