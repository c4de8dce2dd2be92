"""The tables that hold every configuration beside eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compilescope.domain import cudagraphs, units, words
from compilescope.domain.breakeven import calls_text
from compilescope.domain.comparison import Comparison, Verdict, judge
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.standing import tone, verdict_word
from compilescope.report import numbers
from compilescope.report.blocks import Block, Cell, Column, Paragraph, Table
from compilescope.report.columns import OWN_CACHE
from compilescope.report.configuration import anchor
from compilescope.report.figures import memory_figure
from compilescope.report.names import names

Value = Callable[[Measures], float | None]


def comparison_tables(comparison: Comparison) -> list[Block]:
    """Timing first; then what it costs and whether it is right."""
    runs = comparison.runs
    labels = list(names(runs).values())
    if not runs:
        return [Paragraph(text="No configuration was run.")]
    memory = memory_figure(runs)
    return [
        Paragraph(
            text="Times are medians per call, back to back; eager is measured beside each configuration, in its phase "
            "and precision. The speedup, with its 95 % interval, is the median ratio of neighbouring blocks: where the "
            "machine’s speed wandered, the medians beside it give another. Break-even counts the calls until the first "
            "call with a cold cache has paid off, where compiled was shown to be faster."
            + (f" {OWN_CACHE}" if any(run.uses_own_cache for run in runs) else "")
        ),
        _timing_table(runs, labels, comparison.noise_floor),
        _compile_table(runs, labels),
        _resources_table(runs, labels),
        *([memory] if memory else []),
    ]


def _timing_table(runs: Sequence[Run], labels: Sequence[str], noise_floor: float) -> Table:
    unit, (eager, compiled, p95) = _times(
        runs,
        lambda m: m.eager.median if m.eager else None,
        lambda m: m.compiled.median if m.compiled else None,
        lambda m: m.compiled.p95 if m.compiled else None,
    )
    speedups = [measure(run).speedup for run in runs]
    decimals = numbers.ratios(
        [found.value if found else None for found in speedups],
        [(found.high - found.low) / 2 if found else None for found in speedups],
    )
    verdicts = [judge(run, noise_floor) for run in runs]
    return Table(
        columns=(
            Column(title="Configuration", align="left", share=1.0),
            Column(title="Eager", unit=unit),
            Column(title="Compiled", unit=unit),
            Column(title="p95", unit=unit),
            Column(title="Speedup", unit="×"),
            Column(title="95 % interval", unit="×"),
            Column(title="Break-even", unit="calls"),
            Column(title="Verdict", align="left"),
        ),
        rows=[
            (
                Cell(text=labels[i], link=anchor(run)),
                Cell(text=eager[i]),
                Cell(text=compiled[i]),
                Cell(text=p95[i]),
                Cell(text=_speedup(run, decimals), tone="strong"),
                Cell(text=_interval(run, decimals)),
                Cell(text=_break_even(verdicts[i])),
                _verdict(run, verdicts[i]),
            )
            for i, run in enumerate(runs)
        ],
    )


def _compile_table(runs: Sequence[Run], labels: Sequence[str]) -> Table:
    unit, (cold, warm) = _times(runs, lambda m: m.cold_first_call_s, lambda m: m.warm_first_call_s)
    return Table(
        columns=(
            Column(title="Configuration", align="left", share=1.0),
            Column(title="First call", unit=unit),
            Column(title="Warm call", unit=unit),
            Column(title="Graphs"),
            Column(title="Operations"),
            Column(title="Kernels"),
            Column(title="Breaks"),
            Column(title="Recompiles"),
            Column(title="CUDA graphs", align="left"),
        ),
        rows=[
            (Cell(text=labels[i]), Cell(text=cold[i]), Cell(text=warm[i]), *_story_cells(run))
            for i, run in enumerate(runs)
        ],
    )


def _story_cells(run: Run) -> list[Cell]:
    kernels = len(run.story.kernels) or None if run.story else None
    return [
        *(Cell(text=units.count(number)) for number in (run.graphs, run.ops, kernels)),
        *(Cell(text=units.count(number), tone="warn" if number else "") for number in (run.breaks, run.recompiles)),
        Cell(text=cudagraphs.fate(run) or words.UNKNOWN),
    ]


def _resources_table(runs: Sequence[Run], labels: Sequence[str]) -> Table:
    latency_unit, (latency,) = _times(runs, lambda m: m.compiled_latency.median if m.compiled_latency else None)
    measured = [measure(run) for run in runs]
    count = len(runs)
    memory_unit, memory = numbers.sizes(
        [m.eager_peak_bytes for m in measured] + [m.compiled_peak_bytes for m in measured]
    )
    return Table(
        columns=(
            Column(title="Configuration", align="left", share=1.0),
            Column(title="Latency", unit=latency_unit),
            Column(title="GPU busy", unit="%"),
            Column(title="Eager peak", unit=memory_unit),
            Column(title="Compiled peak", unit=memory_unit),
            Column(title="Results", align="left"),
            Column(title="Largest difference"),
        ),
        rows=[
            (
                Cell(text=labels[i]),
                Cell(text=latency[i]),
                Cell(text=_busy(found)),
                Cell(text=memory[i]),
                Cell(text=memory[count + i]),
                _results(found),
                Cell(text="–" if found.numerics.max_abs_error is None else f"{found.numerics.max_abs_error:.2g}"),
            )
            for i, found in enumerate(measured)
        ],
        note="Latency is the median of compiled calls, each waited for; GPU busy the share of a compiled call in which "
        "kernels ran.",
    )


def _times(runs: Sequence[Run], *values: Value) -> tuple[str, list[list[str]]]:
    """Columns of times in one unit, so that they compare across too."""
    unit, texts = numbers.times([value(measure(run)) for value in values for run in runs])
    count = len(runs)
    return unit, [texts[count * i : count * (i + 1)] for i in range(len(values))]


def _speedup(run: Run, decimals: int) -> str:
    found = measure(run).speedup
    return "–" if found is None else f"{found.value:.{decimals}f}"


def _interval(run: Run, decimals: int) -> str:
    found = measure(run).speedup
    return "–" if found is None else f"{_bound(found.low, decimals)} – {_bound(found.high, decimals)}"


def _bound(value: float, decimals: int) -> str:
    """No speedup is 0, however little of it is sure."""
    return f"{value:.{decimals}f}" if round(value, decimals) else units.significant(value, 1)


def _break_even(verdict: Verdict | None) -> str:
    even = verdict.cold_break_even if verdict else None
    return "–" if even is None else calls_text(even.calls)


def _verdict(run: Run, found: Verdict | None) -> Cell:
    return Cell(text=verdict_word(run, found), tone=tone(run, found))


def _busy(found: Measures) -> str:
    return "–" if found.compiled_busy_share is None else f"{100 * found.compiled_busy_share:.0f}"


def _results(found: Measures) -> Cell:
    verdict = found.numerics.verdict
    return Cell(text=words.AGREEMENTS[verdict], tone=words.AGREEMENT_TONES.get(verdict, ""))
