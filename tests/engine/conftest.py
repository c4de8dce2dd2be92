"""A supervisor that runs the fake worker, and a count of what is left of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.workload import Workload
from compilescope.engine import tree
from compilescope.engine.feed import Feed, FeedItem, LogLines, RunEvents
from compilescope.engine.supervisor import RunRequest, Supervisor

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fakes" / "fake_worker.py"


class Told:
    """What came out of the feed, sorted."""

    def __init__(self, items: list[FeedItem], seconds: float) -> None:
        self.items = items
        self.seconds = seconds
        self.events = [event for item in items if isinstance(item, RunEvents) for event in item.events]
        self.lines = [line for item in items if isinstance(item, LogLines) for line in item.lines]

    @property
    def ended(self) -> e.Ended:
        (only,) = [event for event in self.events if isinstance(event, e.Ended)]
        assert self.events[-1] is only
        return only

    def of(self, kind: type[e.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Engine:
    """A supervisor, its feed, and the short words that tests use."""

    def __init__(self, folder: Path) -> None:
        self.feed = Feed()
        self.supervisor = Supervisor(self.feed, program=FAKE_WORKER)
        self._folder = folder
        self.requests: list[RunRequest] = []

    def submit(self, mode: str, *, request: dict[str, Any] | None = None, **options: Any) -> RunRequest:
        script = self._folder / f"script {len(self.requests)}.json"
        script.write_text(json.dumps({"mode": mode, **options}))
        result = RunRequest(config=Config(), workload=Workload(script=str(script)), **(request or {}))
        self.requests.append(result)
        self.supervisor.submit(result)
        return result

    def collect(self, until: Callable[[list[FeedItem]], bool], timeout: float = 60.0) -> list[FeedItem]:
        items: list[FeedItem] = []
        deadline = time.monotonic() + timeout
        while not until(items):
            assert time.monotonic() < deadline, f"waited in vain; last: {items[-3:]}"
            self.feed.wait(0.1)
            items += self.feed.drain()
        return items

    def await_end(self, timeout: float = 60.0) -> Told:
        began = time.monotonic()
        items = self.collect(has_ended, timeout)
        return Told(items, time.monotonic() - began)

    def run(self, mode: str, *, request: dict[str, Any] | None = None, timeout: float = 60.0, **options: Any) -> Told:
        self.submit(mode, request=request, **options)
        return self.await_end(timeout)

    def await_stage(self, name: str) -> list[FeedItem]:
        return self.collect(
            lambda items: any(
                isinstance(event, e.Stage) and event.name == name
                for item in items
                if isinstance(item, RunEvents)
                for event in item.events
            )
        )

    def await_line(self, text: bytes) -> list[FeedItem]:
        return self.collect(
            lambda items: any(text in line for item in items if isinstance(item, LogLines) for line in item.lines)
        )

    def await_process(self) -> None:
        """Until a worker exists, whatever it does yet."""
        self._until(lambda: bool(self.left()))

    def await_standstill(self) -> int:
        """The bytes in the feed once nobody drains it and no more come."""
        looks = [-1]

        def stands_still() -> bool:
            looks.append(self.feed.pending_bytes)
            return looks[-1] == looks[-2] > 0

        self._until(stands_still, every=0.3)
        return looks[-1]

    def _until(self, holds: Callable[[], bool], every: float = 0.02, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(every)

    def left(self) -> list[int]:
        """Processes of any of the runs."""
        return [pid for request in self.requests for pid in tree.marked(request.id)]


def has_ended(items: list[FeedItem]) -> bool:
    return any(isinstance(event, e.Ended) for item in items if isinstance(item, RunEvents) for event in item.events)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    result = Engine(tmp_path)
    yield result
    result.supervisor.close()
    assert result.left() == []
