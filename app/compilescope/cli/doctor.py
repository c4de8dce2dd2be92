"""`compilescope doctor`: what this machine can do, and what is missing."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import compilescope
from compilescope import paths
from compilescope.cli.display import has_display
from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.calibration import Machine
from compilescope.domain.statistics import NOISE_FLOOR
from compilescope.engine.feed import Feed, LogLines, RunEvents
from compilescope.engine.request import RunRequest
from compilescope.engine.supervisor import Supervisor
from compilescope.store.calibrations import calibration_for

TIMEOUT_S = 120.0
LAST_LINES = 5
LOW_SPACE = 2 << 30


def doctor(python: str) -> int:
    """Returns 0 where models can be compiled and measured with this interpreter, 1 where something is in the way."""
    environment, ended, lines = _ask(python)
    rows = _rows(python, environment)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    problems = [*(environment.missing if environment else ()), *_own_problems()]
    if ended.outcome != "finished" and ended.error:
        problems.insert(0, " ".join(filter(None, (ended.error.message, ended.error.hint))))
        problems += [f"| {line}" for line in lines[-LAST_LINES:]]
    print()
    print("\n".join(problems) if problems else "Nothing is missing.")
    can_run = ended.outcome == "finished" and environment is not None and environment.torch is not None
    print("Models can be compiled and measured here." if can_run else "Nothing can be compiled until that is solved.")
    return 0 if can_run else 1


def _ask(python: str) -> tuple[e.Environment | None, e.Ended, list[str]]:
    feed = Feed()
    environment, lines = None, []
    with Supervisor(feed) as supervisor:
        supervisor.submit(RunRequest(task="doctor", python=python, timeout_s=TIMEOUT_S))
        while True:
            feed.wait()
            for item in feed.drain():
                if isinstance(item, LogLines):
                    lines += [line.decode(errors="replace") for line in item.lines]
                for event in item.events if isinstance(item, RunEvents) else ():
                    if isinstance(event, e.Environment):
                        environment = event
                    if isinstance(event, e.Ended):
                        return environment, event, lines


def _rows(python: str, environment: e.Environment | None) -> list[tuple[str, str]]:
    found = environment or e.Environment()
    absent = "not there" if environment else "unknown"
    devices = [f"{row.get('id')}: {row.get('name')}{_memory(row.get('memory_bytes'))}" for row in found.devices]
    rows = [
        ("CompileScope", f"{compilescope.__version__}, Python {platform.python_version()}"),
        ("Interpreter", f"{python}, Python {found.python or 'unknown'}"),
        ("torch", found.torch or absent),
        ("Devices", "; ".join(devices) or "none known"),
        ("CUDA", ", ".join(filter(None, (found.cuda, found.driver and f"driver {found.driver}"))) or "none"),
        ("Triton", found.triton or absent),
        ("C++ compiler", found.compiler or absent),
        ("Processor", f"{found.cpu or 'unknown'}{f', {found.threads} threads used' if found.threads else ''}"),
        ("System", found.os or platform.platform()),
        ("Modes", ", ".join(found.modes) or "unknown"),
        ("Backends", ", ".join(found.backends) or "unknown"),
        *_noise_floors(found),
        ("Window", _window()),
        ("Data", _place(paths.data)),
        ("Compiler caches", _place(paths.inductor_caches)),
    ]
    return [(name, value) for name, value in rows if value]


def _noise_floors(found: e.Environment) -> list[tuple[str, str]]:
    """What calibration found for each device of this machine."""
    lines = []
    for device in found.devices:
        machine = Machine(host=platform.node(), device=str(device.get("name")), torch=found.torch or "")
        known = calibration_for(machine)
        text = f"{units.percent(known.noise_floor)}, calibrated {_day(known.created)}" if known else ""
        text = text or f"{units.percent(NOISE_FLOOR)}, assumed: not calibrated with this torch (compilescope calibrate)"
        lines.append(f"{device.get('id')}: {text}")
    return [("Noise floor", "; ".join(lines))] if lines else []


def _day(created: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(created))


def _memory(count: object) -> str:
    return f" ({units.size(count)})" if isinstance(count, int) else ""


def _window() -> str:
    if importlib.util.find_spec("PySide6") is None:
        return "PySide6 is not there; bench works without it"
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        return f"a system library is missing ({error}); bench works without it"
    return "can open" if has_display() else "no display here; bench works without one"


def _place(ask: Callable[[], Path]) -> str:
    try:
        folder = ask()
        return f"{folder} ({units.size(shutil.disk_usage(folder).free)} free)"
    except OSError as error:
        return f"cannot be made: {error}"


def _own_problems() -> list[str]:
    problems = []
    try:
        caches = paths.inductor_caches()
        paths.data()
        if shutil.disk_usage(caches).free < LOW_SPACE:
            problems.append(f"Little space is left for compiler caches in {caches}.")
    except OSError as error:
        problems.append(f"CompileScope's own folders cannot be made ({error}): set COMPILESCOPE_HOME to another place.")
    if sys.platform != "linux":
        problems.append("CompileScope was tried on Linux only; elsewhere a stopped run may leave processes behind.")
    return problems
