"""The profiler's events as one row a kernel or operator, with what is known of its work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilescope.domain.events import KernelTime
from compilescope.worker.generated import CPP, TRITON, Use
from compilescope.worker.gpu import Launches
from compilescope.worker.operators import computing, key_of_event
from compilescope.worker.work import Work, WorkCounter


@dataclass(kw_only=True)
class Sum:
    """What adds up over the calls of one kernel or operator; None once one of them is not known."""

    calls: int = 0
    seconds: float = 0.0
    flops: float | None = 0.0
    bytes: float | None = 0.0
    dtypes: set[str | None] = field(default_factory=set)

    def add(self, seconds: float, work: Work) -> None:
        self.calls += 1
        self.seconds += seconds
        self.flops = _plus(self.flops, work.flops)
        self.bytes = _plus(self.bytes, work.bytes)
        self.dtypes.add(work.dtype)

    @property
    def dtype(self) -> str | None:
        return next(iter(self.dtypes)) if len(self.dtypes) == 1 else None


@dataclass(kw_only=True)
class Origin:
    """The operators that launched one kernel, and the work they did with it."""

    operators: dict[str, None] = field(default_factory=dict)
    work: Sum = field(default_factory=Sum)


def on_cpu(events: Iterable[Any], uses: Mapping[str, Use], work: WorkCounter, calls: int) -> list[KernelTime]:
    """A row for every operator and generated kernel of `calls` calls, with what it calls itself."""
    sums: dict[str, Sum] = defaultdict(Sum)
    for event in computing(events, uses):
        use = uses.get(event.name)
        # how much a generated kernel computes is not known, and what it moves is told by its tensors
        known = work.find(key_of_event(event)) if use is None else Work(bytes=_whole(use.bytes_per_call))
        sums[event.name].add(event.time_range.elapsed_us() / 1e6, known)
    return [
        KernelTime(
            name=name,
            kind="cpp" if name in uses else "operator",
            seconds=row.seconds / calls,
            launches=row.calls / calls,
            flops=_per_call(row.flops, calls),
            bytes=_per_call(row.bytes, calls),
            dtype=row.dtype,
        )
        for name, row in sums.items()
    ]


def attributed(events: Iterable[Any], work: WorkCounter) -> dict[str, Origin]:
    """What launched each GPU kernel, by the kernel's name, from events on the CPU side.

    An operator's FLOPs belong to the longest of its kernels, its bytes to none where it has several.
    """
    found: dict[str, Origin] = defaultdict(Origin)
    for event in computing(events):
        kernels = _kernels_within(event)
        heaviest = max(kernels, key=lambda kernel: kernel.duration, default=None)
        known = work.find(key_of_event(event))
        for kernel in kernels:
            origin = found[kernel.name]
            origin.operators[event.name] = None
            part = known if len(kernels) == 1 else Work(flops=known.flops, dtype=known.dtype)
            origin.work.add(kernel.duration / 1e6, part if kernel is heaviest else Work())
    return dict(found)


def on_gpu(found: Launches, origins: Mapping[str, Origin], uses: Mapping[str, Use]) -> list[KernelTime]:
    """A row for every kernel."""
    times: dict[str, list[float]] = defaultdict(list)
    for kernel in found.kernels:
        times[kernel.name].append(kernel.seconds)
    return [_gpu_row(name, seconds, origins.get(name), uses.get(name), found.calls) for name, seconds in times.items()]


def _gpu_row(name: str, seconds: Sequence[float], origin: Origin | None, use: Use | None, calls: int) -> KernelTime:
    per_call = len(seconds) / calls
    work = origin.work if origin else Sum(flops=None, bytes=None)
    each = 1.0 / work.calls if work.calls else None
    moved = use.bytes_per_call if use else None if work.bytes is None or each is None else work.bytes * each
    return KernelTime(
        name=name,
        kind="triton" if name.startswith(TRITON) else "cpp" if name.startswith(CPP) else "library",
        seconds=sum(seconds) / calls,
        launches=per_call,
        operator=", ".join(origin.operators) if origin else None,
        flops=None if work.flops is None or each is None else work.flops * each * per_call,
        bytes=None if moved is None else moved * per_call,
        dtype=work.dtype,
    )


def _kernels_within(event: Any) -> list[Any]:
    found, pending = [], [event]
    while pending:
        one = pending.pop()
        found += one.kernels
        pending.extend(one.cpu_children)
    return found


def _plus(total: float | None, more: float | None) -> float | None:
    return None if total is None or more is None else total + more


def _per_call(total: float | None, calls: int) -> float | None:
    return None if total is None else total / calls


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
