"""What the compiler's machinery did in one run: phases, recompiles, caches, CUDA graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compilescope.domain import events as e
from compilescope.domain import units, words
from compilescope.domain.cacheledger import gained_s
from compilescope.domain.firstcall import first_call, first_call_parts
from compilescope.domain.run import ProcessStory, Run
from compilescope.report import chart_blocks, numbers
from compilescope.report.blocks import Block, Bullets, Cell, Column, Facts, Paragraph, Table

LONGEST_PHASES = 8
LONGEST_TEXT = 400


def phase_blocks(run: Run) -> Iterator[Block]:
    """The first calls: how long, and which phases."""
    figure = chart_blocks.phase_block(run)
    if figure is None:
        return
    yield Paragraph(text="First call", style="label")
    yield figure
    table = _phase_table(run)
    if table:
        yield table
    before = list(_before_the_first_call(run))
    if before:
        yield Paragraph(text="Before the first call", style="label")
        yield Facts(rows=before)


def _phase_table(run: Run) -> Table | None:
    cold, warm = (_by_phase(process) for _, process in chart_blocks.starts(run))
    names = sorted({*cold, *warm}, key=lambda key: -max(cold.get(key, 0.0), warm.get(key, 0.0)))
    if not names:
        return None
    shown, rest = names[:LONGEST_PHASES], names[LONGEST_PHASES:]
    columns = [[side.get(key) for key in shown] for side in (cold, warm)]
    if rest:
        for column, side in zip(columns, (cold, warm), strict=True):
            column.append(sum(side.get(key, 0.0) for key in rest))
    unit, texts = numbers.times([value for column in columns for value in column])
    count = len(columns[0])
    labels = [(name or group, group) for group, name in shown] + [(f"{len(rest)} shorter phases", "")] * bool(rest)
    rows = [
        (Cell(text=name), Cell(text=words.phase(group), tone="muted"), Cell(text=texts[i]), Cell(text=texts[count + i]))
        for i, (name, group) in enumerate(labels)
    ]
    return Table(
        columns=(
            Column(title="Phase", align="left", share=1.0),
            Column(title="Group", align="left"),
            *(Column(title=name, unit=unit) for name, _ in chart_blocks.starts(run)),
        ),
        rows=rows,
        note="Time in the phase itself, without the phases inside it; together they are the first call. Of threads "
        "that worked at once, the one that called counts.",
    )


def _before_the_first_call(run: Run) -> Iterator[tuple[str, str]]:
    """What each process paid before it compiled anything: imports, the device's context."""
    names: dict[str, dict[str, float]] = {}
    for label, process in chart_blocks.starts(run):
        call = first_call(process)
        for use in process.first_uses if process and call else ():
            if call and use.at <= call.at - call.duration_s:
                names.setdefault(use.name, {})[label.lower()] = use.duration_s
    for name, its in names.items():
        yield name[:1].upper() + name[1:], ", ".join(f"{units.duration(its[label])} {label}" for label in its)


def _by_phase(process: ProcessStory | None) -> dict[tuple[str, str], float]:
    found = first_call_parts(process)
    return found.parts if found else {}


def recompile_blocks(run: Run) -> Iterator[Block]:
    rows = list(run.story.recompiles.values()) if run.story else []
    if not rows:
        return
    yield Paragraph(text=f"Recompiles: {run.recompiles}", style="label")
    yield Table(
        columns=(
            Column(title="Function", align="left"),
            Column(title="Place", align="left"),
            Column(title="Guard that failed", align="left", share=1.0),
            Column(title="Count"),
        ),
        rows=[
            (
                Cell(text=row.event.function or "–"),
                Cell(text=words.place(row.event.file, row.event.line, words.UNKNOWN)),
                Cell(text=shortened(row.event.reason or row.event.guard)),
                Cell(text=units.count(row.count)),
            )
            for row in rows
        ],
    )
    limits = run.story.recompile_limits if run.story else []
    if limits:
        yield Bullets(items=[_limit_text(limit) for limit in limits])


def _limit_text(limit: e.RecompileLimit) -> str:
    number = f" of {limit.limit}" if limit.limit else ""
    return f"{limit.function or 'A function'} reached the recompile limit{number}: for other inputs it runs eager."


def cache_blocks(run: Run) -> Iterator[Block]:
    """The compile caches' ledger, cold and warm."""
    found = [(label.lower(), process) for label, process in chart_blocks.starts(run) if process]
    rows = [row for label, process in found for row in _cache_rows(label, process.cache, gained_s(run, process))]
    if not rows:
        return
    yield Paragraph(text="Compile caches", style="label")
    yield Table(
        columns=(
            Column(title="Cache", align="left"),
            Column(title="Start", align="left"),
            Column(title="Hits"),
            Column(title="Misses"),
            Column(title="Bypassed"),
            Column(title="Saved", unit="s"),
            Column(title="Why", align="left", share=1.0),
        ),
        rows=rows,
        note="Saved: by torch’s own account, but no more than the first call became shorter. What AOTAutograd’s hit "
        "saves holds what Inductor’s would have, so that rows do not add up."
        if any(event.saved_s for _, process in found for event in process.cache)
        else "",
    )


def _cache_rows(start: str, events: Sequence[e.Cache], gained: float | None) -> Iterator[Sequence[Cell]]:
    """`gained`: what the whole first call became shorter by; no cache saved more than that."""
    for name in dict.fromkeys(event.cache for event in events):
        own = [event for event in events if event.cache == name]
        told = [event.saved_s for event in own if event.saved_s is not None]
        saved = [] if not told else [sum(told)] if gained is None else [max(min(sum(told), gained), 0.0)]
        counts = [sum(event.state == state for event in own) for state in ("hit", "miss", "bypass")]
        reasons = dict.fromkeys(event.reason for event in own if event.reason)
        yield (
            Cell(text=name),
            Cell(text=start),
            *(Cell(text=units.count(count)) for count in counts),
            Cell(text=units.significant(sum(saved)) if saved else "–"),
            Cell(text=shortened("; ".join(reasons)) or "–", tone="muted"),
        )


def cudagraph_blocks(run: Run) -> Iterator[Block]:
    rows = run.story.cudagraphs if run.story else []
    if not rows:
        return
    recorded = run.story.recorded_cudagraphs if run.story else 0
    others = [row for row in rows if row.state != "recorded"]
    skips = Counter((row.reason or "no reason given", words.where(row.file, row.line)) for row in others)
    yield Paragraph(text="CUDA graphs", style="label")
    yield Facts(rows=[("Recorded", units.count(recorded)), ("Skipped or warned of", units.count(len(others)))])
    if skips:
        yield Bullets(
            items=[
                f"{shortened(reason)}{where}{f', {count} times' if count > 1 else ''}"
                for (reason, where), count in skips.items()
            ]
        )


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """A text from the compiler on one line, of a length that a cell can hold."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    # at a word's end, unless the last word is most of the text
    space = cut.rfind(" ", limit // 2)
    return (cut[:space] if space > 0 else cut).rstrip(",;: ") + "…"
