"""A log that is kept as one text."""

from __future__ import annotations

from compilescope.domain.logtext import log_portions, timed_log


def test_that_lines_come_back_with_their_times() -> None:
    lines = [(0.5, "one"), (0.5, ""), (2.0, "two\x1f with a mark")]

    assert log_portions(timed_log(lines)) == [(0.5, ["one", ""]), (2.0, ["two  with a mark"])]


def test_that_a_log_without_times_or_cut_in_one_is_read() -> None:
    assert log_portions("first\nsecond") == [(0.0, ["first", "second"])]
    assert log_portions("") == []
    assert log_portions("\x1fnonsense\nline") == [(0.0, ["line"])]
