"""The comparison table in use: a large matrix, sorted, with the columns and the baseline that the user wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.comparisons import comparison
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QToolButton

from compilescope.ui.panels.sortable import SortableTable


def show(desk: Any) -> SortableTable:
    """Eight configurations, one of which failed, as if they came from the history."""
    desk.state.show_stored(comparison())
    desk.wait(desk.is_over)
    desk.window.workspace.comparison.refresh()
    table: SortableTable = desk.child(SortableTable, "comparison")
    return table


def column(desk: Any, number: int) -> list[str]:
    return [row[number] for row in desk.cells("comparison")]


def test_that_a_header_sorts_both_ways_and_then_restores_the_order(desk: Any) -> None:
    header = show(desk).horizontalHeader()
    before = column(desk, 0)

    header.sectionClicked.emit(1)
    ascending = column(desk, 0)
    assert header.model().headerData(1, header.orientation()) == "Median ↑"
    header.sectionClicked.emit(1)
    descending = column(desk, 0)
    header.sectionClicked.emit(1)

    # eager stays on top, and what was never timed stands last
    assert ascending[:3] == ["eager", "max-autotune", "reduce-overhead"]
    assert ascending[-1] == descending[-1] == "default · static · fullgraph"
    assert descending[1:-1] == ascending[-2:0:-1]
    assert column(desk, 0) == before


def test_that_the_selection_stays_with_its_run_when_rows_move(desk: Any) -> None:
    table = show(desk)
    row = column(desk, 0).index("aot_eager")
    table.selectRow(row)

    table.horizontalHeader().sectionClicked.emit(1)

    assert desk.state.shown.label == "aot_eager"
    (chosen,) = desk.window.workspace.comparison.chosen
    assert desk.state.run(chosen).label == "aot_eager"


def test_that_columns_can_be_hidden(desk: Any) -> None:
    table = show(desk)
    chooser = table.chooser()

    next(action for action in chooser.actions() if action.text() == "Breaks").setChecked(False)

    titles = [str(table.model().headerData(i, table.horizontalHeader().orientation())) for i in range(9)]
    assert table.isColumnHidden(titles.index("Breaks"))
    chooser.deleteLater()


def test_that_any_configuration_can_be_the_baseline(desk: Any) -> None:
    show(desk)
    panel = desk.window.workspace.comparison
    names = column(desk, 0)

    panel.set_baseline(desk.state.runs[0].id)

    speedups = dict(zip(names, column(desk, 3), strict=True))
    assert speedups["default"] == "1×"
    assert speedups["eager"].startswith("0.76")
    assert speedups["reduce-overhead"].startswith("1.40")
    assert column(desk, 8)[1] == "baseline, faster"


def test_that_the_menu_of_a_row_offers_what_fits_its_state(desk: Any) -> None:
    show(desk)
    panel = desk.window.workspace.comparison

    menu = panel.menu(panel._model.row(1))

    actions: list[QAction] = menu.actions()
    assert [action.text() for action in actions if action.text()] == [
        "Run again",
        "Use as baseline",
        "Difference of two configurations",
    ]
    menu.deleteLater()


def test_that_twelve_configurations_run_and_end_in_one_report(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.window.open_script(desk.script("ok", pause=0.0))
    desk.window.options._backends.choose(["inductor", "eager"])
    for name in ("dynamic on", "dynamic off", "fullgraph on"):
        next(one for one in desk.window.options.findChildren(QToolButton) if one.accessibleName() == name).click()
    assert desk.state.selection.plan.startswith("12 configurations, about")

    desk.window.run()
    desk.wait(desk.is_over, 120)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "twelve.pdf"), ""))
    desk.window.actions_by_id["export_pdf"].trigger()
    desk.wait(lambda: "Written" in desk.window.messages.text, 60)

    assert [run.outcome for run in desk.state.runs] == ["finished"] * 12
    assert len(desk.parts.store.runs(desk.state.comparison.id)) == 12
    assert (tmp_path / "twelve.pdf").read_bytes().count(b"/Type /Page\n") >= 12
