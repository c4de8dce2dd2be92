"""GPU busy time: the sum of kernel times of a call, from the profiler, in a pass of its own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from compilescope.domain.events import GpuBusy
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Side

CALLS = 20
KERNELS_TOLD = 20


def profile(side: Side, inputs: Inputs) -> GpuBusy | None:
    """Profile some calls; None where the profiler saw no kernel."""
    step = side.bound(inputs)
    with side.ready():
        step()
        side.synchronize()
        with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as recorded:
            for _ in range(CALLS):
                step()
            side.synchronize()
    kernels = [event for event in recorded.events() if _is_kernel(event)]
    if not kernels:
        return None
    by_name: dict[str, list[float]] = defaultdict(list)
    for kernel in kernels:
        by_name[kernel.name].append(kernel.time_range.elapsed_us() / 1e6)
    heaviest = sorted(by_name.items(), key=lambda item: -sum(item[1]))[:KERNELS_TOLD]
    return GpuBusy(
        side=side.name,
        seconds=sum(map(sum, by_name.values())) / CALLS,
        launches=len(kernels) / CALLS,
        kernels=tuple(
            {"name": name, "seconds": sum(times) / CALLS, "launches": len(times) / CALLS} for name, times in heaviest
        ),
    )


def _is_kernel(event: Any) -> bool:
    return str(event.device_type).endswith("CUDA") and not event.name.startswith(("Memcpy", "Memset", "ProfilerStep"))
