"""The plan before a run, and the queue while it goes on: skip, order, repeat, several cards, and on after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QToolButton, QTreeWidget

from compilescope.domain.events import Environment

SCRIPT = Path(__file__).resolve().parents[2] / "resources" / "examples" / "mlp.py"


def click_chip(desk: Any, *names: str) -> None:
    for name in names:
        chips = desk.window.options.findChildren(QToolButton)
        next(chip for chip in chips if chip.accessibleName() == name).click()


def plan(desk: Any) -> QTreeWidget:
    found: QTreeWidget = desk.child(QTreeWidget, "plan")
    return found


def planned(desk: Any) -> list[str]:
    return [row.label for row in desk.state.selection.planned(desk.state.script)]


def begin(desk: Any, *chips: str, mode: str = "ok", **options: Any) -> list[Any]:
    """A comparison that has begun; its runs."""
    desk.window.open_script(desk.script(mode, **options))
    click_chip(desk, *chips)
    desk.window.run()
    return list(desk.state.runs)


def test_that_the_product_is_a_list_with_a_time_before_it_starts(desk: Any) -> None:
    desk.window.open_script(SCRIPT)
    click_chip(desk, "precision bf16", "phase training step")

    rows = plan(desk)
    texts = [[rows.topLevelItem(i).text(column) for column in range(4)] for i in range(rows.topLevelItemCount())]

    assert rows.isVisible()
    assert [row[1:3] for row in texts] == [
        ["inference", "fp32"],
        ["inference", "bf16"],
        ["training", "fp32"],
        ["training", "bf16"],
    ]
    assert all(row[3].startswith("about ") for row in texts)
    assert desk.window.workspace.answer.answer.title.startswith("4 configurations, about ")


def test_that_rows_are_skipped_and_put_in_another_order_before_the_start(desk: Any) -> None:
    desk.window.open_script(SCRIPT)
    click_chip(desk, "precision bf16", "precision fp16")
    rows = plan(desk)

    rows.topLevelItem(0).setCheckState(0, Qt.CheckState.Unchecked)
    rows.setCurrentItem(rows.topLevelItem(2))
    next(action for action in desk.window.workspace.plan.actions() if action.data() == -1).trigger()

    assert planned(desk) == ["default (fp16)", "default (bf16)"]
    assert rows.currentItem().text(2) == "fp16"


def test_that_a_plan_of_nothing_is_refused_in_a_sentence(desk: Any) -> None:
    desk.window.open_script(SCRIPT)
    plan(desk).topLevelItem(0).setCheckState(0, Qt.CheckState.Unchecked)

    assert desk.window.workspace.answer.answer.title == "Tick at least one row of the plan."


def test_that_each_precision_runs_beside_its_own_eager(desk: Any) -> None:
    begin(desk, "precision bf16", "dynamic on", blocks=40)
    desk.wait(desk.is_over, 60)
    desk.window.workspace.comparison.refresh()

    names = [row[0] for row in desk.cells("comparison")]
    assert names[:2] == ["eager (fp32)", "eager (bf16)"]
    assert sorted(names[2:]) == sorted(
        ["default (fp32)", "default · dynamic (fp32)", "default (bf16)", "default · dynamic (bf16)"]
    )

    # a row of the other precision has another eager, so the baseline is none of its business
    chosen = desk.state.runs[0]
    desk.window.workspace.comparison.set_baseline(chosen.id)
    speedups = {row[0]: row[4] for row in desk.cells("comparison")}
    assert speedups["default (fp32)"] == "1×"
    assert speedups["eager (bf16)"] == "1×" and speedups["eager (fp32)"].startswith("0.5")
    assert speedups["default (bf16)"].startswith(("1.9", "2"))


def test_that_the_queue_is_put_in_another_order_while_it_runs(desk: Any) -> None:
    first, second, third, fourth = begin(desk, "dynamic on", "precision bf16", pause=0.1)
    table = desk.window.workspace.comparison
    desk.wait(lambda: bool(desk.state.running))

    table.move_wanted.emit(fourth.id, -1)
    table.skip_wanted.emit(second.id)
    desk.wait(desk.is_over, 60)

    assert [run.id for run in desk.state.runs] == [first.id, second.id, fourth.id, third.id]
    began = {run.id: run.processes[0].hello.time or 0 for run in desk.state.runs if run.processes}
    assert second.id not in began and list(began) == [first.id, fourth.id, third.id]
    stored = desk.store.runs(desk.state.comparison.id)
    assert [row.id for row in stored] == [run.id for run in desk.state.runs]


def test_that_a_closed_window_resumes_what_waited_in_its_new_order_and_names(open_desk: Any) -> None:
    first = open_desk()
    runs = begin(first, "precision bf16", "precision fp16", mode="hang")
    first.wait(lambda: bool(first.left() and first.state.running))
    first.window.workspace.comparison.hurry_wanted.emit(runs[2].id)
    first.close()

    second = open_desk()
    second.wait(lambda: "A comparison was interrupted" in second.window.messages.text)
    (left,) = second.store.unfinished()
    assert [request.id for request in left.requests] == [runs[0].id, runs[2].id, runs[1].id]
    second.script("ok")
    second.child(QPushButton, "message_yes").click()
    second.wait(second.is_over, 60)

    assert [run.label for run in second.state.runs] == ["default (fp32)", "default (fp16)", "default (bf16)"]


def test_that_two_cards_share_the_queue(desk: Any) -> None:
    cards = [{"id": f"cuda:{number}", "name": "NVIDIA H200"} for number in range(2)]
    desk.state.set_environment(
        Environment(torch="2.13", modes={"default": {}}, backends=("inductor",), devices=tuple(cards))
    )
    box = desk.child(QComboBox, "device")
    box.setCurrentIndex(box.findText("2 × NVIDIA H200 at once"))
    at_once: list[int] = []
    desk.state.activity_changed.connect(lambda: at_once.append(len(desk.state.running)))

    begin(desk, "dynamic on", "dynamic off", pause=0.1)
    desk.wait(desk.is_over, 60)

    assert max(at_once) == 2
    assert {run.outcome for run in desk.state.runs} == {"finished"}


def test_that_a_script_that_ran_before_is_expected_to_take_as_long(desk: Any) -> None:
    begin(desk, pause=0.01)
    desk.wait(desk.is_over, 30)

    desk.wait(lambda: len(desk.state.earlier) == 1)
    (row,) = desk.state.selection.rows(desk.state.script)
    found = desk.state.selection.estimate(row, desk.state.earlier)
    assert found.basis == "as before"
    assert abs(found.seconds - desk.state.earlier[0].whole_s) < 2
