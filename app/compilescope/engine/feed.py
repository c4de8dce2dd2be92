"""What the engine tells, in order, from its threads to the one that shows it."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from compilescope.domain.events import Event
from compilescope.domain.workload import Start
from compilescope.engine.request import RunRequest

# more than a window takes in half a second; all of it stands before the word that a run has stopped
ROOM_BYTES = 8 << 20
EVENT_BYTES = 500  # about what a decoded event takes
LINE_BYTES = 60  # what a bytes object takes beside its text


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """A run's first process is about to start. A run that is stopped while it waits has no such item."""

    run_id: str
    request: RunRequest


@dataclass(frozen=True, kw_only=True)
class RunEvents:
    """Events of one run, in order. The last of each run, once, is an `Ended`."""

    run_id: str
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class LogLines:
    """What a process printed, without line ends. `at`: seconds since the run began; `start`: which process."""

    run_id: str
    at: float
    lines: tuple[bytes, ...]
    start: Start = "cold"


FeedItem = RunStarted | RunEvents | LogLines


class Feed:
    """A queue that any thread may fill and one thread drains."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._items: deque[FeedItem] = deque()
        self._room_bytes = room_bytes
        self._pending_bytes = 0
        self._changed = threading.Condition()

    def put(self, item: FeedItem) -> None:
        """Queue an item. Never blocks."""
        with self._changed:
            self._items.append(item)
            self._pending_bytes += _weight(item)
            self._changed.notify_all()

    def drain(self, limit: int = 1000) -> list[FeedItem]:
        """The oldest items, at most `limit`. Never blocks."""
        with self._changed:
            taken = [self._items.popleft() for _ in range(min(limit, len(self._items)))]
            self._pending_bytes -= sum(map(_weight, taken))
            if taken:
                self._changed.notify_all()
            return taken

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is something to drain; False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._items), timeout)

    def wait_for_room(self, timeout: float) -> bool:
        """Wait while too much is pending: a script that floods must wait for its reader, as in a terminal."""
        with self._changed:
            return self._changed.wait_for(lambda: self._pending_bytes < self._room_bytes, timeout)

    @property
    def pending_bytes(self) -> int:
        """About how much memory the undrained items take."""
        return self._pending_bytes

    def __len__(self) -> int:
        return len(self._items)


def _weight(item: FeedItem) -> int:
    match item:
        case LogLines(lines=lines):
            return sum(map(len, lines)) + LINE_BYTES * len(lines)
        case RunEvents(events=events):
            return EVENT_BYTES * len(events)
        case _:
            return 0
