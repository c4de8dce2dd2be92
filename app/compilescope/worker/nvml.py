"""What the driver's own library, NVML, says of one GPU: by ctypes, since torch brings no binding of it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import Any

import torch

from compilescope.worker.environment import attempt

_LIBRARIES = ("libnvidia-ml.so.1", "nvml.dll")
_CLOCK_SM, _TEMPERATURE_GPU = 1, 0
_TOO_SMALL = 7
# why a clock is not at its highest; idleness, the application's own setting and the display's slow nothing down
_REASONS = {
    0x4: "SwPowerCap",
    0x8: "HwSlowdown",
    0x10: "SyncBoost",
    0x20: "SwThermalSlowdown",
    0x40: "HwThermalSlowdown",
    0x80: "HwPowerBrakeSlowdown",
}


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Card:
    """One GPU. What it does not tell is None."""

    def __init__(self, library: Any, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    def clock_mhz(self) -> int | None:
        """That of its multiprocessors now."""
        value = ctypes.c_uint()
        return self._ask("nvmlDeviceGetClockInfo", _CLOCK_SM, value)

    def temperature_c(self) -> int | None:
        value = ctypes.c_uint()
        return self._ask("nvmlDeviceGetTemperature", _TEMPERATURE_GPU, value)

    def throttle(self) -> tuple[str, ...]:
        """Why its clock is held back."""
        value = ctypes.c_ulonglong()
        found = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", value) or 0
        return tuple(name for bit, name in _REASONS.items() if found & bit)

    def other_processes(self) -> int | None:
        """How many others compute on it. This one does; in a container it may stand there under another number."""
        count = ctypes.c_uint(0)
        for name in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"):
            # a function that a driver lacks is no attribute of the library
            ask: Callable[..., int] | None = getattr(self._library, name, None)
            if ask is None:
                continue
            status = ask(self._handle, ctypes.byref(count), None)
            if status == 0:
                return 0
            if status != _TOO_SMALL:
                return None
            # some may start between the two questions
            count.value += 8
            rows = (_Process * count.value)()
            if ask(self._handle, ctypes.byref(count), rows) != 0:
                return None
            return max(len({row.pid for row in rows[: count.value]}) - 1, 0)
        return None

    def _ask(self, name: str, *arguments: Any) -> int | None:
        """The value that a function writes to its last argument."""
        *plain, value = arguments
        try:
            status = getattr(self._library, name)(self._handle, *plain, ctypes.byref(value))
        except (AttributeError, OSError):
            return None
        return int(value.value) if status == 0 else None


@functools.cache
def card_of(device: torch.device) -> Card | None:
    """The GPU of a CUDA device; None where NVML is missing or does not know it."""
    if device.type != "cuda":
        return None
    library = _library()
    if library is None or library.nvmlInit_v2() != 0:
        return None
    handle = ctypes.c_void_p()
    # NVML counts all devices, torch only the visible ones
    for function, name in _names(device):
        found = getattr(library, function, None)
        if found is not None and found(name.encode(), ctypes.byref(handle)) == 0:
            return Card(library, handle)
    return None


def _library() -> Any:
    for name in _LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


def _names(device: torch.device) -> list[tuple[str, str]]:
    """What NVML finds a device by."""
    facts: Any = torch.cuda.get_device_properties(device)
    uuid = attempt(lambda: f"GPU-{facts.uuid}", "")
    bus = attempt(lambda: f"{facts.pci_domain_id:08x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0", "")
    found = (("nvmlDeviceGetHandleByUUID", uuid), ("nvmlDeviceGetHandleByPciBusId_v2", bus))
    return [(function, name) for function, name in found if name]
