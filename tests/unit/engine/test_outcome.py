"""How a run ended, from what its process told and how it left."""

from __future__ import annotations

from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.engine.outcome import Halt, Told, judge

HELLO, DONE = e.Hello(), e.Stage(name="done")
FAILURE = e.Failure(error=e.RunError(stage="eager", type="ValueError", message="no"))


def outcome(events: list[e.Event], status: int, **changes: Any) -> str | None:
    told = Told()
    told.note(events)
    values: dict[str, Any] = {"task": "run", "halt": Halt.NONE, "timeout_s": 1.0} | changes
    ended = judge(told, status, **values)
    return ended.outcome if ended else None


@pytest.mark.parametrize(
    ("events", "status", "halt", "expected"),
    [
        ([HELLO, DONE], 0, Halt.NONE, None),
        ([HELLO, DONE], 0, Halt.STOPPED, None),
        ([HELLO, DONE], -9, Halt.LINGERED, None),
        ([HELLO, DONE], -11, Halt.NONE, "crashed"),
        ([HELLO, FAILURE], 1, Halt.NONE, "failed"),
        ([HELLO, FAILURE], -9, Halt.LINGERED, "failed"),
        ([HELLO, FAILURE], 1, Halt.STOPPED, "stopped"),
        ([HELLO, FAILURE], 1, Halt.TIMED_OUT, "timed_out"),
        ([HELLO], 0, Halt.NONE, "crashed"),
        ([HELLO], 1, Halt.NONE, "crashed"),
        ([], 1, Halt.NONE, "crashed"),
        ([], -15, Halt.STOPPED, "stopped"),
        ([], -15, Halt.TIMED_OUT, "timed_out"),
    ],
)
def test_the_outcome_of_a_process(events: list[e.Event], status: int, halt: Halt, expected: str | None) -> None:
    assert outcome(events, status, halt=halt) == expected


@pytest.mark.parametrize("task", ["inspect", "doctor"])
def test_that_short_tasks_need_no_stage_to_be_done(task: str) -> None:
    assert outcome([HELLO], 0, task=task) is None
    assert outcome([], 0, task=task) == "crashed"
    assert outcome([HELLO, FAILURE], 0, task=task) == "failed"


@pytest.mark.parametrize(("status", "word"), [(-11, "SIGSEGV"), (-9, "memory"), (-50, "signal 50"), (7, "status 7")])
def test_that_a_crash_is_told_in_words(status: int, word: str) -> None:
    told = Told()
    told.note([HELLO, e.Stage(name="eager")])
    ended = judge(told, status, task="run", halt=Halt.NONE, timeout_s=1.0)

    assert ended and ended.error
    assert word in ended.error.message + ended.error.hint
    assert ended.error.stage == "eager"
    assert ended.error.hint


@pytest.mark.parametrize(("status", "word"), [(74, "closed the file descriptor"), (130, "interrupted from outside")])
def test_that_a_worker_that_can_tell_no_more_is_not_said_to_have_called_exit(status: int, word: str) -> None:
    told = Told()
    told.note([HELLO, e.Stage(name="load")])
    ended = judge(told, status, task="run", halt=Halt.NONE, timeout_s=1.0)

    assert ended and ended.error
    assert word in ended.error.message
    assert "os._exit" not in ended.error.hint
