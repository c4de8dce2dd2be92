"""Saved traces in the window: opened, dropped, refused, saved again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.stories import recorded_run, transcript
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from compilescope.domain.comparison import Comparison
from compilescope.ui.panels.message_bar import MessageBar


def tabs(desk: Any) -> list[str]:
    bar = desk.window.workspace.tabs
    return [bar.tabText(i).split("  ")[0] for i in range(bar.count()) if bar.isTabVisible(i)]


def opened(desk: Any, path: Path) -> None:
    desk.window.traces.open(path)
    desk.wait(lambda: desk.state.trace == path)


def choose(monkeypatch: pytest.MonkeyPatch, method: str, answer: Any) -> None:
    monkeypatch.setattr(QFileDialog, method, staticmethod(lambda *_: answer))


def test_that_a_saved_trace_fills_the_same_panes(desk: Any) -> None:
    opened(desk, transcript("graph_break_and_recompile"))

    assert {"Compile timeline", "Graph breaks", "Recompiles", "Shapes", "Cache", "Code", "Guards"} <= set(tabs(desk))
    assert "Timing" not in tabs(desk)
    assert desk.window.workspace.source.toPlainText().startswith("# A trace holds no script")
    assert len(desk.cells("graph_breaks")) == 3
    assert desk.window.windowTitle() == "graph_break_and_recompile.log.gz – CompileScope"


def test_that_a_trace_in_which_nothing_was_compiled_is_the_loudest_thing(desk: Any) -> None:
    opened(desk, transcript("lstm_not_compiled"))

    answer = desk.window.workspace.answer.answer
    assert (answer.tone, answer.title) == ("bad", "Not compiled: no graph was captured in lstm_not_compiled.log.gz")


def test_that_a_second_trace_takes_the_place_of_the_first_in_every_pane(desk: Any) -> None:
    opened(desk, transcript("graph_break_and_recompile"))
    opened(desk, transcript("lstm_not_compiled"))

    assert [row[0] for row in desk.cells("graph_breaks")] == ["lstm_not_compiled.py:7"]
    assert desk.cells("recompiles") == []


def test_that_a_folder_of_ranks_is_a_row_each(desk: Any, tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for name in ("mlp_default", "training_step_bf16"):
        shutil.copy(transcript(name), folder)

    desk.drop(folder)
    desk.wait(lambda: desk.state.trace == folder)

    assert [row[0] for row in desk.cells("comparison")] == ["mlp_default.log.gz", "training_step_bf16.log.gz"]


def test_that_a_dropped_trace_is_opened_and_not_run(desk: Any) -> None:
    desk.drop(transcript("mlp_default"))
    desk.wait(lambda: bool(desk.state.runs))

    assert desk.state.script is None
    assert not desk.window.actions_by_id["run"].isEnabled()


def test_that_a_foreign_file_is_a_sentence(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_text("nothing of the kind\n")

    desk.window.traces.open(tmp_path / "notes.log")

    desk.wait(lambda: "is not a structured torch trace" in desk.window.messages.text)
    assert desk.state.trace is None


def test_that_a_script_follows_a_trace(desk: Any) -> None:
    opened(desk, transcript("mlp_default"))

    desk.window.open_script(desk.script("train"))

    assert desk.state.trace is None
    assert desk.state.runs == []
    assert tabs(desk) == ["Source"]


def test_that_the_timeline_is_exported_for_perfetto(desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(desk, transcript("mlp_default"))
    choose(monkeypatch, "getSaveFileName", (str(tmp_path / "timeline.json"), ""))

    desk.window.actions_by_id["export_timeline"].trigger()

    assert len(json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]) > 50


def test_that_a_saved_trace_comes_with_a_warning(desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(desk, transcript("mlp_default"))
    choose(monkeypatch, "getExistingDirectory", str(tmp_path / "out"))

    desk.window.actions_by_id["save_trace"].trigger()

    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".log"]
    assert "holds the model's source code" in desk.window.messages.text


def test_that_clearing_a_cache_is_confirmed_in_the_message_bar(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "mine"
    cache.mkdir()
    (cache / "entry").write_bytes(b"x" * 2048)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    opened(desk, transcript("mlp_default"))
    desk.window.workspace.tabs.setCurrentWidget(desk.window.workspace.compiler.cache)
    press = desk.child(QPushButton, "clear_yours")
    desk.wait(press.isEnabled)

    press.click()
    assert "Remove your own compiler cache" in desk.child(MessageBar, "message_bar").text
    assert (cache / "entry").exists()
    desk.child(QPushButton, "message_yes").click()

    desk.wait(lambda: not list(cache.iterdir()))


def test_that_a_live_comparison_shows_the_ledger_of_both_starts(desk: Any) -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")
    desk.state.set_comparison(Comparison(id="c", created=0.0, runs=[run]))
    desk.window.workspace.tabs.setCurrentWidget(desk.window.workspace.compiler.cache)

    desk.wait(lambda: desk.child(QLabel, "cache_totals").text().startswith("Cold: 2 misses.\nWarm: 2 hits"))

    assert [row[:1] + row[2:3] for row in desk.cells("cache")] == [
        ["cold", "miss"],
        ["cold", "miss"],
        ["warm", "hit"],
        ["warm", "hit"],
    ]


def test_that_a_dropped_folder_without_a_trace_is_told_what_is_wanted(desk: Any, tmp_path: Path) -> None:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "module.py").write_text("x = 1\n")

    desk.drop(folder)

    desk.wait(lambda: "pkg is a folder without a trace in it." in desk.window.messages.text)
    hints = [label.text() for label in desk.window.messages.findChildren(QLabel)]
    assert any("Drop a model script (.py), or a trace" in hint for hint in hints)
    assert "Reading" not in desk.window.status.currentMessage()


def test_that_a_dropped_file_of_another_kind_is_told_what_is_wanted(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    desk.drop(tmp_path / "notes.txt")

    assert "notes.txt is neither a model script nor a trace." in desk.window.messages.text
    assert desk.state.script is None
