"""The pages of one configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compilescope.domain import events as e
from compilescope.domain import units, words
from compilescope.domain.advice import Advice, advise
from compilescope.domain.comparison import Comparison, Verdict
from compilescope.domain.faults import HINT
from compilescope.domain.figures import Result, Shown, result, shown_in
from compilescope.domain.run import GraphBreakRow, Run
from compilescope.domain.standing import tone, verdict_word
from compilescope.domain.verdict import break_even_word, judge_with_fault, places_text, step_sentence
from compilescope.report import chart_blocks
from compilescope.report.blocks import Block, Bullets, Cell, Code, Column, Facts, Paragraph, Section, Table
from compilescope.report.hotspots import hotspot_blocks
from compilescope.report.kept import kept_blocks
from compilescope.report.kernels import autotune_blocks, kernel_blocks
from compilescope.report.machinery import cache_blocks, cudagraph_blocks, phase_blocks, recompile_blocks, shortened
from compilescope.report.names import names
from compilescope.report.sources import Reader, excerpt
from compilescope.report.sweep import sweep_blocks

TRACEBACK_LINES = 24
# what torch ends its errors with; it helps nobody who reads a report
_BOILERPLATE = "Set TORCHDYNAMO_VERBOSE=1"
EVIDENCE_CHARACTERS = 200


@dataclass
class Seen:
    """What was told already, and where: the same break in twelve configurations is described once."""

    breaks: dict[tuple[object, ...], str] = field(default_factory=dict)
    failures: dict[tuple[object, ...], str] = field(default_factory=dict)
    advice: dict[str, str] = field(default_factory=dict)
    kernels: dict[tuple[object, ...], str] = field(default_factory=dict)


def configuration_section(run: Run, comparison: Comparison, read: Reader, seen: Seen) -> Section:
    """Everything about one run."""
    name = names(comparison.runs)[run.id]
    found = result(run, comparison.noise_floor)
    verdict = found.verdict
    is_told = _failure_key(run) in seen.failures
    parts: tuple[tuple[str, Iterable[Block]], ...] = (
        ("What it came to", _outcome(run, comparison.noise_floor)),
        ("The error", _failure(run, name, read, seen)),
        ("The timing", _timing(found)),
        ("Where the time goes", hotspot_blocks(run)),
        ("The first call", phase_blocks(run)),
        ("The shape sweep", sweep_blocks(run)),
        ("The break-even", _cost(run, verdict)),
        ("What is known of results and memory", _numbers_and_memory(found)),
        ("The list of graph breaks", _graph_breaks(run, name, read, seen)),
        ("The list of recompiles", recompile_blocks(run)),
        ("The ledger of caches", cache_blocks(run)),
        ("What became of CUDA graphs", cudagraph_blocks(run)),
        ("What was autotuned", autotune_blocks(run)),
        ("What to try", _advice(run, name, comparison, seen)),
        # the longest, so that no page holds a line or two that came after it
        ("The list of kernels", kernel_blocks(run, name, seen.kernels)),
    )
    return Section(
        title=name,
        blocks=[block for what, blocks in parts for block in kept_blocks(what, blocks)],
        level=2,
        anchor=anchor(run),
        # what fails as another one did takes a few lines, and no page
        starts_page=not is_told or run.story is None or run.story.has_compiled,
        badge=verdict_word(run, verdict),
        badge_tone=tone(run, verdict),
    )


def _outcome(run: Run, noise_floor: float) -> Iterator[Block]:
    verdict, fault = judge_with_fault(run, noise_floor)
    yield Code(text=run.config.snippet)
    if fault:
        yield Paragraph(text=f"{fault} {HINT}", style="lead", tone="warn")
    elif verdict:
        yield Paragraph(text=verdict.summary, style="lead")
        yield Bullets(items=verdict.reasons)
    elif run.is_trace:
        yield Paragraph(text="Read from a saved trace, in which nothing was measured.", style="lead")
    else:
        yield Paragraph(text="This run was still going on when the report was written.", style="lead")


def anchor(run: Run) -> str:
    return f"run-{run.id}"


def _failure_key(run: Run) -> tuple[object, ...]:
    """What makes two runs fail alike."""
    error = run.error
    return (error.stage, error.type, error.message.strip(), error.file, error.line) if error else (run.id,)


def _failure(run: Run, name: str, read: Reader, seen: Seen) -> Iterator[Block]:
    error = run.error
    if error is None:
        if run.ended and run.ended.last_lines:
            yield Paragraph(text="Last lines of the log", style="label")
            yield Code(text="\n".join(run.ended.last_lines[-TRACEBACK_LINES:]))
        return
    first = seen.failures.setdefault(_failure_key(run), name)
    if first != name:
        yield Paragraph(text=f"The same error as under {first}; its place and traceback stand there.")
        return
    code = excerpt(read, error.file, error.line)
    if code:
        yield Paragraph(text=f"Where it failed: {words.place(error.file, error.line)}", style="label")
        yield code
    elif error.message.strip().count("\n"):
        yield Paragraph(text="Message", style="label")
        yield Code(text=error.message.strip())
    if error.traceback:
        lines = error.traceback.partition(_BOILERPLATE)[0].rstrip().splitlines()
        cut = len(lines) - TRACEBACK_LINES
        yield Paragraph(text="Traceback" + (f", its last {TRACEBACK_LINES} lines" if cut > 0 else ""), style="label")
        yield Code(text="\n".join(lines[-TRACEBACK_LINES:]))


def _timing(found: Result) -> Iterator[Block]:
    if found.measures.eager is None or found.measures.compiled is None:
        return
    pays_off = break_even_word(found.verdict) if found.verdict and found.measures.speedup else ""
    yield Paragraph(text="Timing", style="label")
    yield Facts(rows=[*_facts(found, "Timing"), *([("Break-even, cold", pays_off)] if pays_off else [])])
    chart = chart_blocks.distribution_block(found.run)
    if chart:
        yield chart


def _cost(run: Run, verdict: Verdict | None) -> Iterator[Block]:
    figure = chart_blocks.cost_block(run, verdict)
    if figure:
        yield Paragraph(text="Break-even", style="label")
        yield figure


def _facts(found: Result, section: str) -> list[tuple[str, str]]:
    """What is known of the figures of a section."""
    known = [(one, one.of(found)) for one in shown_in(Shown.FACTS) if one.section == section]
    return [(one.title, one.kind.at_length(value)) for one, value in known if value not in (None, "")]


def _graph_breaks(run: Run, name: str, read: Reader, seen: Seen) -> Iterator[Block]:
    rows = list(run.story.graph_breaks.values()) if run.story else []
    if run.story is None or not rows:
        if run.story and run.story.graphs:
            yield Paragraph(text="Graph breaks", style="label")
            around = step_sentence(run.story)
            in_script = f"None in the script. {around}" if around else ""
            yield Paragraph(text=in_script or "None: every frame that was compiled is one graph.")
        return
    yield Paragraph(text=f"Graph breaks: {run.story.break_count}{places_text(run.story)}", style="label")
    known = [row for row in rows if _break_key(row) in seen.breaks]
    for row in rows:
        if _break_key(row) not in seen.breaks:
            yield from _graph_break(row, read)
            seen.breaks[_break_key(row)] = name
    if known:
        yield _known_breaks(known, seen)


def _break_key(row: GraphBreakRow) -> tuple[object, ...]:
    event = row.event
    return event.id or event.kind, event.reason, event.file, event.line, event.function


def _graph_break(row: GraphBreakRow, read: Reader) -> Iterator[Block]:
    event = row.event
    title = " · ".join(part for part in (event.id, event.kind or event.reason) if part)
    where = words.place(event.file, event.line) + (f", in {event.function}" if event.function else "")
    times = f", {units.count(row.count)} times" if row.count > 1 else ""
    yield Paragraph(text=f"{title or 'Graph break'}", tone="strong")
    yield Paragraph(text=f"{where}{times}{_frame_note(event)}", style="small", tone="muted")
    code = excerpt(read, event.file, event.line)
    if code:
        yield code
    yield Paragraph(text=_sentence(event.explanation or event.reason))
    if event.hints:
        yield Bullets(items=[_sentence(hint) for hint in event.hints])


def _frame_note(event: e.GraphBreak) -> str:
    notes = []
    if event.in_loop:
        notes.append("inside a loop")
    if event.frame_skipped:
        notes.append("the whole frame runs eager")
    return "; " + ", ".join(notes) if notes else ""


def _known_breaks(rows: Sequence[GraphBreakRow], seen: Seen) -> Table:
    return Table(
        columns=(
            Column(title="Place", align="left"),
            Column(title="Graph break", align="left", share=1.0),
            Column(title="Count"),
            Column(title="Described under", align="left"),
        ),
        rows=[
            (
                Cell(text=words.place(row.event.file, row.event.line)),
                Cell(text=" · ".join(part for part in (row.event.id, row.event.kind or row.event.reason) if part)),
                Cell(text=units.count(row.count)),
                Cell(text=_short(seen.breaks[_break_key(row)]), tone="muted"),
            )
            for row in rows
        ],
    )


def _numbers_and_memory(found: Result) -> Iterator[Block]:
    is_told = found.run.outcome == "finished" or found.measures.numerics.verdict != "not_checked"
    rows = [*(_facts(found, "Checks") if is_told else ()), *_facts(found, "Memory")]
    if rows:
        yield Paragraph(text="Results and memory", style="label")
        yield Facts(rows=rows)


def _advice(run: Run, name: str, comparison: Comparison, seen: Seen) -> Iterator[Block]:
    found = advise(run, comparison.runs, comparison.noise_floor, comparison.play_offs)
    if not found:
        return
    items, known = [], dict[str, list[str]]()
    for advice in found:
        text = advice_text(advice)
        if text in seen.advice:
            known.setdefault(seen.advice[text], []).append(advice.title)
        else:
            seen.advice[text] = name
            items.append(text)
    items += [f"As under {other}: {'; '.join(titles)}." for other, titles in known.items()]
    yield Paragraph(text="What to try", style="label")
    yield Bullets(items=items)


def advice_text(advice: Advice) -> str:
    """A piece of advice as running text."""
    evidence = _sentence(shortened(advice.evidence, EVIDENCE_CHARACTERS))
    return f"{advice.title}. {evidence} {_sentence(advice.remedy)} See: {advice.source.title}."


def _sentence(text: str) -> str:
    short = " ".join(text.split())
    return short if not short or short.endswith((".", "!", "?", ":", ")", "…")) else short + "."


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
