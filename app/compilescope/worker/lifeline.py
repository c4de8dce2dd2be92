"""The guardian: a small process that ends everything when the app is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

MARK = "COMPILESCOPE_RUN"
SWEEPS = 5


def start(fd: int) -> None:
    """Watch `fd` until its end, then kill this process and all that it started. Takes over the descriptor."""
    if hasattr(os, "fork"):
        _fork_guardian(fd)
    else:
        threading.Thread(target=_watch_from_inside, args=(fd,), name="lifeline", daemon=True).start()


def _fork_guardian(fd: int) -> None:
    """Forked twice, so that the script's own `wait` never meets the guardian; before torch, so that it stays small.

    A thread would not do: code that holds the interpreter's lock would hold the thread too.
    """
    worker = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(fd)
        return
    try:
        if os.fork():
            os._exit(0)
        _guard(fd, worker)
    finally:
        os._exit(0)


def _guard(fd: int, worker: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _let_go_of_all_but(fd)
    while os.read(fd, 4096):
        pass
    leads_group = os.getpgid(0) == worker
    for _ in range(SWEEPS):
        if not _kill_marked():
            break
        time.sleep(0.02)
    if leads_group:
        # the guardian is in the group too: this is its last act
        os.killpg(worker, signal.SIGKILL)
    elif not os.environ.get(MARK):
        os.kill(worker, signal.SIGKILL)


def _let_go_of_all_but(fd: int) -> None:
    """Readers of the worker's output must see its end although the guardian lives on."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.closerange(3, fd)
    os.closerange(fd + 1, 1024)


def _kill_marked() -> int:
    """Kill every process of this run but the guardian; how many were found. Needs /proc."""
    mark = os.environ.get(MARK)
    if not mark:
        return 0
    wanted = f"{MARK}={mark}".encode()
    found = 0
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                found += 1
        except OSError:
            # gone meanwhile, or another user's
            continue
    return found


def _watch_from_inside(fd: int) -> None:
    while os.read(fd, 4096):
        pass
    sys.stderr.flush()
    os._exit(1)
