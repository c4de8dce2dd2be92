"""Reading trace files: records in order, payloads where they lie, and a sentence for what is no trace."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compilescope.domain.errors import UsageError
from compilescope.domain.trace import find_traces, read_text, read_trace


def line(metadata: dict[str, Any], payload: str | None = None, time: str = "1129 17:06:30.300000") -> str:
    """A record as TORCH_TRACE writes it."""
    if payload is not None:
        metadata = {**metadata, "has_payload": hashlib.md5(payload.encode()).hexdigest()}
    text = f"V{time} 415 torch/_dynamo/utils.py:12] {json.dumps(metadata)}\n"
    return text if payload is None else text + "".join(f"\t{part}\n" for part in payload.split("\n"))


FRAME = {"frame_id": 3, "frame_compile_id": 1, "attempt": 0}


def test_that_records_come_in_order_with_ids_times_and_payloads(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        line({"str": ["/m.py", 1]})
        + line({"dynamo_output_graph": {}, **FRAME}, "class G:\n    def forward(self):\n", "1129 17:06:31.550000")
        + line({"dynamo_start": {"stack": []}, "rank": 2, **FRAME})
    )

    first, second, third = ((r.kind, r.compile_id, r.rank, round(r.at, 3), r.payload) for r in read_trace(path))

    assert first == ("str", None, None, 0.0, "")
    assert second == ("dynamo_output_graph", "3/1", None, 1.25, "class G:\n    def forward(self):\n")
    assert third[:3] == ("dynamo_start", "3/1", 2)


def test_that_a_payload_can_be_read_again_from_its_offset_also_in_a_packed_file(tmp_path: Path) -> None:
    text = line({"a": {}}, "é\n\ttabbed") + line({"b": {}}, "second\npayload")
    plain, packed = tmp_path / "a.log", tmp_path / "a.log.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))

    for path in (plain, packed):
        found = [read_text(path, r.offset, r.length) for r in read_trace(path)]
        assert found == ["é\n\ttabbed", "second\npayload"]


def test_that_a_record_longer_than_one_read_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    large = "\n".join(f"x = {number}" for number in range(900_000))
    path.write_text(line({"a": {}}, large) + line({"b": {}}, "end"))

    records = [(r.kind, len(r.payload)) for r in read_trace(path)]

    assert records == [("a", len(large)), ("b", 3)]


def test_that_half_a_record_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(line({"a": {}}, "whole") + line({"dynamo_start": {"stack": []}, **FRAME})[:90])

    assert [r.kind for r in read_trace(path)] == ["a"]


def test_that_new_year_does_not_turn_time_back(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(line({"a": {}}, time="1231 23:59:59.000000") + line({"b": {}}, time="0101 00:00:01.500000"))

    assert [round(r.at, 3) for r in read_trace(path)] == [0.0, 2.5]


def test_that_a_compiled_autograd_graph_stands_in_front_of_the_id(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(line({"a": {}, "compiled_autograd_id": 0, **FRAME}) + line({"a": {}, "compiled_autograd_id": 4}))

    assert [r.compile_id for r in read_trace(path)] == ["!0/3/1", "!4"]


@pytest.mark.parametrize("content", [b"hello\nworld\n", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"Very\nVast\n"])
def test_that_a_foreign_file_is_refused_with_a_sentence_and_a_hint(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(content)

    with pytest.raises(UsageError, match="not a structured torch trace") as refused:
        list(read_trace(path))

    assert "TORCH_TRACE" in refused.value.hint


def test_that_an_empty_file_and_a_pipe_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    os.mkfifo(tmp_path / "pipe.log")

    with pytest.raises(UsageError, match=r"empty\.log is empty"):
        list(read_trace(tmp_path / "empty.log"))
    with pytest.raises(UsageError, match="is no file that can be read"):
        list(read_trace(tmp_path / "pipe.log"))


def test_that_a_day_that_no_year_has_does_not_end_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text('V9999 17:06:30.5 1 f.py:1] {"a": 1}\n' + line({"b": {}}))

    assert [record.kind for record in read_trace(path)] == ["a", "b"]


@pytest.mark.parametrize("spoil", [lambda packed: packed[:-2000], lambda packed: packed[:-2000] + bytes(2000)])
def test_that_a_damaged_packed_file_is_read_up_to_its_damage(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    noise = "".join(random.Random(1).choices("abcdefghijklmnop", k=20_000))
    text = "".join(line({"a": number}, noise[number * 100 : number * 100 + 100]) for number in range(200))
    path = tmp_path / "a.log.gz"
    path.write_bytes(spoil(gzip.compress(text.encode())))
    found = []

    with pytest.raises(UsageError, match="is damaged"):
        for record in read_trace(path):
            found.append(record.value)
    with pytest.raises(UsageError, match="is damaged"):
        read_text(path, 0, len(text))

    # what lies close to the damage may be unpacked wrongly before it is noticed
    assert found[:100] == list(range(100))


def test_that_a_cut_packed_file_and_a_missing_one_are_told(tmp_path: Path) -> None:
    cut = tmp_path / "a.log.gz"
    cut.write_bytes(gzip.compress(line({"a": {}}, "x" * 5000).encode())[:60])

    with pytest.raises(UsageError, match="damaged"):
        list(read_trace(cut))
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_trace(tmp_path / "none.log"))


def test_that_a_folder_stands_for_all_its_logs(tmp_path: Path) -> None:
    (tmp_path / "rank1").mkdir()
    for name in ("dedicated_log_torch_trace_a.log", "rank1/b.log.gz", "notes.txt"):
        (tmp_path / name).touch()

    assert [path.name for path in find_traces(tmp_path)] == ["dedicated_log_torch_trace_a.log", "b.log.gz"]


def test_that_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no trace"):
        find_traces(tmp_path)
