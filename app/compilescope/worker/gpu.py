"""Kernels of a call on the GPU, from the profiler, in a pass of its own that watches nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from compilescope.domain.events import GpuBusy
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Side

MOST_CALLS = 20
PROFILED_S = 1.0
# reading a kernel's event back takes far longer than recording it
ENOUGH_KERNELS = 5_000
_COPIES = ("Memcpy", "Memset")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel that ran; microseconds since the profiler began."""

    name: str
    begin_us: float
    end_us: float

    @property
    def seconds(self) -> float:
        return (self.end_us - self.begin_us) / 1e6


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Every kernel of so many calls. `copies`: what moved or filled memory without a kernel."""

    calls: int
    kernels: Sequence[Launch]
    copies: Sequence[Launch] = ()

    @property
    def busy_s(self) -> float:
        """The sum of kernel times per call."""
        return sum(kernel.seconds for kernel in self.kernels) / self.calls

    @property
    def active_s(self) -> float:
        """Seconds per call in which a kernel or a copy ran; on several streams that is less than the sum."""
        total, until = 0.0, float("-inf")
        for kernel in sorted([*self.kernels, *self.copies], key=lambda kernel: kernel.begin_us):
            total += max(kernel.end_us - max(kernel.begin_us, until), 0.0)
            until = max(until, kernel.end_us)
        return total / 1e6 / self.calls


def launches(side: Side, inputs: Inputs) -> Launches:
    """Profile some calls, fewer of long ones and of those with many kernels."""
    step = side.bound(inputs)
    with side.ready():
        began = perf_counter()
        step()
        side.synchronize()
        took = max(perf_counter() - began, 1e-9)
        first = _watched(side, step, 1)
        calls = min(int(PROFILED_S / took), MOST_CALLS, ENOUGH_KERNELS // max(len(first.kernels), 1))
        return _watched(side, step, calls) if calls > 1 else first


def _watched(side: Side, step: Callable[[], Any], calls: int) -> Launches:
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(calls):
            step()
        side.synchronize()
    events = recorded.events()
    return Launches(calls=calls, kernels=kernels_among(events), copies=copies_among(events))


def kernels_among(events: Sequence[Any]) -> list[Launch]:
    """The kernels among the profiler's events."""
    return [_launch(event) for event in events if _is_of_gpu(event) and not event.name.startswith(_COPIES)]


def copies_among(events: Sequence[Any]) -> list[Launch]:
    """What moved or filled memory on the card, or between it and the host."""
    return [_launch(event) for event in events if _is_of_gpu(event) and event.name.startswith(_COPIES)]


def busy(side: Side, found: Launches) -> GpuBusy | None:
    """What the profiler counted; None where it saw no kernel."""
    if not found.kernels:
        return None
    return GpuBusy(
        side=side.name,
        seconds=found.busy_s,
        copies_s=sum(copy.seconds for copy in found.copies) / found.calls,
        launches=len(found.kernels) / found.calls,
    )


def _launch(event: Any) -> Launch:
    return Launch(name=event.name, begin_us=event.time_range.start, end_us=event.time_range.end)


def _is_of_gpu(event: Any) -> bool:
    return str(event.device_type).endswith("CUDA") and not event.name.startswith("ProfilerStep")
