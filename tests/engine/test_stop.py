"""Stop works at every moment, within five seconds, and leaves no process behind."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import Any

import pytest

from compilescope.domain import events as e


def stop_and_wait(engine: Any) -> Any:
    engine.supervisor.stop()
    return engine.await_end()


@pytest.mark.parametrize(
    ("mode", "at_most"),
    [
        ("hang", 1.0),
        ("interrupted_with_a_failure", 1.0),
        ("hang_with_the_interpreter_locked", 4.0),
        ("hang_stubbornly", 5.0),
        ("flood", 1.5),
    ],
)
def test_that_a_worker_that_hangs_is_stopped_in_time(engine: Any, mode: str, at_most: float) -> None:
    engine.submit(mode)
    engine.collect(lambda items: len(items) > 1)
    time.sleep(0.3)

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert told.seconds < at_most
    assert engine.left() == []


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.1])
def test_that_stop_works_before_the_worker_has_said_hello(engine: Any, delay: float) -> None:
    engine.submit("hang_before_hello")
    time.sleep(delay)

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert told.seconds < 5.0
    assert engine.left() == []


@pytest.mark.parametrize("then", ["ok", "hang", "crash", "hang_stubbornly"])
def test_that_children_do_not_outlive_the_run_even_as_daemons(engine: Any, then: str) -> None:
    before = count_of_sleepers()
    engine.submit("daemons", then=then, signal="SIGKILL")
    if "hang" in then:
        engine.await_stage("compile")
        assert len(engine.left()) >= 4

        told = stop_and_wait(engine)
        assert told.seconds < 5.0
    else:
        told = engine.await_end()

    assert told.ended.outcome == {"ok": "finished", "crash": "crashed"}.get(then, "stopped")
    assert engine.left() == []
    assert count_of_sleepers() == before


def test_that_a_stranger_who_holds_the_pipes_does_not_hold_the_run(engine: Any) -> None:
    engine.submit("stranger", seconds=12, then="hang")
    engine.await_stage("compile")

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert told.seconds < 2.0


@pytest.mark.parametrize("then", ["ok", "crash", "hang"])
def test_that_a_child_without_mark_and_group_goes_with_the_run(engine: Any, then: str) -> None:
    before = count_of_sleepers()
    engine.submit("stranger", seconds=3600, then=then, signal="SIGKILL")
    if then == "hang":
        engine.await_stage("compile")
        assert count_of_sleepers() > before
        engine.supervisor.stop()

    engine.await_end()

    assert count_of_sleepers() == before


def test_that_stop_ends_a_worker_that_waits_for_its_reader(engine: Any) -> None:
    engine.submit("flood")
    time.sleep(2.0)  # nobody drains: the feed is full and the worker blocked in a write

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert told.seconds < 5.0


def test_that_runs_that_wait_are_stopped_too_and_end_once_each(engine: Any) -> None:
    ids = [engine.submit("hang").id for _ in range(3)]
    engine.await_stage("compile")

    engine.supervisor.stop()
    ends: list[str] = []
    while len(ends) < 3:
        items = engine.await_end().items
        ends += [item.run_id for item in items for event in getattr(item, "events", ()) if isinstance(event, e.Ended)]

    assert sorted(ends) == sorted(ids)
    assert not engine.supervisor.is_busy


def test_that_one_run_can_be_stopped_and_the_others_go_on(engine: Any) -> None:
    first = engine.submit("hang")
    engine.submit("ok")
    engine.await_stage("compile")

    engine.supervisor.stop(first.id)

    assert engine.await_end().ended.outcome == "stopped"
    assert engine.await_end().ended.outcome == "finished"


def test_that_stopping_what_does_not_run_does_nothing(engine: Any) -> None:
    engine.supervisor.stop()
    engine.supervisor.stop("nothing")

    assert engine.run("ok").ended.outcome == "finished"


def test_that_a_second_stop_need_not_wait_for_the_first(engine: Any) -> None:
    engine.submit("hang_stubbornly")
    engine.await_stage("compile")

    engine.supervisor.stop()
    time.sleep(0.2)
    engine.supervisor.stop(now=True)

    assert engine.await_end().seconds < 1.0


def test_that_closing_stops_everything_in_time(engine: Any) -> None:
    engine.submit("daemons", then="hang_stubbornly")
    engine.submit("ok")
    engine.await_stage("compile")

    began = time.monotonic()
    engine.supervisor.close()

    assert time.monotonic() - began < 5.5
    assert engine.left() == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("worker-", "supervisor"))]


def count_of_sleepers() -> int:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.count("sleep 3600")
