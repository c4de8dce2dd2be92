"""Signals to a worker and to everything that it started.

On Linux that includes processes that left its group: they carry the run's mark in their environment, or hold the pipes
of its output. Elsewhere (not tried) only the group is reached.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from compilescope.engine.command import RUN_VARIABLE

PROC = Path("/proc")
KILL_S = 1.0


def interrupt(pid: int) -> None:
    """Ask the group as Ctrl+C does."""
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            os.kill(pid, signal.CTRL_BREAK_EVENT)
    else:
        _signal_group(pid, signal.SIGINT)


def terminate(pid: int) -> None:
    if sys.platform == "win32":
        kill(pid)
    else:
        _signal_group(pid, signal.SIGTERM)


def kill(pid: int) -> None:
    """End the group at once."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
    else:
        _signal_group(pid, signal.SIGKILL)


def kill_marked(run_id: str) -> int:
    """End every process that carries this run's mark, also those that called setsid. Returns how many."""
    ended: set[int] = set()
    until = time.monotonic() + KILL_S
    while pids := marked(run_id):
        ended.update(pids)
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            break
        time.sleep(0.005)  # one may have forked since we looked
    return len(ended)


def marked(run_id: str) -> list[int]:
    """The processes that carry this run's mark; none where there is no /proc."""
    if not PROC.is_dir():
        return []
    mark = f"{RUN_VARIABLE}={run_id}".encode()
    found = []
    for name in os.listdir(PROC):  # noqa: PTH208 - twice as fast, and there may be thousands
        if name.isdigit() and int(name) != os.getpid() and mark in _environment(name):
            found.append(int(name))
    return found


def kill_holders(descriptors: Iterable[int]) -> None:
    """End every process that holds the other end of these pipes; none where there is no /proc."""
    if not PROC.is_dir():
        return
    pipes = {f"pipe:[{os.fstat(descriptor).st_ino}]" for descriptor in descriptors}
    for name in os.listdir(PROC):  # noqa: PTH208 - as above
        # a child of our own holds them too, between its fork and its exec
        if name.isdigit() and os.getpid() not in (int(name), _parent(name)) and not pipes.isdisjoint(_open_files(name)):
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)


def _parent(pid: str) -> int:
    try:
        # the name in the second field may hold blanks and brackets
        return int((PROC / pid / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _open_files(pid: str) -> list[str]:
    folder = PROC / pid / "fd"
    found = []
    with contextlib.suppress(OSError):  # gone, or another user's
        for name in os.listdir(folder):  # noqa: PTH208 - as above
            with contextlib.suppress(OSError):
                found.append(os.readlink(folder / name))  # noqa: PTH115 - as above
    return found


def _environment(pid: str) -> list[bytes]:
    try:
        return (PROC / pid / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return []


def _signal_group(pid: int, number: int) -> None:
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(pid, number)
