"""The trace file that a worker writes, and a disk that has no room for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.domain import events as e
from compilescope.domain.trace import read_text
from compilescope.worker.trace_file import TraceFile

FULL = Path("/dev/full")
SPAN = e.TextSpan(file="trace.log", offset=0, length=9)


def test_that_a_text_lies_where_it_is_said_to_lie(tmp_path: Path) -> None:
    file = TraceFile(str(tmp_path / "trace.log"))
    file.write("V1", {"a": 1}, "first")
    offset, length = file.write("V1", {"b": 1}, "two\nlines")
    file.close()

    assert read_text(tmp_path / "trace.log", offset, length) == "two\nlines"
    assert file.readable([e.Text(kind="guards")]) == [e.Text(kind="guards")]


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_that_a_full_disk_costs_the_texts_and_not_the_story() -> None:
    file = TraceFile(str(FULL))
    file.write("V1", {"a": 1}, "x" * 2**20)
    file.flush()

    told = [e.Compile(state="begin"), e.Text(kind="guards"), e.Cache(state="miss", key="k", components=SPAN)]
    first, again = file.readable(told), file.readable(told)
    file.close()

    assert again == [e.Compile(state="begin"), e.Cache(state="miss", key="k")]
    assert first[:2] == again
    (warning,) = first[2:]
    assert isinstance(warning, e.Warning)
    assert "could not be written any further (No space left on device)" in warning.message
