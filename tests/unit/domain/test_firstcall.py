"""A first call by part: every second once."""

from __future__ import annotations

import pytest

from compilescope.domain import events as e
from compilescope.domain.firstcall import FIRST_USE, OUTSIDE, first_call_parts, first_use_s
from compilescope.domain.story import ProcessStory


def phase(name: str, begin: float, end: float, *, group: str = "inductor", thread: int = 1) -> list[e.Event]:
    return [
        e.Phase(at=begin, name=name, group=group, thread=thread),
        e.Phase(at=end, name=name, group=group, thread=thread, state="end", duration_s=end - begin),
    ]


def told(*events: e.Event) -> ProcessStory:
    """A process whose first call took from second 10 to second 20."""
    story = ProcessStory(e.Hello())
    for event in sorted(events, key=lambda event: event.at):
        story.apply(event)
    story.apply(e.FirstCall(at=20.0, side="compiled", duration_s=10.0))
    return story


def parts(*events: e.Event) -> dict[tuple[str, str], float]:
    found = first_call_parts(told(*events))
    assert found is not None
    assert sum(found.parts.values()) == pytest.approx(found.total_s)
    return found.parts


def test_that_a_phase_is_without_those_inside_it_and_the_rest_is_outside() -> None:
    found = parts(*phase("outer", 11.0, 18.0), *phase("inner", 12.0, 15.0, group="codegen"))

    assert found == {(OUTSIDE, ""): 3.0, ("inductor", "outer"): 4.0, ("codegen", "inner"): 3.0}


def test_that_of_threads_that_work_at_once_the_calling_one_counts() -> None:
    found = parts(*phase("wait", 11.0, 16.0), *phase("build", 12.0, 18.0, thread=2))

    # what goes on when the caller does nothing is not lost
    assert found == {(OUTSIDE, ""): 3.0, ("inductor", "wait"): 5.0, ("inductor", "build"): 2.0}


def test_that_preparations_are_taken_out_of_the_phase_that_they_lie_in() -> None:
    story = told(*phase("build", 11.0, 19.0), e.FirstUse(at=15.0, name="header", duration_s=3.0))

    found = first_call_parts(story)

    assert found is not None
    assert found.groups == {OUTSIDE: 2.0, "inductor": 5.0, FIRST_USE: 3.0}
    assert first_use_s(story) == 3.0


def test_that_what_lies_before_or_after_the_call_is_no_part_of_it() -> None:
    events = [*phase("earlier", 2.0, 3.0), *phase("reaches in", 9.0, 11.0), *phase("empty", 12.0, 12.0)]
    story = told(*events, e.FirstUse(at=5.0, name="import", duration_s=4.0))
    for event in phase("recompile", 21.0, 25.0):
        story.apply(event)

    found = first_call_parts(story)

    assert found is not None
    assert found.parts == {("inductor", "reaches in"): 1.0, (OUTSIDE, ""): 9.0}
    assert first_use_s(story) == 0.0


def test_that_without_a_first_call_there_are_no_parts() -> None:
    assert first_call_parts(None) is None
    assert first_call_parts(ProcessStory(e.Hello())) is None
