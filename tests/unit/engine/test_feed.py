"""The queue between the engine's threads and the one that shows."""

from __future__ import annotations

import threading
import time

from compilescope.domain import events as e
from compilescope.engine.feed import Feed, LogLines, RunEvents


def lines(count: int, text: bytes = b"x" * 100) -> LogLines:
    return LogLines(run_id="a", at=0.0, lines=(text,) * count)


def test_that_items_come_out_in_order_and_no_more_than_asked_for() -> None:
    feed = Feed()
    for number in range(5):
        feed.put(RunEvents(run_id=str(number), events=(e.Stage(),)))

    assert [item.run_id for item in feed.drain(3)] == ["0", "1", "2"]
    assert [item.run_id for item in feed.drain(3)] == ["3", "4"]
    assert feed.drain(3) == []


def test_that_waiting_ends_with_the_next_item_or_in_time() -> None:
    feed = Feed()
    assert not feed.wait(0.01)

    threading.Timer(0.05, feed.put, [lines(1)]).start()

    began = time.monotonic()
    assert feed.wait(5.0)
    assert time.monotonic() - began < 4.0


def test_that_a_full_feed_has_room_again_once_it_is_drained() -> None:
    feed = Feed(room_bytes=10_000)
    feed.put(lines(50))
    assert feed.wait_for_room(0.0)
    feed.put(lines(50))
    assert not feed.wait_for_room(0.01)

    feed.drain()

    assert feed.wait_for_room(0.0)
    assert feed.pending_bytes == 0
