"""Searching the log: nothing is missed, however the lines came and however short the slices are."""

from __future__ import annotations

import pytest

from compilescope.domain.errors import UsageError
from compilescope.domain.log import Level, LogStore
from compilescope.domain.log_search import LogFilter, LogSearch


def numbered(count: int) -> LogStore:
    store = LogStore()
    for begin in range(0, count, 777):
        lines = [b"line %06d of the log" % number for number in range(begin, min(begin + 777, count))]
        store.append("run", 0.0, lines)
    return store


def found(store: LogStore, **wanted: object) -> list[int]:
    search = LogSearch(store, LogFilter(**wanted))  # type: ignore[arg-type]
    while not search.is_current:
        search.advance(0.0)
    return list(search.matches)


def test_that_every_line_is_found_by_its_number() -> None:
    store = numbered(30_000)

    assert all(found(store, text=f"line {number:06d}") == [number] for number in range(0, 30_000, 1499))


def test_that_case_does_not_matter_in_any_script() -> None:
    store = LogStore()
    store.append("run", 0.0, ["GRÖSSE".encode(), "größe".encode(), b"Loss", b"LOSS"])

    assert found(store, text="loss") == [2, 3]
    assert found(store, text="größe") == [1, 0][::-1]


def test_that_a_text_is_not_found_across_two_lines() -> None:
    store = LogStore()
    store.append("run", 0.0, [b"ab", b"cd"])

    assert found(store, text="bc") == []


def test_that_special_characters_stand_for_themselves_unless_asked_otherwise() -> None:
    store = LogStore()
    store.append("run", 0.0, [b"a.c", b"abc"])

    assert found(store, text="a.c") == [0]
    assert found(store, text="a.c", is_pattern=True) == [0, 1]


def test_that_a_pattern_sees_lines_one_by_one() -> None:
    store = numbered(5000)

    assert found(store, text=r"^line 0000\d[13] .*log$", is_pattern=True) == [n for n in range(100) if n % 10 in (1, 3)]


def test_that_level_and_text_hold_together() -> None:
    store = LogStore()
    store.append("run", 0.0, [b"ERROR: disk", b"disk", b"WARNING: disk", b"ERROR: net"])

    assert found(store, text="disk", level=Level.WARNING) == [0, 2]
    assert found(store, level=Level.ERROR) == [0, 3]


def test_that_a_search_goes_on_with_lines_that_come_later() -> None:
    store = LogStore()
    store.append("run", 0.0, [b"one hit"])
    search = LogSearch(store, LogFilter(text="hit"))
    search.advance(1.0)

    store.append("run", 0.0, [b"miss", b"another hit"])

    assert not search.is_current
    assert search.advance(1.0) == 1
    assert list(search.matches) == [0, 2]


def test_that_escaped_bytes_are_found_as_they_are_shown() -> None:
    store = LogStore()
    store.append("run", 0.0, [b"junk \xff here", b"plain"])

    assert found(store, text="\\xff") == [0]


def test_that_a_search_stops_when_its_slice_of_time_is_over_and_goes_on_from_there() -> None:
    store = numbered(200_000)
    search = LogSearch(store, LogFilter(text=r"\d+5 of", is_pattern=True))
    slices = 0
    while not search.is_current:
        search.advance(0.0005)
        slices += 1

    assert len(search.matches) == 20_000
    assert slices > 1


def test_that_a_broken_pattern_is_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="Not a regular expression"):
        LogFilter(text="(", is_pattern=True)


def test_that_spans_say_where_a_text_stands() -> None:
    assert LogFilter(text="ab").spans("xABab") == [(1, 3), (3, 5)]
    assert LogFilter().spans("anything") == []
    assert LogFilter(text="x*", is_pattern=True).spans("aaxx") == [(2, 4)]


def test_that_an_expression_that_would_take_years_is_given_up():
    store = LogStore()
    store.append("run", 0.0, [b"x", b"a" * 60 + b"!", b"x"])
    search = LogSearch(store, LogFilter(text=r"(a+)+$", is_pattern=True))

    search.advance(1.0)

    assert search.is_current
    assert "too long" in search.problem
    assert LogFilter(text=r"(a+)+$", is_pattern=True).spans("a" * 60 + "!") == []
