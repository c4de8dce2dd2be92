"""The shown run over something: its cumulative time over calls, and its time per call over input sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtWidgets import QWidget

from compilescope.domain import units
from compilescope.domain.breakeven import calls_text
from compilescope.domain.measures import ShapeMeasures
from compilescope.report.blocks import CostChart, CostLine
from compilescope.report.chart_blocks import cost_chart
from compilescope.ui.charts.chart import Chart
from compilescope.ui.charts.charted import Charted
from compilescope.ui.charts.legend import CIRCLE, TRIANGLE, Key
from compilescope.ui.charts.lines import Drawing, Line, Lines, Spot
from compilescope.ui.charts.ticks import ticks
from compilescope.ui.theme import Theme

_NOT_TIMED = "Cumulative time stands here once a run is over in which compiled was faster than eager."
_NEVER = "No crossing to draw: compiling is not shown to save time here, so it never pays for its first call."
_OWN_CACHE = (
    "No crossing to draw: the run began with your own cache, so that the cost of a cold first call is not known."
)
_NO_USE = "No crossing to draw: a model that is not compiled, or gives wrong results, saves nothing."
_UNDECIDED = "No crossing to draw: the times are too noisy to tell whether compiling saves any."
_ONE_SIZE = "One set of input sizes was timed; `compilescope bench --inputs x=8,128;16,128` times several."
_NO_SIZES = "Times stand here once several sets of input sizes have been timed."
_MOST_TICKS = 6


class CumulativeChart(Chart):
    """Total time over calls; where a line crosses eager's, compiling has paid for its first call."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._lines = Lines(theme)
        super().__init__(theme, "Cumulative time over calls", self._lines, parent)
        self._keys = {name: Key(name, CIRCLE if name == "eager" else TRIANGLE) for name in _TOKENS}
        for key in self._keys.values():
            self.keys.add(key)
        self.restyle()

    def show_runs(self, _rows: Sequence[Charted], shown: Charted | None) -> None:
        found = cost_chart(shown.measures, shown.verdict) if shown else None
        if found is None:
            self.show_empty(_why_no_crossing(shown))
            return
        spots = _crossings(found)
        for name, key in self._keys.items():
            self.keys.set_shown(key, name in {line.label for line in found.lines})
        self._lines.show_drawing(
            Drawing(
                lines=tuple(_cost_line(line, found.calls) for line in found.lines),
                end=found.calls,
                marks=tuple((value, f"{units.count(value)} calls") for value in ticks(0, found.calls, _MOST_TICKS)),
                tip=lambda calls: _cost_tip(found, calls),
                spots=spots,
            )
        )
        self.show_view("; ".join(f"{spot.text}" for spot in spots))

    def restyle(self) -> None:
        for name, key in self._keys.items():
            key.swatch.set_color(getattr(self.theme.tokens, _TOKENS[name]))
        self._lines.update()


def _why_no_crossing(shown: Charted | None) -> str:
    verdict, speedup = (shown.verdict, shown.speedup) if shown else (None, None)
    if verdict is None or speedup is None or verdict.kind == "failed":
        return _NOT_TIMED
    if verdict.kind == "faster":
        return f"No crossing to draw: it {verdict.pays_off}." if verdict.pays_off else _OWN_CACHE
    if verdict.kind in ("incorrect", "not_compiled"):
        return _NO_USE
    return _UNDECIDED if verdict.kind == "too_noisy" else _NEVER


_TOKENS = {"eager": "eager", "cold cache": "compiled", "warm cache": "good"}


def _cost_line(line: CostLine, calls: float) -> Line:
    ends = ((0.0, line.ahead_s), (calls, _total_s(line, calls)))
    return Line(name=line.label, token=_TOKENS[line.label], points=ends, is_dashed=line.label == "warm cache")


def _total_s(line: CostLine, calls: float) -> float:
    return line.ahead_s + line.per_call_s * calls


def _crossings(chart: CostChart) -> tuple[Spot, ...]:
    eager = next(line for line in chart.lines if line.is_eager)
    spots = []
    for line in chart.lines:
        saved = eager.per_call_s - line.per_call_s
        if line.is_eager or saved <= 0 or line.ahead_s <= 0:
            continue
        calls = line.ahead_s / saved
        text = f"{line.label}: {calls_text(calls)} calls"
        spots.append(Spot(x=calls, y=_total_s(eager, calls), text=text))
    return tuple(spots)


def _cost_tip(chart: CostChart, calls: float) -> str:
    lines = [f"{line.label}: {units.duration(_total_s(line, calls))}" for line in chart.lines]
    return "\n".join([f"after {units.count(calls)} calls", *lines])


class ShapesChart(Chart):
    """Time per call of both sides over the sizes of a sweep."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._lines = Lines(theme)
        super().__init__(theme, "Time per call by input size", self._lines, parent)
        self._keys = {"eager": Key("eager", CIRCLE), "compiled": Key("compiled", TRIANGLE)}
        for key in self._keys.values():
            self.keys.add(key)
        self.restyle()

    def show_runs(self, _rows: Sequence[Charted], shown: Charted | None) -> None:
        shapes = shown.measures.shapes if shown else ()
        if not shapes:
            self.show_empty(_ONE_SIZE if shown and shown.measures.compiled else _NO_SIZES)
            return
        # every size has its place: products of sizes would press most of them into a corner
        places = {shape.shape: float(number) + 0.5 for number, shape in enumerate(shapes)}
        self._lines.show_drawing(
            Drawing(
                lines=(_side(shapes, places, "eager", CIRCLE), _side(shapes, places, "compiled", TRIANGLE)),
                end=float(len(shapes)),
                marks=tuple((places[shape.shape], shape_text(shape)) for shape in shapes),
                tip=lambda place: _shape_tip(shapes[min(math.floor(place), len(shapes) - 1)]),
                is_stepwise=True,
            )
        )
        self.show_view("; ".join(_shape_tip(shape).replace("\n", ", ") for shape in shapes))

    def restyle(self) -> None:
        for side, key in self._keys.items():
            key.swatch.set_color(getattr(self.theme.tokens, side))
        self._lines.update()


def _side(shapes: Sequence[ShapeMeasures], places: Mapping[int, float], side: str, marker: str) -> Line:
    summaries = [(shape.shape, shape.eager if side == "eager" else shape.compiled) for shape in shapes]
    points = tuple((places[shape], found.median) for shape, found in summaries if found)
    return Line(name=side, token=side, points=points, marker=marker)


def shape_text(shape: ShapeMeasures) -> str:
    """The sizes of one shape: "x 8×128"."""
    return ", ".join(f"{name} {'×'.join(map(str, size))}" for name, size in shape.inputs.items()) or str(shape.shape)


def _shape_tip(shape: ShapeMeasures) -> str:
    eager, compiled = shape.eager, shape.compiled
    lines = [
        shape_text(shape),
        f"eager: {units.duration(eager.median if eager else None)}",
        f"compiled: {units.duration(compiled.median if compiled else None)}",
    ]
    if shape.speedup:
        lines.append(f"speedup: {units.speedup(shape.speedup.value, shape.speedup.spread)}")
    if shape.recompiles:
        lines.append(units.plural(shape.recompiles, "recompile"))
    return "\n".join(lines)
