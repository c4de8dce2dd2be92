"""Progress of a comparison on stderr: on a terminal, and elsewhere."""

from __future__ import annotations

import io

import pytest

from compilescope.cli.progress import Progress
from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tell(stream: io.StringIO, ended: e.Ended) -> str:
    run = Run("a", config=Config(), workload=Workload(script="model.py"))
    progress = Progress(1, stream)
    progress.begin(1, run)
    loaded = e.Stage(name="load", state="end", duration_s=1.5)
    for event in (e.Hello(), e.Stage(name="load"), loaded, e.Stage(name="eager")):
        run.apply(event)
        progress.show(run)
    run.apply(ended)
    progress.end(run)
    return stream.getvalue()


def test_that_a_terminal_sees_each_stage_and_the_one_that_is_on() -> None:
    text = tell(Terminal(), e.Ended(outcome="finished"))

    assert "cold  load       1.50 s\n" in text
    assert "cold  eager      … 0 s" in text
    assert text.splitlines()[-1].split("\x1b[K")[-1].startswith("  finished after")


def test_that_a_file_gets_a_line_as_a_run_begins_and_one_as_it_ends() -> None:
    first, last = tell(io.StringIO(), e.Ended(outcome="finished")).splitlines()

    assert first == "[1/1] default"
    assert last.startswith("  finished after")


def test_that_lines_of_runs_that_go_on_at_once_say_whose_they_are() -> None:
    stream = Terminal()
    progress = Progress(2, stream)
    runs = [Run(name, config=Config(), workload=Workload(script="model.py")) for name in "ab"]
    for number, run in enumerate(runs, 1):
        progress.begin(number, run)
    for run in runs:
        run.apply_all([e.Hello(), e.Stage(name="load"), e.Stage(name="load", state="end", duration_s=1.5)])
        progress.show(run)
    runs[0].apply(e.Ended())
    progress.end(runs[0])

    lines = stream.getvalue().splitlines()
    assert [line for line in lines if "load" in line] == [
        "  [1] cold  load       1.50 s",
        "  [2] cold  load       1.50 s",
    ]
    assert lines[-1].startswith("  [1] finished after")


def test_that_a_run_that_never_began_is_named_and_has_no_duration() -> None:
    stream = io.StringIO()
    run = Run("r", config=Config(dynamic=True), workload=Workload(script="model.py"))
    run.apply(e.Ended(outcome="stopped"))

    Progress(2, stream).end(run)

    assert stream.getvalue() == "  default · dynamic: not run\n"


@pytest.mark.parametrize("outcome", ["failed", "crashed", "timed_out"])
def test_that_a_crash_shows_the_last_lines_and_none_of_their_control_characters(outcome: str) -> None:
    lines = tuple(f"\x1b[31mline {number}\x1b[0m\a" for number in range(20))

    text = tell(io.StringIO(), e.Ended(outcome=outcome, last_lines=lines))

    assert "line 19" in text and "line 10" in text and "line 9" not in text
    assert "| line 19" in text
    assert "\x1b" not in text and "\a" not in text
