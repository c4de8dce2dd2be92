"""A comparison as the user sees it, with the worker played by a fake."""

from __future__ import annotations

import time
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QToolButton

from compilescope.domain.events import FirstCall, Hello
from compilescope.engine import process, tree
from compilescope.ui.panels.breaks_pane import BreaksPane
from compilescope.ui.panels.source_view import SourceView
from compilescope.ui.panels.table import DataTable


def test_that_a_comparison_fills_the_table_and_ends_in_an_answer(desk: Any) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)
    desk.window.workspace.comparison.refresh()

    (eager, default) = desk.cells("comparison")

    assert eager[0] == "eager"
    assert eager[-1] == "baseline"
    assert default[0] == "default"
    assert default[1].endswith("ms")
    assert eager[1] == default[1]
    assert default[4].startswith(("1.9", "2"))
    assert default[7:9] == ["1", "1"]
    assert default[-1] == "faster"
    answer = desk.window.workspace.answer.answer
    assert answer.title.startswith("Use default")
    assert answer.snippet == "model = torch.compile(model)"


def test_that_a_break_stands_in_its_table_before_the_run_has_finished(desk: Any) -> None:
    desk.run_fake("ok", pause=0.5)

    desk.wait(lambda: len(desk.cells("graph_breaks")) == 1)

    assert not desk.state.runs[0].is_over
    assert desk.cells("graph_breaks")[0][:4] == ["script.py:7", "forward", "if on a tensor", "GB0170"]
    tabs = desk.window.workspace.tabs
    desk.wait(lambda: "Graph breaks  1" in [tabs.tabText(index) for index in range(tabs.count())], 3)


def click_chip(desk: Any, name: str) -> None:
    next(chip for chip in desk.window.options.findChildren(QToolButton) if chip.accessibleName() == name).click()


def test_that_every_ticked_configuration_runs_and_has_its_row(desk: Any) -> None:
    desk.window.open_script(desk.script("ok"))
    click_chip(desk, "dynamic on")
    assert desk.state.selection.dynamics == (None, True)

    desk.window.run()
    desk.wait(desk.is_over, 30)
    desk.window.workspace.comparison.refresh()

    assert [row[0] for row in desk.cells("comparison")] == ["eager", "default", "default · dynamic"]


def run_two(desk: Any, **options: Any) -> None:
    """Two configurations that their own runs cannot tell apart."""
    desk.window.open_script(desk.script("ok", **options))
    click_chip(desk, "dynamic on")
    desk.window.run()


def test_that_two_that_cannot_be_told_apart_meet_in_a_play_off(desk: Any) -> None:
    told: list[str] = []
    desk.state.activity_changed.connect(lambda: told.append(desk.window.workspace.answer.answer.title))

    run_two(desk, playoff={"eager_s": 1.1e-3})
    desk.wait(desk.is_over, 30)
    desk.window.workspace.comparison.refresh()

    answer = desk.window.workspace.answer.answer
    assert any(title.startswith("Play-off: default against default · dynamic") for title in told)
    assert answer.title.startswith("Use default · dynamic")
    assert "In a play-off default · dynamic took 0.9" in answer.text
    # it is no configuration of its own
    assert [row[0] for row in desk.cells("comparison")] == ["eager", "default", "default · dynamic"]
    desk.store.flush()
    assert desk.store.load(desk.state.comparison.id).play_offs == desk.state.comparison.play_offs


def test_that_a_play_off_that_fails_is_told_and_changes_nothing(desk: Any) -> None:
    run_two(desk, playoff={"mode": "fail"})
    desk.wait(desk.is_over, 30)

    answer = desk.window.workspace.answer.answer
    assert answer.title.startswith("Use default:")
    assert "A play-off of default · dynamic against default came to nothing: no such thing." in answer.text


def test_that_escape_stops_a_play_off_and_leaves_what_was_measured(desk: Any) -> None:
    run_two(desk, playoff={"mode": "hang"})
    desk.wait(lambda: desk.state.play_off is not None and bool(tree.marked(desk.state.play_off.id)), 30)
    play_off = desk.state.play_off.id

    desk.qtbot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.wait(desk.is_over)

    assert tree.marked(play_off) == [] and desk.state.comparison.play_offs == []
    assert [run.outcome for run in desk.state.runs] == ["finished", "finished"]
    assert desk.window.workspace.answer.answer.title.startswith("Use default:")


def test_that_escape_stops_a_run_that_hangs_and_leaves_no_process(desk: Any) -> None:
    desk.run_fake("hang")
    desk.wait(lambda: bool(desk.left()))
    began = time.monotonic()

    desk.qtbot.keyClick(desk.window, Qt.Key.Key_Escape)
    assert desk.window.workspace.answer.answer.title == "Stopping…"
    desk.wait(lambda: not desk.state.is_busy)

    assert time.monotonic() - began < 5.0
    assert desk.left() == []
    assert desk.state.runs[0].outcome == "stopped"
    assert desk.window.workspace.answer.answer.title == "Stopped"


def test_that_the_clock_of_a_run_stands_below_the_button_that_stops_it(desk: Any) -> None:
    desk.window.resize(1920, 1080)
    desk.run_fake("hang")
    stop = desk.child(QPushButton, "stop_button")
    desk.wait(stop.isVisible)
    page = stop.parentWidget()
    desk.qtbot.wait(50)

    assert page.height() >= page.sizeHint().height()
    assert not desk.window.script_panel.findChild(QPushButton, "open_button").isEnabled()


def test_that_what_waits_behind_a_stopped_run_is_stopped_too(desk: Any) -> None:
    desk.window.open_script(desk.script("hang"))
    click_chip(desk, "fullgraph on")
    desk.window.run()
    desk.wait(lambda: bool(desk.left()))

    desk.window.stop()
    desk.wait(lambda: not desk.state.is_busy)

    assert [run.outcome for run in desk.state.runs] == ["stopped", "stopped"]


def test_that_closing_the_window_ends_a_stubborn_run(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # the steps of a stop take four seconds together, and a busy machine some more between them
    monkeypatch.setattr(process, "INTERRUPT_S", 0.5)
    monkeypatch.setattr(process, "TERMINATE_S", 0.5)
    desk.run_fake("hang_stubbornly")
    desk.wait(lambda: bool(desk.left()))
    began = time.monotonic()

    desk.close()

    assert time.monotonic() - began < 6.0
    assert desk.left() == []


def test_that_a_failed_run_shows_one_sentence_and_its_hint(desk: Any) -> None:
    desk.run_fake("fail")
    desk.wait(lambda: bool(desk.state.runs) and not desk.state.is_busy)
    desk.qtbot.waitUntil(lambda: "no such thing" in desk.window.workspace.answer.answer.title)

    answer = desk.window.workspace.answer.answer

    assert answer.tone == "bad"
    assert "Try another." in answer.text
    pane = desk.window.workspace.timing
    desk.wait(lambda: "ValueError: no such thing" in [label.text() for label in pane.findChildren(QLabel)])
    assert desk.window.isEnabled()


def test_that_the_last_lines_of_a_crash_are_shown_on_demand(desk: Any) -> None:
    desk.run_fake("crash")
    desk.wait(lambda: bool(desk.state.runs) and not desk.state.is_busy)
    pane = desk.window.workspace.timing
    toggle = desk.child(QPushButton, "show_traceback")
    desk.qtbot.waitUntil(toggle.isVisible)
    details = next(edit for edit in pane.findChildren(QPlainTextEdit) if edit.accessibleName() == "Traceback")
    assert not details.isVisible()

    toggle.click()

    assert details.isVisible()
    assert "line 99" in details.toPlainText()


def test_that_a_model_that_was_not_compiled_is_the_loudest_finding(desk: Any) -> None:
    desk.run_fake("hang")
    run = desk.state.runs[0]
    desk.wait(lambda: bool(run.processes))

    run.apply_all([Hello(), FirstCall(side="compiled", duration_s=1.0)])
    run.processes.pop(0)
    desk.window.workspace.answer.refresh()

    answer = desk.window.workspace.answer.answer
    assert answer.title.startswith("Not compiled: default")
    assert answer.tone == "bad"
    desk.window.stop()
    desk.wait(lambda: not desk.state.is_busy)


def test_that_a_break_leads_to_its_source_line(desk: Any, tmp_path: Any) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)
    source = tmp_path / "model.py"
    source.write_text("\n".join(f"line_{number} = {number}" for number in range(1, 30)))
    table = desk.child(DataTable, "graph_breaks")
    desk.window.workspace.tabs.setCurrentWidget(desk.window.workspace.breaks)

    desk.window.workspace.breaks.line_wanted.emit(str(source), 12)

    view = desk.window.workspace.source
    assert isinstance(view, SourceView)
    assert view.current_line == 12
    assert view.textCursor().block().text() == "line_12 = 12"
    assert desk.window.workspace.tabs.currentWidget() is view
    assert table.model().rowCount() == 1
    assert desk.window.findChild(BreaksPane) is not None


def test_that_a_second_comparison_begins_with_empty_panes(desk: Any) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)

    desk.run_fake("hang")

    assert [row[-1] for row in desk.cells("comparison")][1:] == ["waiting"]
    assert desk.cells("graph_breaks") == []
    desk.window.stop()
    desk.wait(lambda: not desk.state.is_busy)


def test_that_a_message_that_something_runs_goes_when_it_has_ended(desk: Any, tmp_path: Any) -> None:
    desk.run_fake("hang")
    desk.drop(tmp_path / "script.py")
    assert "running" in desk.window.messages.text

    desk.window.stop()
    desk.wait(lambda: not desk.state.is_busy)

    assert desk.window.messages.text == ""


def test_that_the_log_takes_what_a_script_prints(desk: Any) -> None:
    desk.run_fake("crash")

    desk.wait(lambda: len(desk.window.workspace.log.store) >= 100)
    desk.wait(lambda: not desk.state.is_busy)


def test_that_a_finished_comparison_goes_to_the_clipboard_as_markdown(desk: Any, qapp: Any) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)

    desk.window.actions_by_id["copy_markdown"].trigger()

    desk.wait(lambda: "default" in qapp.clipboard().text())
    assert "|" in qapp.clipboard().text()


def test_that_a_fault_in_judging_leaves_the_figures_and_says_so(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("compilescope.domain.verdict._judge", fail)
    desk.run_fake("ok")
    desk.wait(lambda: desk.cells("comparison")[-1][-1] == "not judged")

    assert " ms" in desk.cells("comparison")[-1][1]
    desk.wait(lambda: "failed to judge 1 run" in desk.window.workspace.answer.answer.title)
