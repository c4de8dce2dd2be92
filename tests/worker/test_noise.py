"""The machine around the timing: what NVML says of a card, read without a binding of it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compilescope.worker import noise, nvml

CUDA = torch.device("cuda", 0)
TOO_SMALL = 7


class Library:
    """NVML of a card at 1755 MHz and 61 °C, held back by its power limit and idle; `pids`: who computes on it."""

    def __init__(self, *pids: int) -> None:
        self.pids = pids
        self.asked_for: list[bytes] = []

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:
        self.asked_for.append(name)
        handle._obj.value = 7
        return 0

    def nvmlDeviceGetClockInfo(self, handle: ctypes.c_void_p, kind: int, value: Any) -> int:
        value._obj.value = 1755
        return 0 if (handle.value, kind) == (7, 1) else 2

    def nvmlDeviceGetTemperature(self, _handle: ctypes.c_void_p, kind: int, value: Any) -> int:
        value._obj.value = 61
        return 0 if kind == 0 else 2

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _handle: ctypes.c_void_p, value: Any) -> int:
        value._obj.value = 0x4 | 0x1
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, _handle: ctypes.c_void_p, count: Any, rows: Any) -> int:
        fits = rows is not None and count._obj.value >= len(self.pids)
        count._obj.value = len(self.pids)
        if not fits:
            return TOO_SMALL if self.pids else 0
        for row, pid in zip(rows, self.pids, strict=False):
            row.pid = pid
        return 0


def look(monkeypatch: pytest.MonkeyPatch, library: Library) -> Any:
    nvml.card_of.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="12-34"))
    found = noise.look(CUDA)
    nvml.card_of.cache_clear()
    return found


def test_that_a_card_tells_its_clock_its_heat_and_why_it_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(11)

    found = look(monkeypatch, library)

    assert library.asked_for == [b"GPU-12-34"]
    assert (found.clock_mhz, found.temperature_c, found.throttle) == (1755.0, 61.0, ("SwPowerCap",))


@pytest.mark.parametrize(("pids", "others"), [((), 0), ((11,), 0), ((11, 12, 13), 2)])
def test_that_this_process_is_none_of_the_others_whatever_its_number_there(
    monkeypatch: pytest.MonkeyPatch, pids: tuple[int, ...], others: int
) -> None:
    assert look(monkeypatch, Library(*pids)).processes == others


def test_that_a_driver_which_lacks_a_function_tells_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(11)
    whole = SimpleNamespace(
        **{name: getattr(library, name) for name in dir(library) if name.startswith("nvml") and "Temp" not in name}
    )

    found = look(monkeypatch, whole)  # type: ignore[arg-type]

    assert (found.clock_mhz, found.temperature_c) == (1755.0, None)


def test_that_a_machine_without_nvml_tells_its_load_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    nvml.card_of.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)

    found = noise.look(CUDA)
    nvml.card_of.cache_clear()

    assert (found.clock_mhz, found.throttle, found.processes) == (None, (), None)
    assert found.load_average is not None


def test_that_no_clock_of_a_processor_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("NVML was loaded"))

    assert noise.look(torch.device("cpu")).clock_mhz is None
