"""Bytes into lines, lines into events."""

from __future__ import annotations

import random

import pytest

from compilescope.domain import events as e
from compilescope.engine.lines import LineSplitter, decode_lines


def split(data: bytes, *sizes: int, limit: int = 1000) -> list[bytes]:
    """All lines of `data`, fed in chunks of the given sizes, and the rest at once."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for size in sizes:
        lines += splitter.feed(data[:size], 0.0)
        data = data[size:]
    if data:
        lines += splitter.feed(data, 0.0)
    return lines + splitter.finish()


def test_that_lines_do_not_depend_on_where_chunks_end() -> None:
    data = b"one\ntwo\r\n\nthree \xff\xfe\n" + b"x" * 300 + b"\nlast"
    expected = [b"one", b"two", b"", b"three \xff\xfe", b"x" * 300, b"last"]
    chance = random.Random(1)

    for _ in range(200):
        assert split(data, *(chance.randrange(1, 40) for _ in range(60))) == expected


def test_that_a_long_line_is_cut_and_says_how_much_is_missing() -> None:
    for sizes in ((), (500, 700, 800)):
        (line,) = split(b"y" * 2_000 + b"\n", *sizes)

        assert line == b"y" * 1000 + " … (1,000 more bytes)".encode()


def test_that_a_line_that_never_ends_takes_no_memory() -> None:
    splitter = LineSplitter(1000)

    for _ in range(2_000):
        assert splitter.feed(b"z" * 10_000, 0.0) == []

    (line,) = splitter.finish()
    assert len(line) < 1100
    assert b"19,999,000 more bytes" in line


@pytest.mark.parametrize("form", [b"\r%d %%", b"%d %%\r"])
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_that_a_progress_bar_leaves_its_last_state(form: bytes, size: int) -> None:
    data = b"".join(form % number for number in range(101)) + b"\nnext\n"

    lines = split(data, *[size] * (len(data) // size))

    assert lines[-2:] == [b"100 %", b"next"]


def test_that_a_progress_bar_shows_one_state_a_second_while_it_runs() -> None:
    splitter = LineSplitter(1000)

    shown = [line for tick in range(1000) for line in splitter.feed(b"\rstep %d" % tick, tick / 100)]

    assert 8 <= len(shown) <= 11
    assert shown[0] == b"step 0"


def test_that_a_batch_with_a_broken_line_keeps_the_good_ones() -> None:
    good = e.encode(e.Stage(name="load")).encode()

    events, others = decode_lines([good, b'{"type":"stage",}', good, b"text"])

    assert [type(event) for event in events] == [e.Stage, e.Stage]
    assert sorted(others) == [b"text", b'{"type":"stage",}']


def test_that_two_broken_lines_are_not_read_as_one_good() -> None:
    lines = [b'{"type":"stage","name":{"a":1}', b'{"b":2},"state":"begin"}', b'{"type":"stage","name":["x"}', b"{}]}"]

    events, others = decode_lines(lines)

    assert events == []
    assert sorted(others) == sorted(lines)


def test_that_an_unknown_event_is_skipped_and_is_no_log() -> None:
    assert decode_lines([b'{"type":"from_the_future","at":1}']) == ([], [])


def test_that_a_worker_cannot_write_the_end_of_its_run() -> None:
    assert decode_lines([e.encode(e.Ended()).encode()]) == ([], [])


def test_that_what_is_no_event_is_log_whatever_it_is() -> None:
    lines = [b"", b"{}", b'{"type":1}', b"[" * 100_000, b"\xff{}", b'{"type":"stage","name":"\xe9"}', b"1" * 5000]

    events, others = decode_lines(lines)

    assert events == []
    assert sorted(others) == sorted(lines)


def test_that_every_event_survives_the_way() -> None:
    sent = [kind() for kind in e.TYPES.values() if kind is not e.Ended]

    events, others = decode_lines([e.encode(event).encode() for event in sent])

    assert events == sent
    assert others == []


def test_that_deep_json_is_log() -> None:
    line = b'{"type":"stage","name":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert decode_lines([line]) == ([], [line])


def test_that_numbers_beyond_a_float_do_no_harm() -> None:
    events, _ = decode_lines([b'{"type":"samples","seconds":[1e999,-1e999]}', b'{"type":"stage"}'])

    assert e.Stage() in events
