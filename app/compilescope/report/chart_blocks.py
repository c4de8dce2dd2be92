"""The charts of a report, as data taken from runs."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.domain import units
from compilescope.domain.breakeven import calls_text
from compilescope.domain.comparison import Verdict, judge
from compilescope.domain.firstcall import FIRST_USE, OUTSIDE, first_call_parts
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import COMPILED, EAGER, ProcessStory, Run
from compilescope.domain.standing import verdict_word
from compilescope.report.blocks import (
    ChartBlock,
    CostChart,
    CostLine,
    DistributionChart,
    MemoryChart,
    PhaseBar,
    PhaseChart,
    SpeedupBar,
    SpeedupChart,
    SweepChart,
)
from compilescope.report.names import names

SPEEDUP_BARS = 12
LONGEST_LABEL = 90
GROUPS = (
    *("dynamo", "guards", "aot", "backward", "inductor", "codegen", "kernels", "autotune", "cudagraphs", "other"),
    *(FIRST_USE, OUTSIDE),
)


def speedup_block(runs: Sequence[Run], chosen: str | None, noise_floor: float) -> ChartBlock | None:
    """Every configuration's speedup; the fastest ones where there are too many for a page."""
    known = names(runs)
    bars = [_speedup_bar(run, known[run.id], run.id == chosen, noise_floor) for run in runs]
    if not any(bar.value for bar in bars):
        return None
    caption = "Speedup over eager with its 95 % interval; right of the line is faster than eager."
    if len(bars) > SPEEDUP_BARS:
        bars = sorted(bars, key=lambda bar: (not bar.is_chosen, -(bar.value or 0.0)))[:SPEEDUP_BARS]
        bars.sort(key=lambda bar: -(bar.value or 0.0))
        caption += f" The {SPEEDUP_BARS} fastest of {len(runs)} configurations; the table holds all."
    return ChartBlock(chart=SpeedupChart(bars=bars), caption=caption)


def _speedup_bar(run: Run, label: str, is_chosen: bool, noise_floor: float) -> SpeedupBar:
    verdict, interval = judge(run, noise_floor), measure(run).speedup
    kind = verdict.kind if verdict else "running"
    shows = interval is not None and kind != "failed"
    return SpeedupBar(
        label=label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…",
        kind=kind,
        value=interval.value if interval and shows else None,
        low=interval.low if interval and shows else None,
        high=interval.high if interval and shows else None,
        note=_speedup_note(run, verdict, shows),
        is_chosen=is_chosen,
    )


def _speedup_note(run: Run, verdict: Verdict | None, shows: bool) -> str:
    """What the mark and the figure do not say already."""
    word = verdict_word(run, verdict)
    return "" if shows and word in ("faster", "slower", "no difference") else word


def distribution_block(run: Run) -> ChartBlock | None:
    """How the timed blocks of both sides spread, both processes together."""
    eager, compiled = (_samples(run, side) for side in (EAGER, COMPILED))
    if len(eager) < 3 or len(compiled) < 3:
        return None
    measures = measure(run)
    clock = "CUDA events" if measures.clock == "cuda_event" else "the wall clock"
    timed = sum(1 for process in run.processes if process.samples(COMPILED).seconds)
    means = "; in the medians above each process weighs the same" if timed > 1 else ""
    caption = (
        f"Time per call, back to back, by {clock}: {units.count(len(eager))} blocks of eager and "
        f"{units.count(len(compiled))} of compiled calls, taken in turn. Over all blocks, the line marks the median, "
        f"the box the middle half, the whiskers the 5th and 95th percentile{means}."
    )
    return ChartBlock(chart=DistributionChart(eager=eager, compiled=compiled), caption=caption)


def _samples(run: Run, side: str) -> list[float]:
    return [value for process in run.processes for value in process.samples(side).seconds if value > 0]


def phase_block(run: Run) -> ChartBlock | None:
    """Where the first calls went, cold above warm."""
    bars = first_call_bars(run)
    if not bars:
        return None
    caption = (
        "First compiled call by compiler phase, each phase without those inside it; together they are the call. "
        f"“First use” is what the process would have paid for any model. {_starts_text(run)}"
    )
    return ChartBlock(chart=PhaseChart(bars=bars), caption=caption)


def starts(run: Run) -> tuple[tuple[str, ProcessStory | None], tuple[str, ProcessStory | None]]:
    """Both processes with their names: with the user's own cache the first is no cold one."""
    first, second = ("First", "Second") if run.uses_own_cache else ("Cold", "Warm")
    return (first, run.cold), (second, run.warm)


def _starts_text(run: Run) -> str:
    if run.uses_own_cache:
        return "The “first” process began with your own cache, whatever it held; the “second” with what that one left."
    return "“Cold” starts with an empty cache, “warm” in a new process with the cache that the cold one left."


def first_call_bars(run: Run) -> list[PhaseBar]:
    """The first compiled calls of the cold and the warm process, as far as they were made."""
    bars = [_phase_bar(label, process) for label, process in starts(run) if process is not None]
    return [bar for bar in bars if bar is not None]


def _phase_bar(label: str, process: ProcessStory) -> PhaseBar | None:
    found = first_call_parts(process)
    if found is None or found.total_s <= 0 or not process.phases:
        return None
    totals: dict[str, float] = {}
    for group, seconds in found.groups.items():
        name = group if group in GROUPS else "other"
        totals[name] = totals.get(name, 0.0) + seconds
    parts = [(name, totals[name]) for name in GROUPS if totals.get(name)]
    return PhaseBar(label=label, total_s=found.total_s, parts=parts)


def cost_block(run: Run, verdict: Verdict | None) -> ChartBlock | None:
    """When this configuration has paid for its first call; None where that is not shown."""
    chart = cost_chart(measure(run), verdict)
    if chart is None or verdict is None or verdict.cold_break_even is None:
        return None
    caption = (
        "Total time over calls. Where a line crosses eager’s, compiling has paid for its first call: "
        f"after about {calls_text(verdict.cold_break_even.calls)} calls with a cold cache."
    )
    return ChartBlock(chart=chart, caption=caption)


def cost_chart(found: Measures, verdict: Verdict | None) -> CostChart | None:
    """Eager and compiled over so many calls that the lines cross; None where they are not shown to."""
    even, eager, speedup = verdict.cold_break_even if verdict else None, found.eager, found.speedup
    if even is None or eager is None or speedup is None or found.cold_first_call_s is None:
        return None
    # by the very ratio that the break-even comes from, so that the lines cross where it says
    per_call_s = eager.median / speedup.value
    lines = [CostLine(label="eager", ahead_s=0.0, per_call_s=eager.median, is_eager=True)]
    starts = (("cold cache", found.cold_first_call_s), ("warm cache", found.warm_first_call_s))
    for label, first_call_s in starts:
        if first_call_s is not None:
            ahead_s = max(first_call_s - per_call_s, 0.0)
            lines.append(CostLine(label=label, ahead_s=ahead_s, per_call_s=per_call_s))
    return CostChart(lines=lines, calls=2 * even.calls)


def sweep_block(run: Run) -> ChartBlock | None:
    """Both sides over the sizes of a shape sweep; None where one set of sizes was timed."""
    shapes = measure(run).shapes
    if not any(shape.eager and shape.compiled for shape in shapes):
        return None
    chart = SweepChart(
        sizes=[shape.label for shape in shapes],
        eager=[shape.eager.median if shape.eager else None for shape in shapes],
        compiled=[shape.compiled.median if shape.compiled else None for shape in shapes],
    )
    return ChartBlock(chart=chart, caption="Median time per call at each size, in the order in which they were timed.")


def memory_block(runs: Sequence[Run]) -> ChartBlock | None:
    """Peaks of both sides by configuration; None where none was measured."""
    known = names(runs)
    measured = [(known[run.id], measure(run)) for run in runs]
    rows = [(name, found.eager_peak_bytes, found.compiled_peak_bytes) for name, found in measured]
    rows = [row for row in rows if row[1] or row[2]]
    if not rows:
        return None
    caption = "Peak of the device's memory in steady calls, each side measured alone."
    if len(rows) > SPEEDUP_BARS:
        caption += f" The first {SPEEDUP_BARS} of {len(rows)} configurations; the table holds all."
    return ChartBlock(chart=MemoryChart(rows=rows[:SPEEDUP_BARS]), caption=caption)
