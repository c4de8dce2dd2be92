"""Play-offs that `compilescope bench` makes once all runs are over, with a fake worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilescope.cli import main

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fakes" / "fake_worker.py"


class Terminal:
    """`bench` of two configurations that their own runs cannot tell apart."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def bench(self, *words: str, **options: Any) -> tuple[int, dict[str, Any], str]:
        """Status, JSON, stderr."""
        script = self._folder / "script.py"
        script.write_text(json.dumps({"mode": "ok", **options}))
        file = self._folder / "out.json"
        dynamic = ("--dynamic", "auto", "--dynamic", "on")
        status = main(["bench", str(script), "--entry", "Model", *dynamic, "--json", str(file), *words])
        return status, json.loads(file.read_text()), self._capsys.readouterr().err


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("compilescope.engine.supervisor.worker_program", lambda: FAKE_WORKER)
    return Terminal(tmp_path, capsys)


def test_that_a_play_off_decides_what_to_use(terminal: Terminal) -> None:
    status, result, err = terminal.bench(playoff={"eager_s": 1.1e-3})

    default, dynamic = result["runs"]
    (played,) = result["play_offs"]
    assert status == 0
    assert (played["one"], played["two"], played["problem"]) == (dynamic["id"], default["id"], None)
    assert result["recommendation"]["run"] == dynamic["id"]
    assert "In a play-off default · dynamic took 0.9" in result["recommendation"]["summary"]
    assert "Play-off: default against default · dynamic\n  finished after" in err


def test_that_no_play_off_is_made_where_none_is_wanted(terminal: Terminal) -> None:
    status, result, err = terminal.bench("--no-play-off", playoff={"eager_s": 1.1e-3})

    assert (status, result["play_offs"], len(result["recommendation"]["ties"])) == (0, [], 1)
    assert "Play-off" not in err


def test_that_a_play_off_that_fails_fails_nothing_else(terminal: Terminal) -> None:
    status, result, err = terminal.bench(playoff={"mode": "fail"})

    assert status == 0
    assert [run["outcome"] for run in result["runs"]] == ["finished", "finished"]
    assert "came to nothing: no such thing." in result["recommendation"]["summary"]
    assert "about to fail" in err


def test_that_a_stored_comparison_is_reported_with_its_play_off(terminal: Terminal, tmp_path: Path) -> None:
    _, result, _ = terminal.bench(playoff={"eager_s": 1.1e-3})

    assert main(["report", "last", "--json", str(tmp_path / "again.json")]) == 0

    again = json.loads((tmp_path / "again.json").read_text())
    assert (again["play_offs"], again["recommendation"]) == (result["play_offs"], result["recommendation"])
