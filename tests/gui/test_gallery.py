"""The charts of a comparison: what they say where there is nothing to draw, and the numbers under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes.comparisons import comparison
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QLabel

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.verdict import judge
from compilescope.domain.workload import Workload
from compilescope.ui.charts.charted import Charted
from compilescope.ui.charts.costs import FirstCallChart, MemoryChart, size_labels
from compilescope.ui.charts.distribution import DistributionChart, sides
from compilescope.ui.charts.lines import Lines
from compilescope.ui.charts.over import CumulativeChart, ShapesChart
from compilescope.ui.charts.painted import Painted
from compilescope.ui.charts.speedups import SpeedupChart
from compilescope.ui.panels.charts_pane import CHARTS
from compilescope.ui.theme import Scheme, Theme


def charted(*runs: Run) -> list[Charted]:
    return [Charted(run=run, measures=measure(run), verdict=judge(run)) for run in runs]


def shown(qtbot: Any, kind: type, rows: Sequence[Charted], number: int = 0, size: tuple[int, int] = (900, 420)) -> Any:
    chart = kind(Theme(Scheme.LIGHT, QApplication.instance()))
    qtbot.addWidget(chart)
    chart.resize(*size)
    chart.show()
    chart.show_runs(rows, rows[number] if rows else None)
    qtbot.waitExposed(chart)
    return chart


def sentence(chart: Any) -> str:
    assert chart.is_empty
    return str(chart.findChild(QLabel, "chart.empty").text())


def tip(chart: Any, kind: type[Painted], x: float, y: float) -> str:
    """What is said at a place, both as shares of the drawing."""
    view = chart.findChild(kind)
    return str(view.tip_at(QPoint(round(view.width() * x), round(view.height() * y))))


def summary(chart: Any) -> str:
    return str(chart._view.accessibleDescription())


@pytest.fixture(scope="module")
def full() -> list[Charted]:
    return charted(*comparison().runs)


def swept() -> Run:
    """Three sizes, timed one after the other; the second made the compiler work again."""
    inputs = {"x": ((8, 128), (16, 128), (64, 128))}
    run = Run("sweep", config=Config(), workload=Workload(script="m.py", inputs=inputs))
    run.apply_all([e.Hello(start="cold"), e.FirstCall(side="compiled", duration_s=2.0)])
    for shape in range(3):
        if shape == 1:
            run.apply(e.Recompile(at=2.5, file="m.py", line=3, function="forward", reason="size"))
        for side, seconds in (("eager", 2e-3), ("compiled", 1e-3)):
            values = tuple(seconds * (1 + shape) for _ in range(8))
            run.apply(e.Samples(at=1.0 + shape, side=side, shape=shape, block=0, clock="wall", seconds=values))
        run.apply(e.Measured(at=1.9 + shape, shape=shape, stop="interval"))
    run.apply(e.Ended())
    return run


@pytest.mark.parametrize(
    "kind", [SpeedupChart, DistributionChart, FirstCallChart, MemoryChart, CumulativeChart, ShapesChart]
)
def test_that_a_chart_without_data_says_why_in_one_sentence(qtbot: Any, kind: type) -> None:
    waiting = Run("r", config=Config(), workload=Workload(script="m.py"))

    text = sentence(shown(qtbot, kind, charted(waiting)))

    assert text.endswith(".") and text.count(". ") == 0


def test_that_on_a_cpu_memory_is_not_divided_between_the_sides(qtbot: Any) -> None:
    (run,) = comparison([Config()], device="cpu").runs
    rows = [Charted(run=run, measures=Measures(clock="wall"))]

    assert "share one process" in sentence(shown(qtbot, MemoryChart, rows))


def test_that_memory_stands_for_both_sides_of_each_configuration(qtbot: Any, full: list[Charted]) -> None:
    chart = shown(qtbot, MemoryChart, full)

    assert summary(chart).startswith("default: eager 393 MiB, compiled 380 MiB; ")
    assert tip(chart, Painted, 0.5, 0.03) == "default\neager, steady: 393 MiB"


def test_that_first_calls_are_stacked_by_phase_cold_above_warm(qtbot: Any, full: list[Charted]) -> None:
    chart = shown(qtbot, FirstCallChart, full[2:3])
    texts = [tip(chart, Painted, x / 100, 0.04) for x in range(100)]

    assert summary(chart).startswith("max-autotune: cold ") and ", warm " in summary(chart)
    phases = list(dict.fromkeys(text.splitlines()[1].partition(":")[0] for text in texts if "%)" in text))
    assert phases[:2] == ["Dynamo", "guards"] and "Inductor" in phases
    assert all("of cold" in text for text in texts if "%)" in text)


def test_that_the_lines_cross_where_the_break_even_says(qtbot: Any, full: list[Charted]) -> None:
    chart = shown(qtbot, CumulativeChart, full, 1)
    verdict = full[1].verdict
    even = verdict.cold_break_even if verdict else None
    assert even is not None

    view = chart.findChild(Lines)
    spot = view._drawing.spots[0]
    assert spot.x == pytest.approx(even.calls, rel=1e-6)
    assert spot.text.startswith("cold cache: ")
    assert tip(chart, Lines, 0.5, 0.5).splitlines()[0].startswith("after ")


@pytest.mark.parametrize(
    ("number", "words"),
    [(6, "gives wrong results, saves nothing"), (8, "never pays"), (9, "began with your own cache")],
    ids=["incorrect", "slower", "own cache"],
)
def test_that_what_has_no_break_even_is_said_and_not_drawn(
    qtbot: Any, full: list[Charted], number: int, words: str
) -> None:
    slow, own = (comparison([Config()], speedups=(speedup,)).runs[0] for speedup in (0.9, 1.5))
    own.processes[0].hello = replace(own.processes[0].hello, cache_was_empty=None)
    rows = [*full, *charted(slow, own)]

    assert words in sentence(shown(qtbot, CumulativeChart, rows, number))


def test_that_cumulative_time_waits_for_the_verdict(qtbot: Any, full: list[Charted]) -> None:
    going = replace(full[1], verdict=None)

    assert "once a run is over" in sentence(shown(qtbot, CumulativeChart, [going]))


def test_that_every_size_of_a_sweep_has_its_place_and_number(qtbot: Any) -> None:
    chart = shown(qtbot, ShapesChart, charted(swept()))

    assert tip(chart, Lines, 0.2, 0.5).splitlines()[:3] == ["x 8×128", "eager: 2.00 ms", "compiled: 1.00 ms"]
    assert tip(chart, Lines, 0.55, 0.5).splitlines()[-1] == "1 recompile"
    assert "x 64×128, eager: 6.00 ms" in summary(chart)


def test_that_the_distribution_counts_every_block(full: list[Charted]) -> None:
    for side in sides(full[0]):
        whole = [s for process in full[0].run.processes for s in process.samples(side.name).seconds]
        assert sum(side.counts) + side.beyond == len(whole)


def test_that_the_pointer_tells_the_distribution_in_numbers(qtbot: Any, full: list[Charted]) -> None:
    chart = shown(qtbot, DistributionChart, full)

    texts = [tip(chart, Painted, x / 100, 0.3) for x in range(100)]
    assert any(text.startswith("eager: 0 blocks of") for text in texts)
    assert all("nine blocks in ten" in text for text in texts if text)


def test_that_each_speedup_has_its_interval_under_the_pointer(qtbot: Any, full: list[Charted]) -> None:
    chart = shown(qtbot, SpeedupChart, full)

    assert tip(chart, Painted, 0.5, 0.02).startswith("default\nspeedup 1.3")
    assert "95 % interval" in tip(chart, Painted, 0.5, 0.02)


def test_that_sizes_along_an_axis_have_one_unit() -> None:
    assert size_labels([0, 2**29, 2**30]) == ["0 GiB", "0.5 GiB", "1 GiB"]
    assert size_labels([0, 2**27]) == ["0 MiB", "128 MiB"]


def test_that_charts_are_made_when_they_are_first_looked_at(desk: Any) -> None:
    desk.state.show_stored(comparison())
    desk.wait(desk.is_over)
    workspace = desk.window.workspace
    assert workspace.charts._charts == {}

    workspace.tabs.setCurrentWidget(workspace.charts)
    for number in range(len(CHARTS)):
        workspace.charts.choose(number)

    assert len(workspace.charts._charts) == len(CHARTS)
