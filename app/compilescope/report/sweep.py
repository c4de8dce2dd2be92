"""A shape sweep in a report: every size that was timed, a row each."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.domain import units, words
from compilescope.domain.measures import ShapeMeasures, measure
from compilescope.domain.run import Run
from compilescope.report import numbers
from compilescope.report.blocks import Block, Cell, Column, Paragraph, Table
from compilescope.report.chart_blocks import sweep_block


def sweep_blocks(run: Run) -> Iterator[Block]:
    """The table of sizes; nothing where one set was timed."""
    rows = measure(run).shapes
    if not rows:
        return
    yield Paragraph(text=f"Sizes: {len(rows)}", style="label")
    unit, times = numbers.times(
        [row.eager.median if row.eager else None for row in rows]
        + [row.compiled.median if row.compiled else None for row in rows]
    )
    first_unit, first_calls = numbers.times([row.first_call_s for row in rows])
    yield Table(
        columns=(
            Column(title="Inputs", align="left", share=1.0),
            Column(title="First call", unit=first_unit),
            Column(title="Eager", unit=unit),
            Column(title="Compiled", unit=unit),
            Column(title="Speedup", unit="×"),
            Column(title="95 % interval", unit="×"),
            Column(title="Recompiles"),
            Column(title="Results", align="left"),
        ),
        rows=[
            (
                Cell(text=row.label),
                Cell(text=first_calls[i]),
                Cell(text=times[i]),
                Cell(text=times[len(rows) + i]),
                *_speedup(row),
                Cell(text=units.count(row.recompiles), tone="warn" if row.recompiles else ""),
                Cell(
                    text=words.AGREEMENTS.get(row.numerics or "", words.UNKNOWN),
                    tone=words.AGREEMENT_TONES.get(row.numerics or "", ""),
                ),
            )
            for i, row in enumerate(rows)
        ],
        note="Medians per call, back to back. First call: that of the size, which compiles where its guards are new; "
        "recompiles: those that the size brought.",
    )
    figure = sweep_block(run)
    if figure:
        yield figure


def _speedup(row: ShapeMeasures) -> tuple[Cell, Cell]:
    found = row.speedup
    if found is None:
        return Cell(text="–"), Cell(text="–")
    decimals = numbers.ratios([found.value], [found.spread])
    interval = f"{found.low:.{decimals}f} – {found.high:.{decimals}f}"
    return Cell(text=f"{found.value:.{decimals}f}", tone="strong"), Cell(text=interval)
