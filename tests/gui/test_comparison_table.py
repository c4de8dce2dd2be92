"""The comparison table in use: a large matrix, sorted, with the columns and the baseline that the user wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.comparisons import comparison
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QToolButton

from compilescope.domain.config import Config
from compilescope.domain.measures import Measures, Summary, measure
from compilescope.domain.run import Run
from compilescope.domain.verdict import judge
from compilescope.domain.workload import Workload
from compilescope.ui.findings import Finding, Findings
from compilescope.ui.models.comparison import COLUMNS, OFFERED, comparison_rows
from compilescope.ui.panels.sortable import SortableTable

EAGER, COMPILED, SPEEDUP, FIRST_CALL = 1, 2, 4, 5


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

    header.sectionClicked.emit(COMPILED)
    ascending = column(desk, 0)
    assert header.model().headerData(COMPILED, header.orientation()) == "Compiled ↑"
    header.sectionClicked.emit(COMPILED)
    descending = column(desk, 0)
    header.sectionClicked.emit(COMPILED)

    # eager stays on top, and what was never timed stands last
    assert ascending[:3] == ["eager", "max-autotune", "reduce-overhead"]
    assert ascending[-1] == descending[-1] == "default · static · fullgraph"
    assert descending[1:-1] == ascending[-2:0:-1]
    assert column(desk, 0) == before


def milliseconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"s": 1e3, "ms": 1.0, "µs": 1e-3}[unit]


def test_that_every_speedup_can_be_recomputed_from_its_row(desk: Any) -> None:
    show(desk)

    rows = [row for row in desk.cells("comparison")[1:] if "×" in row[SPEEDUP]]
    assert len(rows) > 4
    for row in rows:
        told = float(row[SPEEDUP].partition("×")[0])
        assert milliseconds(row[EAGER]) / milliseconds(row[COMPILED]) == pytest.approx(told, rel=0.02)


def test_that_the_row_of_eager_spans_what_was_measured_beside_each_configuration() -> None:
    runs = comparison().runs[:2]
    medians = dict(zip((run.id for run in runs), (24.6e-3, 35.8e-3), strict=True))

    class Found:
        def of(self, run: Run) -> Finding:
            eager = Summary(median=medians[run.id], p05=0.02, p95=0.04, samples=90)
            return Finding(measures=Measures(eager=eager))

    rows = comparison_rows(runs, Found())  # type: ignore[arg-type]

    shown = [[column.text(row) for column in COLUMNS[:3]] for row in rows]
    assert shown[0] == ["eager", "24.6–35.8 ms", "–"]
    assert [row[1] for row in shown[1:]] == ["24.6 ms", "35.8 ms"]


def test_that_what_is_too_noisy_to_tell_is_called_so() -> None:
    runs = comparison([Config(), Config(mode="reduce-overhead")], speedups=(1.05,), samples=6).runs
    runs[1].processes[0].series.clear()
    runs[1].processes[1].series.clear()

    class Found:
        def of(self, run: Run) -> Finding:
            return Finding(measures=measure(run), verdict=judge(run))

    rows = comparison_rows(runs, Found())  # type: ignore[arg-type]

    assert [COLUMNS[-1].text(row) for row in rows[1:]] == ["too noisy", "no speedup"]
    assert "Too noisy to tell: between" in COLUMNS[-1].tip(rows[1])


def test_that_the_backend_named_eager_is_told_apart_from_eager() -> None:
    run = Run("r", config=Config(backend="eager"), workload=Workload(script="/model.py"), label="eager")

    assert [row.label for row in comparison_rows([run], Findings())] == ["eager", "backend eager"]


def test_that_rows_that_ran_on_several_cards_say_on_which() -> None:
    runs = [
        Run(f"r{card}", config=Config(), workload=Workload(script="m.py", device=f"cuda:{card}")) for card in range(2)
    ]

    labels = [row.label for row in comparison_rows(runs, Findings())]

    assert labels == ["eager (cuda:0)", "eager (cuda:1)", "default (cuda:0)", "default (cuda:1)"]


def test_that_the_selection_stays_with_its_run_when_rows_move(desk: Any) -> None:
    table = show(desk)
    row = column(desk, 0).index("aot_eager")
    table.selectRow(row)

    table.horizontalHeader().sectionClicked.emit(COMPILED)

    assert desk.state.shown.label == "aot_eager"
    (chosen,) = desk.window.workspace.comparison.chosen
    assert desk.state.run(chosen).label == "aot_eager"


def test_that_rows_that_move_keep_their_selection(desk: Any) -> None:
    table = show(desk)
    table.selectRow(column(desk, 0).index("max-autotune"))

    table.horizontalHeader().sectionClicked.emit(COMPILED)

    (chosen,) = desk.window.workspace.comparison.chosen
    assert desk.state.run(chosen).label == desk.state.shown.label == "max-autotune"
    assert column(desk, 0)[table.currentIndex().row()] == "max-autotune"


def test_that_columns_can_be_hidden(desk: Any) -> None:
    table = show(desk)
    chooser = table.chooser()

    next(action for action in chooser.actions() if action.text() == "Breaks").setChecked(False)

    titles = [str(table.model().headerData(i, table.horizontalHeader().orientation())) for i in range(10)]
    assert table.isColumnHidden(titles.index("Breaks"))
    chooser.deleteLater()


def test_that_figures_beyond_the_first_ones_are_shown_once_they_are_chosen(desk: Any) -> None:
    table = show(desk)
    titles = [column.title for column in COLUMNS]
    peak = titles.index("Compiled peak")
    chooser = table.chooser()
    action = next(action for action in chooser.actions() if action.text() == "Compiled peak")
    assert table.isColumnHidden(peak) and not action.isChecked()

    action.setChecked(True)

    assert not table.isColumnHidden(peak)
    # beside the configuration that failed, and beside eager, it is not known
    assert sorted(set(column(desk, peak))) == ["380 MiB", "–"]
    chooser.deleteLater()


def test_that_any_configuration_can_be_the_baseline(desk: Any) -> None:
    show(desk)
    panel = desk.window.workspace.comparison
    names = column(desk, 0)

    panel.set_baseline(desk.state.runs[0].id)

    speedups = dict(zip(names, column(desk, SPEEDUP), strict=True))
    assert speedups["default"] == "1×"
    assert speedups["eager"].startswith("0.76")
    assert speedups["reduce-overhead"].startswith("1.40")
    assert column(desk, -1)[1] == "baseline, faster"


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
    assert desk.state.selection.plan(desk.state.script, ()).startswith("12 configurations, about")

    desk.window.run()
    desk.wait(desk.is_over, 120)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "twelve.pdf"), ""))
    desk.window.actions_by_id["export_pdf"].trigger()
    desk.wait(lambda: "Written" in desk.window.messages.text, 60)

    assert [run.outcome for run in desk.state.runs] == ["finished"] * 12
    assert len(desk.store.runs(desk.state.comparison.id)) == 12
    assert (tmp_path / "twelve.pdf").read_bytes().count(b"/Type /Page\n") >= 12


def test_that_columns_left_out_of_a_narrow_window_come_back_in_a_wider_one(desk: Any) -> None:
    table = show(desk)

    desk.window.resize(1000, 640)
    desk.wait(lambda: table.isColumnHidden(FIRST_CALL))
    desk.window.resize(1280, 800)

    desk.wait(lambda: not table.isColumnHidden(FIRST_CALL))
    desk.window.resize(2560, 1080)
    desk.wait(lambda: not any(table.isColumnHidden(i) for i in range(len(COLUMNS)) if i not in OFFERED))
