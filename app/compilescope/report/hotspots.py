"""Where the time of a call goes, in a report: what the profiler's figures say, and the heaviest of each side."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.domain import units
from compilescope.domain.hotspot_sentences import sentences
from compilescope.domain.hotspots import SideTime, hotspots
from compilescope.domain.peaks import SOURCE
from compilescope.domain.run import Run
from compilescope.report import numbers
from compilescope.report.blocks import Block, Bullets, Cell, Column, Paragraph, Table
from compilescope.report.machinery import shortened

MOST_ROWS = 10
LONGEST_NAME = 90


def hotspot_blocks(run: Run) -> Iterator[Block]:
    """Nothing where no call was profiled."""
    found = hotspots(run)
    if found is None:
        return
    yield Paragraph(text="Where the time goes", style="label")
    yield Bullets(items=list(sentences(found)))
    for side in found.sides:
        yield _table(side)


def _table(side: SideTime) -> Table:
    shown = side.rows[:MOST_ROWS]
    unit, times = numbers.times([row.seconds for row in shown])
    return Table(
        columns=(
            Column(title=side.side.capitalize(), align="left", share=1.0),
            Column(title="Time", unit=unit),
            Column(title="Share"),
            Column(title="Launches"),
            Column(title="Rate"),
        ),
        rows=[
            (
                Cell(text=shortened(row.label, LONGEST_NAME)),
                Cell(text=time),
                Cell(text=units.percent(row.share)),
                Cell(text=units.count(row.launches) if row.launches >= 1 else units.significant(row.launches, 2)),
                Cell(text=row.rate, tone="muted"),
            )
            for row, time in zip(shown, times, strict=True)
        ],
        note=_note(side, len(shown)),
    )


def _note(side: SideTime, shown: int) -> str:
    rest = side.names - shown
    seconds = side.seconds - sum(row.seconds for row in side.rows[:shown])
    more = f" {units.plural(rest, 'lighter one')} not listed, {units.duration(seconds)} together." if rest > 0 else ""
    whole = "of the time per call" if side.clock == "device" else "of the profiled call"
    reaches_peak = any(row.flops_share or row.bytes_share for row in side.rows[:shown])
    peak = f" Beside a rate stands its share of the card’s peak ({SOURCE})." if reaches_peak else ""
    return f"Per call; shares are {whole}.{peak}{more}"
