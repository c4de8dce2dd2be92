"""The way events leave the worker: one JSON line each, on a private copy of stdout."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
from time import perf_counter

from compilescope.domain.events import Event, encode

CHANNEL_CLOSED = 74


class Channel:
    """Writes events. Safe from any thread; silent in forked children of the script."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._began = perf_counter()

    def clock(self) -> float:
        """Seconds since the worker's start, the `at` of events."""
        return perf_counter() - self._began

    def emit(self, event: Event) -> None:
        if os.getpid() != self._owner:
            return
        if event.type != "hello" and not event.at:
            event = dataclasses.replace(event, at=round(self.clock(), 6))
        # a script's text may hold halves of characters, which neither files nor a database would take further on
        line = encode(event).encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._write(line)

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            # nothing can be told any more, and the status tells that
            os._exit(CHANNEL_CLOSED)
