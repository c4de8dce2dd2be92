"""The tables that hold every configuration beside eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain import units, words
from compilescope.domain.comparison import Comparison
from compilescope.domain.figures import Result, figure, result
from compilescope.domain.standing import tone
from compilescope.domain.statistics import Interval
from compilescope.report import numbers
from compilescope.report.blocks import Block, Cell, Column, Paragraph, Table
from compilescope.report.chart_blocks import memory_block
from compilescope.report.columns import OWN_CACHE
from compilescope.report.configuration import anchor
from compilescope.report.names import names

_COMPILE = (
    ("compile.first_call_s", "compile.warm_first_call_s"),
    ("compile.graphs",),
    ("compile.ops",),
    ("compile.kernels",),
    ("compile.graph_breaks",),
    ("compile.recompiles",),
)
_RESOURCES = (
    ("timing.compiled_latency_ms",),
    ("timing.compiled_gpu_busy_share",),
    ("memory.eager_peak_bytes", "memory.compiled_peak_bytes"),
    ("numerics.verdict",),
    ("numerics.max_abs_error",),
    ("compile.cudagraphs",),
)
_Column = tuple[Column, Sequence[Cell]]
_Numbers = tuple[str, Sequence[float | None]]


@dataclass(frozen=True, kw_only=True)
class _Row:
    name: str
    found: Result

    def text(self, path: str) -> str:
        return figure(path).text(self.found)


def comparison_tables(comparison: Comparison) -> list[Block]:
    """Timing first; then what it costs and whether it is right."""
    runs = comparison.runs
    if not runs:
        return [Paragraph(text="No configuration was run.")]
    known = names(runs)
    rows = [_Row(name=known[run.id], found=result(run, comparison.noise_floor)) for run in runs]
    memory = memory_block(runs)
    return [
        Paragraph(
            text="Times are medians per call, back to back; eager is measured beside each configuration, in its phase "
            "and precision. The speedup, with its 95 % interval, is the median ratio of neighbouring blocks: where the "
            "machine’s speed wandered, the medians beside it give another. Break-even counts the calls until the first "
            "call with a cold cache has paid off, where compiled was shown to be faster."
            + (
                f" {OWN_CACHE}"
                if any(row.text("compile.own_cache_first_call_s") != words.UNKNOWN for row in rows)
                else ""
            )
        ),
        _timing_table(rows),
        _table(rows, _COMPILE),
        _table(
            rows,
            _RESOURCES,
            note="Latency is the median of calls that are each waited for; GPU busy the share of a compiled call in "
            "which kernels ran.",
        ),
        *([memory] if memory else []),
    ]


def _timing_table(rows: Sequence[_Row]) -> Table:
    compiled = [row.found.measures.compiled for row in rows]
    p95 = ("p95", [found.p95 if found else None for found in compiled])
    times = _in_one_unit("s", [_numbers(rows, "timing.eager_ms"), _numbers(rows, "timing.compiled_ms"), p95])
    speedups = [row.found.measures.speedup for row in rows]
    decimals = numbers.ratios(
        [found.value if found else None for found in speedups], [found.spread if found else None for found in speedups]
    )
    columns = [
        *times,
        (
            Column(title="Speedup", unit="×"),
            [Cell(text=_speedup(found, decimals), tone="strong") for found in speedups],
        ),
        (Column(title="95 % interval", unit="×"), [Cell(text=_interval(found, decimals)) for found in speedups]),
        _texts(rows, "break_even.cold_calls"),
        (
            Column(title=figure("verdict_word").head, align="left"),
            [Cell(text=row.text("verdict_word"), tone=tone(row.found.run, row.found.verdict)) for row in rows],
        ),
    ]
    names = [Cell(text=row.name, link=anchor(row.found.run)) for row in rows]
    return _put_together(names, columns)


def _table(rows: Sequence[_Row], groups: Sequence[Sequence[str]], note: str = "") -> Table:
    """Figures by their paths; those of one group share a unit."""
    columns: list[_Column] = []
    for group in groups:
        unit = figure(group[0]).kind.unit
        numbered = [_numbers(rows, path) for path in group] if unit else []
        columns += _in_one_unit(unit, numbered) if numbered else [_texts(rows, path) for path in group]
    return _put_together([Cell(text=row.name) for row in rows], columns, note)


def _put_together(names: Sequence[Cell], columns: Sequence[_Column], note: str = "") -> Table:
    head = Column(title="Configuration", align="left", share=1.0)
    cells = zip(names, *(cells for _, cells in columns), strict=True)
    return Table(columns=(head, *(column for column, _ in columns)), rows=[list(row) for row in cells], note=note)


def _numbers(rows: Sequence[_Row], path: str) -> _Numbers:
    one = figure(path)
    values = [one.of(row.found) for row in rows]
    return one.head, [None if value is None else one.kind.key(value) for value in values]


def _in_one_unit(unit: str, columns: Sequence[_Numbers]) -> list[_Column]:
    """Times or sizes in one unit, so that they compare across too."""
    shown, texts = numbers.SCALED[unit]([value for _, values in columns for value in values])
    cells, count = [Cell(text=text) for text in texts], len(columns[0][1])
    return [(Column(title=name, unit=shown), cells[count * i : count * (i + 1)]) for i, (name, _) in enumerate(columns)]


def _texts(rows: Sequence[_Row], path: str) -> _Column:
    one = figure(path)
    values = [one.of(row.found) for row in rows]
    tones = [one.tone(value) if one.tone and value is not None else "" for value in values]
    cells = [Cell(text=one.kind.shown(value), tone=tone) for value, tone in zip(values, tones, strict=True)]
    return Column(title=one.head, align="right" if one.kind.is_number else "left"), cells


def _speedup(found: Interval | None, decimals: int) -> str:
    return words.UNKNOWN if found is None else f"{found.value:.{decimals}f}"


def _interval(found: Interval | None, decimals: int) -> str:
    return words.UNKNOWN if found is None else f"{_bound(found.low, decimals)} – {_bound(found.high, decimals)}"


def _bound(value: float, decimals: int) -> str:
    """No speedup is 0, however little of it is sure."""
    return f"{value:.{decimals}f}" if round(value, decimals) else units.significant(value, 1)
