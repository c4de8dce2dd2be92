"""A thread that reads one of a worker's pipes in large bites."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

from compilescope.engine.lines import LineSplitter

CHUNK_BYTES = 256 << 10
SMALL_BYTES = 32 << 10
# what comes in a trickle is collected for a moment: fewer wake-ups here and in the window
COLLECT_S = 0.02
# and what comes in a flood leaves the interpreter to the other threads now and then
YIELD_S = 0.002
POLL_MS = 200


class PipeReader(threading.Thread):
    """Reads until end-of-file, or until told to finish. `deliver` gets batches of lines, in this thread."""

    def __init__(
        self,
        descriptor: int,
        *,
        name: str,
        limit: int,
        deliver: Callable[[list[bytes]], None],
        has_room: Callable[[float], bool],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._descriptor = descriptor
        self._splitter = LineSplitter(limit)
        self._deliver = deliver
        self._has_room = has_room
        self._finish_by: float | None = None

    def finish(self, timeout: float) -> None:
        """Read what is still there, at most so long, and stop: a stranger may hold the other end open for ever."""
        self._finish_by = time.monotonic() + timeout
        self.join(timeout + POLL_MS / 1000)

    def run(self) -> None:
        while chunk := self._read():
            self._hand_over(self._splitter.feed(chunk, time.monotonic()))
            time.sleep(COLLECT_S if len(chunk) < SMALL_BYTES else YIELD_S)
        self._hand_over(self._splitter.finish())

    def _hand_over(self, lines: list[bytes]) -> None:
        if lines:
            self._deliver(lines)

    def _read(self) -> bytes:
        """The next bytes; empty when this reader is to end."""
        while True:
            finish_by = self._finish_by
            if finish_by is not None and time.monotonic() > finish_by:
                return b""
            if finish_by is None and not self._has_room(POLL_MS / 1000):
                continue
            if self._is_ready():
                return os.read(self._descriptor, CHUNK_BYTES)

    def _is_ready(self) -> bool:
        if not hasattr(select, "poll"):
            return True  # Windows: the read itself waits
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(POLL_MS))
