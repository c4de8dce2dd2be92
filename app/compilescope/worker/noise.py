"""What else may move the numbers: the GPU's clock, heat and other work, and the load of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch

from compilescope.domain.events import Noise, Warning
from compilescope.worker.environment import attempt

# idle and the application's own clock setting slow nothing down
_HARMLESS = ("GpuIdle", "ApplicationsClocksSetting", "None")
_REASON = "nvmlClocksThrottleReason"
BUSY_SHARE = 0.5


def look(device: torch.device) -> Noise:
    """The machine's state now; what cannot be known stays None."""
    load = attempt(lambda: os.getloadavg()[0], None)
    if device.type != "cuda":
        return Noise(load_average=load)
    return attempt(lambda: _gpu(device, load), Noise(load_average=load))


def _gpu(device: torch.device, load: float | None) -> Noise:
    import pynvml

    pynvml.nvmlInit()
    try:
        handle = _handle(pynvml, device)
        return Noise(
            clock_mhz=attempt(lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)), None),
            temperature_c=attempt(
                lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)), None
            ),
            throttle=attempt(lambda: tuple(_throttle(pynvml, handle)), ()),
            processes=attempt(lambda: _others(pynvml, handle), None),
            load_average=load,
        )
    finally:
        pynvml.nvmlShutdown()


def _handle(pynvml: Any, device: torch.device) -> Any:
    """NVML counts all devices, torch only the visible ones, so they are matched by their unique id."""
    properties = torch.cuda.get_device_properties(device)
    uuid = attempt(lambda: f"GPU-{properties.uuid}", "")
    return attempt(lambda: pynvml.nvmlDeviceGetHandleByUUID(uuid), None) or pynvml.nvmlDeviceGetHandleByIndex(
        device.index or 0
    )


def _throttle(pynvml: Any, handle: Any) -> Iterator[str]:
    reasons = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    for name in dir(pynvml):
        value = getattr(pynvml, name)
        short = name.removeprefix(_REASON)
        if name.startswith(_REASON) and isinstance(value, int) and value & reasons and short not in (*_HARMLESS, "All"):
            yield short


def _others(pynvml: Any, handle: Any) -> int:
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return sum(1 for process in running if process.pid != os.getpid())


def doubts(before: Noise, after: Noise) -> Iterator[Warning]:
    """What the reader of the numbers should know about the machine while it was timed."""
    if after.throttle:
        yield Warning(
            code="gpu_throttled",
            message=f"The GPU was held back while it was timed: {', '.join(after.throttle)}.",
            hint="Let it cool down, or lock its clock, and measure again.",
        )
    if (others := max(before.processes or 0, after.processes or 0)) > 0:
        yield Warning(
            code="gpu_shared",
            message=f"{others} other process{'es' if others > 1 else ''} used the GPU while it was timed.",
            hint="Stop them, or choose another device.",
        )
    cores = os.cpu_count() or 1
    # this process itself keeps its threads busy, so only the load before the timing is others' work
    if before.load_average is not None and before.load_average > cores * (1 + BUSY_SHARE):
        yield Warning(
            code="busy_machine",
            message=f"The machine was busy with other work: load {before.load_average:.1f} on {cores} cores.",
            hint="Times vary more than they would on a quiet machine; measure again when it is quiet.",
        )
