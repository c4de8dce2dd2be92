"""The log's store: what a line looks like, how loud it is, and that a million of them fit."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from compilescope.domain.log import Level, LogStore, displayed


def stored(*lines: bytes) -> LogStore:
    store = LogStore()
    store.append("default", 1.0, lines)
    return store


def levels(*lines: bytes) -> list[Level]:
    store = stored(*lines)
    return [store.level(index) for index in range(len(store))]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (b"V1129 12:34:56.789000 4242 torch/_dynamo/guards.py:310] [0/0] GUARDS", Level.DEBUG),
        (b"I1129 12:34:56.789000 4242 torch/_inductor/x.py:1] [0/0] Step 3", Level.INFO),
        (b"W1129 12:34:56.789000 4242 torch/_dynamo/convert_frame.py:910] hit the limit", Level.WARNING),
        (b"[rank0]:E1129 12:34:56.789000 4242 torch/x.py:1] broken", Level.ERROR),
        (b"[W1129 12:34:56.1 TensorImpl.cpp:12] Warning: old", Level.WARNING),
        (b"[W TensorImpl.cpp:12] Warning: older", Level.WARNING),
        (b"[WARNING] mind this", Level.WARNING),
        (b"WARNING:root:mind this", Level.WARNING),
        (b"DEBUG step 4", Level.DEBUG),
        (b"2026-11-29 12:34:56,789 - trainer - ERROR - lost", Level.ERROR),
        (b"[2026-11-29 12:34:56,789] torch._dynamo: [INFO] Step 1", Level.INFO),
        (b"/home/me/model.py:12: UserWarning: to copy construct", Level.WARNING),
        (b"kernel.cpp:12:3: error: expected ';'", Level.ERROR),
        (b"kernel.cpp:12:3: warning: unused variable", Level.WARNING),
        (b"torch._dynamo.exc.Unsupported: not a level by itself", Level.OUTPUT),
        (b"RuntimeError: The size of tensor a", Level.ERROR),
        (b"Traceback (most recent call last):", Level.ERROR),
        (b"error: no such file", Level.ERROR),
        (b"terminate called after throwing", Level.ERROR),
        (b"loss 0.123 errors 0 WARNINGS none", Level.OUTPUT),
        (b"INFORMATION is not a level", Level.OUTPUT),
        (b"Epoch 3: the Error rate fell", Level.OUTPUT),
        (b"", Level.OUTPUT),
    ],
)
def test_that_a_line_has_the_level_that_it_names(line: bytes, level: Level) -> None:
    assert levels(line) == [level]


def test_that_a_traceback_is_an_error_to_its_last_line() -> None:
    lines = (
        b"Traceback (most recent call last):",
        b'  File "model.py", line 16, in forward',
        b"    y = y * 0.5",
        b"some.module.OddlyNamed: it went wrong",
        b"all is well again",
    )

    assert levels(*lines) == [Level.ERROR] * 4 + [Level.OUTPUT]


def test_that_the_source_line_below_a_warning_belongs_to_it() -> None:
    lines = (b"/x.py:3: FutureWarning: soon", b"  x = old()", b"print")

    assert levels(*lines) == [Level.WARNING, Level.WARNING, Level.OUTPUT]


def test_that_a_traceback_goes_on_over_batches_and_not_over_runs() -> None:
    store = LogStore()

    store.append("one", 1.0, [b"Traceback (most recent call last):"])
    store.append("two", 1.0, [b"  indented output of another run"])
    store.append("one", 1.1, [b"  File x"])

    assert [store.level(i) for i in range(3)] == [Level.ERROR, Level.OUTPUT, Level.ERROR]
    assert [store.label(i) for i in range(3)] == ["one", "two", "one"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[32;1mgreen\x1b[0m and \x1b]0;title\x07plain", "green and plain"),
        (b" 10%|#   |\r 50%|##  |\r100%|####| done", "100%|####| done"),
        (b"half\r", "half"),
        (b"\r\r", ""),
        (b"caf\xe9 \xff\xfe", "caf\\xe9 \\xff\\xfe"),
        ("naïve 漢字".encode(), "naïve 漢字"),
        (b"nul \x00 bell \x07 tab\there", "nul \\x00 bell \\x07 tab\there"),
        (b"cut \x1b[3", "cut \\x1b[3"),
    ],
)
def test_that_a_line_is_stored_as_it_is_to_be_shown(raw: bytes, shown: str) -> None:
    assert displayed(raw).decode() == shown
    assert stored(raw).text(0) == shown


def test_that_junk_beside_it_does_not_change_a_line() -> None:
    store = stored(b"before", bytes(range(256)).replace(b"\n", b""), b"after")

    assert (store.text(0), store.text(2), len(store)) == ("before", "after", 3)


def test_that_every_line_of_many_blocks_comes_back() -> None:
    store = LogStore()
    for batch in range(40):
        store.append("run", float(batch), [b"line %d" % (batch * 1000 + i) for i in range(1000)])

    assert len(store) == 40_000
    assert all(store.text(index) == f"line {index}" for index in range(0, 40_000, 7))
    assert store.at(12_345) == 12.0
    with pytest.raises(IndexError):
        store.text(40_000)


def test_that_a_cut_line_is_cut_between_characters() -> None:
    assert stored("ää".encode()).text(0, 3) == "ä"


def test_that_all_lines_or_chosen_ones_are_written() -> None:
    store, everything, some = stored(b"one", b"two", b"three"), io.BytesIO(), io.BytesIO()

    store.write(everything)
    store.write(some, [0, 2])

    assert everything.getvalue() == b"one\ntwo\nthree\n"
    assert some.getvalue() == b"one\nthree\n"


def test_that_levels_are_counted_and_a_cleared_store_is_empty() -> None:
    store = stored(b"ERROR: a", b"plain", b"ERROR: b")
    assert store.counts[Level.ERROR] == 2

    store.clear()

    assert (len(store), sum(store.counts), store.labels) == (0, 0, [])


def test_that_a_line_takes_little_more_than_its_text() -> None:
    lines = [b"x" * 80] * 1000
    tracemalloc.start()
    store = LogStore()
    for _ in range(100):
        store.append("run", 0.0, lines)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken / len(store) < 110


def test_that_the_oldest_lines_go_when_there_is_no_more_room() -> None:
    store = LogStore(room_bytes=1_000_000)

    for batch in range(100):
        store.append("run", 0.0, [b"ERROR: line %06d" % (batch * 1000 + i) for i in range(1000)])

    assert store.end == 100_000
    assert 25_000 < len(store) < 45_000
    assert store.text(store.begin) == f"ERROR: line {store.begin:06d}"
    assert store.text(99_999) == "ERROR: line 099999"
    assert store.counts[Level.ERROR] == len(store)
    with pytest.raises(IndexError):
        store.text(store.begin - 1)
