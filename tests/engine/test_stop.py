"""Stop works at every moment, within five seconds, and leaves no process behind."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.engine import process

# what each mode of the fake worker tells when it has begun to hang
BEGINS = {"hang_with_the_interpreter_locked": "eager", "flood": "eager"}


def stop_and_wait(engine: Any) -> Any:
    engine.supervisor.stop()
    return engine.await_end()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a stop follow each other soon: a busy machine takes its time between them."""
    monkeypatch.setattr(process, "INTERRUPT_S", 0.5)
    monkeypatch.setattr(process, "TERMINATE_S", 0.5)


def test_that_all_steps_of_a_stop_together_take_less_than_five_seconds() -> None:
    assert process.INTERRUPT_S + process.TERMINATE_S + process.READERS_S / 2 + 2 * process.HELD_S < 5.0


@pytest.mark.parametrize("mode", ["hang", "interrupted_with_a_failure", "flood"])
def test_that_an_interrupt_is_enough_for_a_worker_that_hears_it(
    engine: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what does not end by the interrupt would not end
    monkeypatch.setattr(process, "INTERRUPT_S", 3600.0)
    engine.submit(mode)
    engine.await_stage(BEGINS.get(mode, "compile"))

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert engine.left() == []


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("mode", ["hang_with_the_interpreter_locked", "hang_stubbornly"])
def test_that_a_worker_that_does_not_hear_is_stopped_all_the_same(engine: Any, mode: str) -> None:
    engine.submit(mode)
    engine.await_stage(BEGINS.get(mode, "compile"))

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert engine.left() == []


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("has_started", [False, True])
def test_that_stop_works_before_the_worker_has_said_hello(engine: Any, has_started: bool) -> None:
    engine.submit("hang_before_hello")
    if has_started:
        engine.await_process()

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"
    assert engine.left() == []


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("then", ["ok", "hang", "crash", "hang_stubbornly"])
def test_that_children_do_not_outlive_the_run_even_as_daemons(engine: Any, then: str) -> None:
    engine.submit("daemons", then=then, signal="SIGKILL")
    if "hang" in then:
        engine.await_stage("compile")
        assert len(engine.left()) >= 4

        told = stop_and_wait(engine)
    else:
        told = engine.await_end()

    assert told.ended.outcome == {"ok": "finished", "crash": "crashed"}.get(then, "stopped")
    # each of them carries the run's mark
    assert engine.left() == []


def test_that_a_stranger_who_holds_the_pipes_does_not_hold_the_run(engine: Any) -> None:
    engine.submit("stranger", seconds=3600, then="hang")
    engine.await_stage("compile")

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"


@pytest.mark.parametrize("then", ["ok", "crash", "hang"])
def test_that_a_child_without_mark_and_group_goes_with_the_run(engine: Any, then: str) -> None:
    # a number that no other test sleeps for
    seconds = random.randrange(10_000, 10_000_000)
    engine.submit("stranger", seconds=seconds, then=then, signal="SIGKILL")
    if then == "hang":
        engine.await_stage("compile")
        assert count_of_sleepers(seconds) > 0
        engine.supervisor.stop()

    engine.await_end()

    assert count_of_sleepers(seconds) == 0


def test_that_stop_ends_a_worker_that_waits_for_its_reader(engine: Any) -> None:
    engine.submit("flood")
    # nobody drains: the feed is full and the worker blocked in a write
    engine.await_standstill()

    told = stop_and_wait(engine)

    assert told.ended.outcome == "stopped"


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


def test_that_a_second_stop_need_not_wait_for_the_first(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "INTERRUPT_S", 3600.0)
    engine.submit("hang_stubbornly")
    engine.await_stage("compile")

    engine.supervisor.stop()
    engine.await_line(b"heard it")
    engine.supervisor.stop(now=True)

    assert engine.await_end().ended.outcome == "stopped"


@pytest.mark.usefixtures("hurried")
def test_that_closing_stops_everything_in_time(engine: Any) -> None:
    engine.submit("daemons", then="hang_stubbornly")
    engine.submit("ok")
    engine.await_stage("compile")

    began = time.monotonic()
    engine.supervisor.close()

    assert time.monotonic() - began < 5.5
    assert engine.left() == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("worker-", "supervisor"))]


def count_of_sleepers(seconds: int) -> int:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return found.count(f"sleep {seconds}")
