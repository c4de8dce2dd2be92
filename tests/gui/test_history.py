"""The history in the window: kept, found, opened again, resumed after a crash, exported."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QPushButton, QToolButton

from compilescope.domain.results import comparison_json
from compilescope.ui.panels.table import DataTable


def click_chip(desk: Any, name: str) -> None:
    next(chip for chip in desk.window.options.findChildren(QToolButton) if chip.accessibleName() == name).click()


def run_two(desk: Any) -> None:
    """Two configurations to the end, and into the list."""
    desk.window.open_script(desk.script("ok"))
    click_chip(desk, "dynamic on")
    desk.window.run()
    desk.wait(desk.is_over, 30)
    desk.wait(lambda: is_listed(desk, finished=2))


def is_listed(desk: Any, finished: int) -> bool:
    """The runs are over, and so is the play-off that may follow."""
    rows = desk.store.comparisons()
    return bool(rows) and rows[0].finished == finished and not rows[0].unfinished and not desk.state.is_busy


def show_history(desk: Any) -> None:
    desk.window.actions_by_id["history"].trigger()
    desk.wait(lambda: desk.child(DataTable, "history").isVisible())


def press(desk: Any, text: str) -> None:
    next(one for one in desk.window.history.findChildren(QPushButton) if one.text() == text).click()


def select(desk: Any, table: str, *rows: int) -> None:
    view = desk.child(DataTable, table)
    model = view.selectionModel()
    view.clearSelection()
    for row in rows:
        model.select(view.model().index(row, 0), model.SelectionFlag.Select | model.SelectionFlag.Rows)


def figures(desk: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(comparison_json(desk.state.comparison)))
    return result


def test_that_a_reopened_comparison_shows_the_same_panes_and_figures(open_desk: Any) -> None:
    first = open_desk()
    run_two(first)
    first.window.workspace.comparison.refresh()
    table, breaks, before = first.cells("comparison"), first.cells("graph_breaks"), figures(first)
    first.close()

    second = open_desk()
    show_history(second)
    select(second, "history", 0)
    press(second, "Open")
    second.wait(second.is_over)
    second.window.workspace.comparison.refresh()

    assert figures(second) == before
    assert second.cells("comparison") == table
    assert second.cells("graph_breaks") == breaks
    assert second.window.workspace.isVisible()
    assert "script.py" in second.window.windowTitle()


def test_that_a_reopened_comparison_shows_the_script_as_it_was(desk: Any) -> None:
    run_two(desk)
    text = (desk.folder / "script.py").read_text()
    (desk.folder / "script.py").write_text("# edited since\n")

    desk.parts.history.open(desk.state.comparison.id)
    desk.wait(lambda: desk.state.source is not None)

    assert desk.window.workspace.source.toPlainText() == text


def test_that_a_reopened_comparison_brings_its_options_back(desk: Any) -> None:
    run_two(desk)
    made = desk.state.selection
    click_chip(desk, "dynamic on")
    click_chip(desk, "precision bf16")
    desk.window.options._budget.setValue(7.0)
    show_history(desk)
    select(desk, "history", 0)

    press(desk, "Open")

    desk.wait(lambda: desk.state.selection.dynamics == made.dynamics)
    chips = desk.window.options.findChildren(QToolButton)
    ticked = {chip.accessibleName() for chip in chips if chip.isCheckable() and chip.isChecked()}
    assert {"dynamic auto", "dynamic on", "precision fp32"} <= ticked and "precision bf16" not in ticked
    now = desk.state.selection
    assert (now.precisions, now.budget_s, now.device) == (("fp32",), made.budget_s, desk.state.runs[0].workload.device)
    assert [row.key for row in now.planned(desk.state.script)] == [row.key for row in made.planned(desk.state.script)]


def test_that_the_history_is_searched_while_typing(desk: Any) -> None:
    run_two(desk)
    show_history(desk)
    field = desk.child(QLineEdit, "history_search")

    assert [row[1:3] for row in desk.cells("history")] == [["script.py", "2"]]
    field.setText("nothing like that")
    assert desk.cells("history") == []
    field.setText("dynamic faster")
    assert len(desk.cells("history")) == 1


def test_that_tags_and_notes_are_kept_and_found(desk: Any) -> None:
    run_two(desk)
    show_history(desk)
    select(desk, "history", 0)
    tags, notes = desk.child(QLineEdit, "history_tags"), desk.child(QLineEdit, "history_notes")

    tags.setText("before the fix, H200")
    notes.setText("first try")
    notes.editingFinished.emit()

    desk.wait(lambda: desk.cells("history")[0][-1] == "before the fix, H200")
    desk.child(QLineEdit, "history_search").setText("first try h200")
    assert len(desk.cells("history")) == 1
    assert tags.text() == "before the fix, H200"


def test_that_a_deleted_comparison_comes_back_by_undo(desk: Any) -> None:
    run_two(desk)
    show_history(desk)
    select(desk, "history", 0)

    press(desk, "Delete")
    desk.wait(lambda: desk.cells("history") == [])
    assert desk.window.messages.text == "Deleted: script.py."
    desk.child(QPushButton, "message_yes").click()

    desk.wait(lambda: len(desk.cells("history")) == 1)


def test_that_undo_brings_back_what_was_deleted_one_after_the_other(desk: Any) -> None:
    run_two(desk)
    desk.window.run()
    desk.wait(lambda: len(desk.store.comparisons()) == 2 and is_listed(desk, finished=2), 30)
    show_history(desk)
    desk.wait(lambda: len(desk.cells("history")) == 2)

    for left in (1, 0):
        select(desk, "history", 0)
        press(desk, "Delete")
        desk.wait(lambda left=left: len(desk.cells("history")) == left)
    assert desk.window.messages.text == "Deleted: 2 comparisons."
    desk.child(QPushButton, "message_yes").click()

    desk.wait(lambda: len(desk.cells("history")) == 2)


def test_that_a_comparison_goes_out_as_a_file_and_comes_in_again(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_two(desk)
    show_history(desk)
    select(desk, "history", 0)
    path = tmp_path / "sent"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (f"{path}.compilescope", ""))

    press(desk, "Export…")
    desk.wait(Path(f"{path}.compilescope").exists)
    press(desk, "Import…")

    desk.wait(lambda: len(desk.cells("history")) == 2)
    assert desk.cells("history")[0][1:5] == desk.cells("history")[1][1:5]


def test_that_two_stored_comparisons_are_set_side_by_side(desk: Any) -> None:
    run_two(desk)
    (desk.folder / "script.py").write_text(json.dumps({"mode": "ok", "edited": True}))
    desk.window.run()
    desk.wait(desk.is_over, 30)
    desk.wait(lambda: is_listed(desk, finished=2))
    show_history(desk)
    select(desk, "history", 0, 1)

    press(desk, "Compare two")
    desk.wait(lambda: desk.window.findChild(QLabel, "difference_cautions") is not None)

    cautions = desk.child(QLabel, "difference_cautions")
    assert "script.py was edited between the two runs." in cautions.text()
    cautions.window().close()


def test_that_the_difference_of_two_selected_configurations_is_shown(desk: Any) -> None:
    run_two(desk)
    desk.window.workspace.comparison.refresh()
    select(desk, "comparison", 1, 2)

    desk.window.actions_by_id["difference"].trigger()
    desk.wait(lambda: desk.window.findChild(DataTable, "difference") is not None)

    assert ["Options", "dynamic", "auto", "on"] in desk.cells("difference")
    desk.child(DataTable, "difference").window().close()


def test_that_the_report_is_written_and_can_be_opened(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    proposed: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)

    def choose(_parent: object, _title: str, proposal: str, _kinds: str) -> tuple[str, str]:
        proposed.append(proposal)
        return str(tmp_path / "report"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    run_two(desk)

    desk.window.actions_by_id["export_pdf"].trigger()
    desk.wait(lambda: "Written" in desk.window.messages.text)
    desk.child(QPushButton, "message_yes").click()

    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert opened == [QUrl.fromLocalFile(str(tmp_path / "report.pdf"))]
    assert proposed[0].startswith(str(desk.folder / "script-comparison-"))


def test_that_a_report_that_cannot_be_written_is_a_sentence(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("/proc/no.pdf", ""))
    run_two(desk)

    desk.window.actions_by_id["export_pdf"].trigger()

    desk.wait(lambda: "/proc/no.pdf could not be written" in desk.window.messages.text)


PROGRAM = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from compilescope.main import WindowApp
from compilescope.settings import Settings

app = QApplication([])
parts = WindowApp(app, Settings(scheme="light", budget_s=1.0), Path(sys.argv[1]))
parts.window.show()
parts.window.open_script(Path(sys.argv[2]))
parts.window.options._dynamics.choose(["auto", "on"])
QTimer.singleShot(300, parts.window.run)
app.exec()
"""


def test_that_a_killed_window_offers_what_it_had_and_resumes(open_desk: Any, tmp_path: Path, own_home: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(json.dumps({"mode": "ok", "pause": 0.4}))
    worker = Path(__file__).resolve().parents[1] / "fakes" / "fake_worker.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "COMPILESCOPE_HOME": str(own_home)}
    killed = subprocess.Popen([sys.executable, "-c", PROGRAM, worker, script], env=environment)
    wait_for_event(own_home / "data" / "history.sqlite3", "graph_break")
    killed.send_signal(signal.SIGKILL)
    killed.wait()

    desk = open_desk()
    desk.wait(lambda: "A comparison was interrupted: script.py, 2 configurations left" in desk.window.messages.text)
    (row,) = desk.store.comparisons()
    told = desk.store.load(row.id)
    desk.child(QPushButton, "message_yes").click()
    desk.wait(desk.is_over, 40)

    assert told.runs[0].story and len(told.runs[0].story.graph_breaks) == 1
    assert told.runs[0].outcome == "stopped"
    assert desk.state.comparison.id == row.id
    assert [run.outcome for run in desk.state.runs] == ["finished", "finished"]
    desk.wait(lambda: is_listed(desk, finished=2))


def wait_for_event(database: Path, kind: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with sqlite3.connect(database) as connection:
                lines = connection.execute("SELECT group_concat(lines, char(10)) FROM events").fetchone()[0] or ""
            connection.close()
            if f'"{kind}"' in lines:
                return
        except sqlite3.OperationalError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no {kind} was stored")


def test_that_closing_in_the_middle_leaves_the_rest_to_be_resumed(open_desk: Any) -> None:
    first = open_desk()
    first.run_fake("hang")
    first.wait(lambda: bool(first.left()))
    first.close()

    second = open_desk()
    second.wait(lambda: "A comparison was interrupted" in second.window.messages.text)
    second.child(QPushButton, "message_no").click()

    second.wait(lambda: not second.store.unfinished())
    assert len(second.store.comparisons()) == 1


def test_that_a_stopped_run_is_over_and_not_offered_again(open_desk: Any) -> None:
    first = open_desk()
    first.run_fake("hang")
    first.wait(lambda: bool(first.left()))
    first.window.stop()
    first.wait(lambda: not first.state.is_busy)
    first.close()

    second = open_desk()

    assert second.store.unfinished() == []
    assert len(second.store.comparisons()) == 1


def test_that_a_damaged_history_is_said_and_everything_runs(own_home: Path, open_desk: Any) -> None:
    (own_home / "data").mkdir(parents=True)
    (own_home / "data" / "history.sqlite3").write_bytes(b"no database at all" * 1000)

    desk = open_desk()

    desk.wait(lambda: "The history was damaged" in desk.window.messages.text)
    run_two(desk)


def test_that_two_windows_share_one_history(open_desk: Any) -> None:
    first, second = open_desk(), open_desk()
    first.run_fake("ok")
    second.run_fake("ok")
    first.wait(first.is_over)
    second.wait(second.is_over)

    first.wait(lambda: len(first.store.comparisons()) == 2 and not first.store.unfinished())
    show_history(first)
    assert len(first.cells("history")) == 2


def limit_pages(desk: Any, count: int) -> None:
    """No more pages than this, or than there are: what SQLite meets on a full disk."""
    database = desk.store._database
    with database._write_lock:
        database._writer.execute(f"PRAGMA max_page_count = {count}").fetchall()


def test_that_a_full_disk_is_said_the_run_goes_on_and_nothing_is_lost(desk: Any) -> None:
    limit_pages(desk, 1)
    desk.run_fake("ok", blocks=300, pause=0.02)

    desk.wait(lambda: "cannot be written just now" in desk.window.messages.text)
    desk.wait(desk.is_over, 30)
    limit_pages(desk, 1_000_000)

    desk.wait(lambda: "can be written again" in desk.window.messages.text)
    desk.wait(lambda: is_listed(desk, finished=1))
    assert json.loads(json.dumps(comparison_json(desk.store.load(desk.state.comparison.id)))) == figures(desk)


def test_that_a_row_can_be_repeated_and_one_that_waits_skipped(desk: Any) -> None:
    run_two(desk)
    first = desk.state.runs[0]

    desk.window.workspace.comparison.repeat_wanted.emit(first.id)
    desk.wait(lambda: len(desk.state.runs) == 3 and desk.is_over(), 30)

    assert [run.label for run in desk.state.runs] == ["default", "default · dynamic", "default (2)"]
    desk.wait(lambda: is_listed(desk, finished=3))


def test_that_a_waiting_run_can_be_skipped_or_come_next(desk: Any) -> None:
    desk.window.open_script(desk.script("ok", pause=0.1))
    click_chip(desk, "dynamic on")
    click_chip(desk, "dynamic off")
    desk.window.run()
    first, second, third = desk.state.runs

    desk.window.workspace.comparison.hurry_wanted.emit(third.id)
    desk.window.workspace.comparison.skip_wanted.emit(second.id)
    desk.wait(desk.is_over, 40)

    assert [run.outcome for run in (first, second, third)] == ["finished", "stopped", "finished"]
