"""The charts by themselves: what they show is what the run holds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QLabel, QScrollArea, QToolButton

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.measures import Measures, Summary
from compilescope.domain.run import PhaseRow, Run
from compilescope.domain.workload import Workload
from compilescope.ui.charts.comparison import ComparisonChart
from compilescope.ui.charts.lanes import Lanes
from compilescope.ui.charts.latency import LatencyChart
from compilescope.ui.charts.points import Points, spread
from compilescope.ui.charts.scale import unit_for
from compilescope.ui.charts.ticks import rounded_up, ticks, time_labels
from compilescope.ui.charts.timeline import Timeline
from compilescope.ui.charts.timeline_view import thread_name
from compilescope.ui.theme import Scheme, Theme

APP = Path(__file__).resolve().parents[2] / "app"


def run_of(*events: e.Event) -> Run:
    return Run("r", config=Config(), workload=Workload(script="model.py")).apply_all(events)


def samples(side: str, at: float, *seconds: float, block: int = 0) -> e.Samples:
    return e.Samples(side=side, at=at, block=block, seconds=seconds)


def timed(eager: float = 4e-3, compiled: float = 2e-3) -> Run:
    events: list[e.Event] = []
    for start in ("cold", "warm"):
        events += [e.Hello(start=start), e.Stage(name="measure", at=10.0)]
        for chunk in range(4):
            events.append(samples("eager", 10.25 + chunk / 4, eager, eager * 1.1, block=2 * chunk))
            events.append(samples("compiled", 10.25 + chunk / 4, compiled, compiled * 1.1, block=2 * chunk))
    return run_of(*events)


def phase(name: str, state: str, at: float, group: str = "dynamo", thread: int = 1) -> e.Phase:
    return e.Phase(name=name, state=state, at=at, group=group, thread=thread, compile_id="0/0")


def compiled_run() -> Run:
    return run_of(
        e.Hello(start="cold"),
        phase("outer", "begin", 1.0),
        phase("inner", "begin", 1.2, "inductor"),
        phase("inner", "end", 1.8, "inductor"),
        phase("build", "begin", 1.3, "kernels", thread=2),
        phase("build", "end", 1.7, "kernels", thread=2),
        phase("outer", "end", 2.0),
    )


def chart(qtbot: Any, kind: type[Any]) -> Any:
    result = kind(Theme(Scheme.LIGHT))
    qtbot.addWidget(result)
    result.resize(800, 300)
    result.show()
    qtbot.waitExposed(result)
    return result


def sentence(shown: Any) -> str:
    label = shown.findChild(QLabel, "chart.empty")
    return str(label.text()) if label.isVisible() else ""


def test_that_importing_the_package_does_not_import_the_plotting_library() -> None:
    code = (
        "import sys, compilescope.ui.charts as charts; before = 'pyqtgraph' in sys.modules; charts.load(); "
        "print(before, 'pyqtgraph' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(APP)}

    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert said.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(("seconds", "unit"), [(12.0, "s"), (4e-3, "ms"), (49e-6, "µs"), (3e-8, "ns"), (0.0, "ms")])
def test_that_a_unit_makes_short_numbers(seconds: float, unit: str) -> None:
    assert unit_for(seconds).name == unit


def test_that_ticks_are_round_and_in_one_unit() -> None:
    assert time_labels(ticks(0, 0.0105, 6)) == ["0 ms", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]
    assert time_labels(ticks(1.0, 1.1, 4)) == ["1.00 s", "1.05 s", "1.10 s"]
    assert rounded_up(8.3, 10) == 9


def test_that_samples_of_a_chunk_are_spread_over_its_time() -> None:
    assert spread(np.array([2.0, 2.0, 3.0]), 1.0).tolist() == [1.5, 2.0, 3.0]


def test_that_points_are_the_runs_own_samples_and_are_read_once() -> None:
    run, points = timed(), Points()
    assert points.read(run.processes)
    assert not points.read(run.processes)

    run.apply(samples("eager", 11.5, 5e-3, block=8))

    assert points.read(run.processes)
    own = [second for process in run.processes for second in process.samples("eager").seconds]
    assert points.side("eager").tolist() == own
    assert points.begins == [0.0, 1.0]


@pytest.mark.parametrize(("width", "names"), [(800, "cold process, warm process"), (190, "cold, warm"), (90, "")])
def test_that_processes_are_named_above_the_plot_where_there_is_room(qtbot: Any, width: int, names: str) -> None:
    shown = chart(qtbot, LatencyChart)
    shown.show_run(timed())

    shown.plot.setMinimumWidth(0)
    shown.plot.resize(width, 200)
    shown.grab()
    shown._name_processes()

    assert ", ".join(name for _, name in shown._spans) == names
    box = shown.plot.getViewBox()
    assert shown.plot.getAxis("top").sceneBoundingRect().bottom() <= box.sceneBoundingRect().top() + 1


def test_that_void_blocks_leave_the_chart() -> None:
    run, points = timed(), Points()
    points.read(run.processes)

    run.apply(e.Void(block=2, reason="a recompile"))
    points.read(run.processes)

    assert len(points.side("compiled")) == 15


def test_that_the_chart_draws_both_sides_in_the_unit_of_the_slower(qtbot: Any) -> None:
    shown = chart(qtbot, LatencyChart)

    shown.show_run(timed())

    drawn = [item.getData() for item in shown.plot.getPlotItem().listDataItems()]
    assert sorted(round(float(y[0]), 6) for _, y in drawn) == [2.0, 2.0, 4.0, 4.0]
    assert shown.plot.getAxis("left").labelText == "ms per call"
    assert "eager: median 4.20 ms" in shown.plot.accessibleDescription()


def test_that_microseconds_are_shown_as_such(qtbot: Any) -> None:
    shown = chart(qtbot, LatencyChart)

    shown.show_run(timed(49e-6, 31e-6))

    assert shown.plot.getAxis("left").labelText == "µs per call"


def test_that_samples_that_come_later_are_drawn(qtbot: Any) -> None:
    shown, run = chart(qtbot, LatencyChart), run_of(e.Hello(), e.Stage(name="measure", at=1.0))
    shown.show_run(run)
    assert sentence(shown) == "Samples appear here as soon as the timing starts."

    run.apply(samples("eager", 1.25, 1e-3, 2e-3, 3e-3))
    shown.refresh()

    assert not sentence(shown)
    assert len(shown.plot.getPlotItem().listDataItems()[0].getData()[0]) == 3


def test_that_a_run_that_was_never_timed_says_so(qtbot: Any) -> None:
    shown = chart(qtbot, LatencyChart)

    shown.show_run(run_of(e.Hello(), e.Ended(outcome="failed")))
    assert sentence(shown) == "This run ended before anything was timed."

    shown.show_run(None)
    assert sentence(shown).startswith("Choose a run")


def test_that_zooming_offers_the_way_back(qtbot: Any) -> None:
    shown = chart(qtbot, LatencyChart)
    shown.show_run(timed())
    fit = shown.findChild(QToolButton, "chart.fit")
    assert not fit.isVisible()
    whole = shown.plot.getViewBox().viewRange()

    shown.plot.getViewBox().setRange(xRange=(0, 0.1), padding=0)
    shown.note_zoom()
    assert fit.isVisible()
    fit.click()

    assert shown.plot.getViewBox().viewRange() == whole


def test_that_a_theme_change_recolours_what_is_drawn(qtbot: Any) -> None:
    for kind, show in ((LatencyChart, timed()), (Timeline, compiled_run())):
        shown = chart(qtbot, kind)
        shown.show_run(show)
        before = shown.grab().toImage()

        shown.theme.set_scheme(Scheme.DARK)
        after = shown.grab().toImage()

        assert after != before
        assert after.pixelColor(after.width() // 2, after.height() - 4).lightness() < 60


@dataclass
class Row:
    label: str
    summary: Summary | None
    eager: tuple[float, ...] = ()
    measures: Measures = field(default_factory=Measures)

    @property
    def is_eager(self) -> bool:
        return self.label == "eager"


def test_that_the_comparison_names_every_row_and_its_time(qtbot: Any) -> None:
    shown = chart(qtbot, ComparisonChart)
    assert sentence(shown) == "Run configurations to see them beside eager."
    half = Summary(median=2e-3, p05=1.9e-3, p95=2.2e-3, samples=90)

    shown.show_rows([Row("eager", None, (4e-3, 6e-3)), Row("default", half, (4e-3,)), Row("odd", None)])
    shown.grab()

    assert not sentence(shown)
    said = [area.accessibleDescription() for area in shown.findChildren(QScrollArea)]
    assert said == ["eager: 4.00–6.00 ms; default: 2.00 ms; odd: not timed"]


def test_that_a_comparison_without_times_is_a_sentence(qtbot: Any) -> None:
    shown = chart(qtbot, ComparisonChart)

    shown.show_rows([Row("eager", None)])

    assert sentence(shown) == "Bars appear here as soon as a configuration has been timed."


def row(began: float, duration: float | None, depth: int = 0) -> PhaseRow:
    return PhaseRow(name="p", group="dynamo", compile_id=None, thread=1, began=began, depth=depth, duration_s=duration)


def test_that_a_lane_gives_what_lies_in_view_and_merges_what_is_too_small() -> None:
    lanes = Lanes()
    lanes.read([row(number * 1.0, 0.5) for number in range(1000)])
    (lane,) = lanes.threads[1]

    in_view = [found.began for found, _ in lane.between(99.2, 102.0, now=0.0, least=0.1)]
    all_at_once = list(lane.between(0.0, 1000.0, now=0.0, least=10.0))

    assert in_view == [99.0, 100.0, 101.0, 102.0]
    assert len(all_at_once) == 100


def test_that_an_open_phase_reaches_until_now() -> None:
    lanes = Lanes()
    lanes.read([row(1.0, None)])
    (lane,) = lanes.threads[1]

    assert [stop for _, stop in lane.between(0.0, 9.0, now=5.0, least=0.0)] == [5.0]
    assert lane.at(4.0, now=5.0, slack=0.0) is lane.rows[0]
    assert lane.at(6.0, now=5.0, slack=0.0) is None


def test_that_threads_and_depths_have_lanes_of_their_own() -> None:
    lanes = Lanes()

    lanes.read(compiled_run().processes[0].phases)

    assert {thread: len(depths) for thread, depths in lanes.threads.items()} == {1: 2, 2: 1}


def test_that_threads_have_names_and_not_numbers_of_the_system() -> None:
    assert [thread_name(number) for number in range(3)] == ["main thread", "compile thread 1", "compile thread 2"]


def test_that_a_click_selects_the_phase_under_it(qtbot: Any) -> None:
    shown, run = chart(qtbot, Timeline), compiled_run()
    shown.show_run(run)
    begin, end = shown.view.range
    viewport = shown.view.viewport()
    points = [QPoint(x, y) for y in range(30, 120, 6) for x in range(0, viewport.width(), 20)]
    inner = next(point for point in points if (found := shown.view.phase_at(point)) and found.name == "inner")

    with qtbot.waitSignal(shown.phase_selected) as told:
        qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=inner)

    assert told.args[0] is run.processes[0].phases[1]
    assert begin <= 1.0 and end >= 2.0


def test_that_a_timeline_grows_while_it_is_fitted_and_stays_where_the_user_has_zoomed(qtbot: Any) -> None:
    shown, run = chart(qtbot, Timeline), compiled_run()
    shown.show_run(run)

    run.apply_all([phase("next", "begin", 5.0), e.Noise(at=6.0)])
    shown.refresh()
    assert shown.view.range[1] > 6.0

    qtbot.keyClick(shown.view, Qt.Key.Key_W)
    chosen = shown.view.range
    run.apply(e.Noise(at=60.0))
    shown.refresh()
    assert shown.view.range == chosen
    shown.fit()
    assert shown.view.range[1] > 60.0


def test_that_each_process_has_a_timeline(qtbot: Any) -> None:
    shown, run = chart(qtbot, Timeline), compiled_run()
    run.apply_all([e.Hello(start="warm"), phase("again", "begin", 0.5), phase("again", "end", 0.6)])
    shown.show_run(run)
    choice = shown.findChild(QComboBox, "timeline.process")
    assert [choice.itemText(i) for i in range(choice.count())] == ["cold start", "warm start"]

    choice.setCurrentIndex(1)

    assert shown.view.range[0] == 0.5


def test_that_a_process_without_phases_says_so(qtbot: Any) -> None:
    shown = chart(qtbot, Timeline)

    shown.show_run(run_of(e.Hello(), e.Ended(outcome="finished")))

    assert sentence(shown) == "The compiler told of no phase in this process."
