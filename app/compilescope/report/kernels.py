"""What was generated and tried, in a report: the kernels of a run, and its autotuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.domain import events as e
from compilescope.domain import units, words
from compilescope.domain.run import Run
from compilescope.report import numbers
from compilescope.report.blocks import Block, Cell, Column, Paragraph, Table
from compilescope.report.machinery import shortened

MOST_KERNELS = 15
MOST_OPERATIONS = 15
MOST_PLACES = 3
KINDS = {"triton": "Triton", "cpp": "C++", "extern": "library"}


def kernel_blocks(run: Run, name: str, seen: dict[tuple[object, ...], str]) -> Iterator[Block]:
    """The kernels of the cold process, those launched most first. `seen`: which were listed already, and where."""
    rows = run.story.kernels if run.story else []
    if not rows:
        return
    generated = sum(row.kind != "extern" for row in rows)
    yield Paragraph(text=f"Kernels: {len(rows)}, {generated} of them generated", style="label")
    key = tuple((row.name, row.kind, row.launches, row.places) for row in rows)
    first = seen.setdefault(key, name)
    if first != name:
        yield Paragraph(text=f"The same as under {first}.")
        return
    yield _kernel_table(rows)


def _kernel_table(rows: Sequence[e.Kernel]) -> Table:
    shown = sorted(rows, key=lambda row: -(row.launches or 0))[:MOST_KERNELS]
    rest = len(rows) - len(shown)
    more = f". Left out: {rest} more, launched as often or less" if rest else ""
    return Table(
        columns=(
            Column(title="Kernel", align="left", share=1.0),
            Column(title="Kind", align="left"),
            Column(title="Launches"),
            Column(title="Made from", align="left", share=0.4),
        ),
        rows=[
            (
                Cell(text=shortened(row.name)),
                Cell(text=KINDS.get(row.kind, row.kind), tone="muted"),
                Cell(text=units.count(row.launches)),
                Cell(text=_places(row.places), tone="muted"),
            )
            for row in shown
        ],
        note=f"Launches are those that the generated code holds, however often a call runs it{more}.",
    )


def _places(places: Sequence[e.Place]) -> str:
    names = list(dict.fromkeys(words.place(row.file, row.line) for row in places))
    more = len(names) - MOST_PLACES
    return ", ".join(names[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "") or "–"


def autotune_blocks(run: Run) -> Iterator[Block]:
    """What was tried for each operation, the costliest first."""
    rows = run.story.autotunes if run.story else []
    if not rows:
        return
    total = sum(row.duration_s or 0.0 for row in rows)
    yield Paragraph(
        text=f"Autotuning: {units.plural(len(rows), 'operation')} in {units.duration(total)}", style="label"
    )
    shown = sorted(rows, key=lambda row: -(row.duration_s or 0.0))[:MOST_OPERATIONS]
    best, second = [_times(row)[:1] for row in shown], [_times(row)[1:2] for row in shown]
    unit, times = numbers.times([next(iter(found), None) for found in (*best, *second)])
    took_unit, took = numbers.times([row.duration_s for row in shown])
    rest = len(rows) - len(shown)
    yield Table(
        columns=(
            Column(title="Operation", align="left"),
            Column(title="Inputs", align="left", share=1.0),
            Column(title="Tried"),
            Column(title="Winner", align="left", share=1.0),
            Column(title="Its time", unit=unit),
            Column(title="Next best", unit=unit),
            Column(title="Took", unit=took_unit),
        ),
        rows=[
            (
                Cell(text=row.operation or "–"),
                Cell(text=shortened(", ".join(row.inputs), 160) or "–", tone="muted"),
                Cell(text=units.count(len(row.choices))),
                Cell(text=row.winner or "–"),
                Cell(text=times[i]),
                Cell(text=times[len(shown) + i]),
                Cell(text=took[i]),
            )
            for i, row in enumerate(shown)
        ],
        note=f"Left out: {rest} more, which took less." if rest else "",
    )


def _times(row: e.Autotune) -> list[float]:
    """Seconds of the choices that ran, the fastest first."""
    return sorted(float(choice["seconds"]) for choice in row.choices if choice.get("seconds"))
