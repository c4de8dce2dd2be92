"""`compilescope trace`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fakes.stories import TRANSCRIPTS, transcript


def test_that_a_trace_is_told_in_lines_and_as_json(command_line: Any) -> None:
    found = command_line.run("trace", str(transcript("graph_break_and_recompile")), "--json", "out.json")

    assert found.returncode == 0
    assert "Captured      10 graphs" in found.stdout
    assert "Graph break   graph_break_and_recompile.py:10 4×: Data-dependent branching" in found.stdout
    result = json.loads((command_line.folder / "out.json").read_text())
    (run,) = result["runs"]
    assert result["schema"] == 1 and result["recommendation"] is None
    assert run["compile"]["graphs"] == 10
    assert [row["count"] for row in run["graph_breaks"]] == [4, 2, 2]
    assert run["verdict"] is None


def test_that_a_folder_is_a_run_a_process(command_line: Any) -> None:
    found = command_line.run("trace", str(TRANSCRIPTS), "--json", "out.json")

    assert found.returncode == 0
    assert len(json.loads((command_line.folder / "out.json").read_text())["runs"]) == 12


def test_that_what_was_not_compiled_is_said(command_line: Any) -> None:
    found = command_line.run("trace", str(transcript("lstm_not_compiled")), "--json", "out.json")

    assert "nothing was compiled" in found.stdout
    (run,) = json.loads((command_line.folder / "out.json").read_text())["runs"]
    assert run["verdict"]["kind"] == "not_compiled"


def test_that_a_foreign_file_is_one_sentence_and_bad_usage(command_line: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of the kind\n")

    found = command_line.run("trace", str(tmp_path / "notes.txt"))

    assert found.returncode == 2
    assert "is not a structured torch trace" in found.stderr
    assert "Traceback" not in found.stderr


def test_that_a_damaged_file_among_others_is_reported_and_the_others_read(command_line: Any, tmp_path: Path) -> None:
    packed = transcript("mlp_default").read_bytes()
    (tmp_path / "good.log.gz").write_bytes(packed)
    (tmp_path / "bad.log.gz").write_bytes(packed[:20_000])

    found = command_line.run("trace", str(tmp_path))

    assert found.returncode == 1
    assert "bad.log.gz is damaged" in found.stderr
    assert "1 graph" in found.stdout
