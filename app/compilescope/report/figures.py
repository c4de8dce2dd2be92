"""The charts of a report, as data taken from runs."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.domain import units
from compilescope.domain.comparison import judge
from compilescope.domain.measures import measure
from compilescope.domain.run import COMPILED, EAGER, ProcessStory, Run
from compilescope.report.blocks import (
    CostChart,
    CostLine,
    DistributionChart,
    Figure,
    PhaseBar,
    PhaseChart,
    SpeedupBar,
    SpeedupChart,
)
from compilescope.report.names import names

SPEEDUP_BARS = 12
LONGEST_LABEL = 90
KIND_NOTES = {
    "failed": "failed",
    "incorrect": "results differ",
    "not_compiled": "not compiled",
    "no_difference": "no measurable difference",
}
GROUPS = ("dynamo", "guards", "aot", "backward", "inductor", "codegen", "kernels", "autotune", "cudagraphs", "other")


def speedup_figure(runs: Sequence[Run], chosen: str | None, noise_floor: float) -> Figure | None:
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
    return Figure(chart=SpeedupChart(bars=bars), caption=caption)


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
        note=_speedup_note(run, kind, shows),
        is_chosen=is_chosen,
    )


def _speedup_note(run: Run, kind: str, shows: bool) -> str:
    if kind == "failed" and run.outcome not in (None, "failed"):
        return str(run.outcome).replace("_", " ")
    return KIND_NOTES.get(kind, "" if shows else "not measured")


def distribution_figure(run: Run) -> Figure | None:
    """How the timed blocks of both sides spread, both processes together."""
    eager, compiled = (_samples(run, side) for side in (EAGER, COMPILED))
    if len(eager) < 3 or len(compiled) < 3:
        return None
    measures = measure(run)
    clock = "CUDA events" if measures.clock == "cuda_event" else "the wall clock"
    caption = (
        f"Time per call, back to back, by {clock}: {units.count(len(eager))} blocks of eager and "
        f"{units.count(len(compiled))} of compiled calls, taken in turn. The line marks the median, the box the middle "
        "half, the whiskers the 5th and 95th percentile."
    )
    return Figure(chart=DistributionChart(eager=eager, compiled=compiled), caption=caption)


def _samples(run: Run, side: str) -> list[float]:
    return [value for process in run.processes for value in process.samples(side).seconds if value > 0]


def phase_figure(run: Run) -> Figure | None:
    """Where the first calls went, cold above warm."""
    bars = [
        bar
        for label, process in (("Cold", run.cold), ("Warm", run.warm))
        if process is not None and (bar := _phase_bar(label, process)) is not None
    ]
    if not bars:
        return None
    caption = (
        "First compiled call by compiler phase, each phase without those inside it. "
        "“Cold” starts with an empty cache, “warm” in a new process with the cache that the cold one left."
    )
    return Figure(chart=PhaseChart(bars=bars), caption=caption)


def _phase_bar(label: str, process: ProcessStory) -> PhaseBar | None:
    calls = process.first_calls
    call = calls.get((COMPILED, "step")) or calls.get((COMPILED, "forward"))
    own = own_times(process)
    if call is None or not own:
        return None
    totals: dict[str, float] = {}
    for group, _, seconds in own:
        name = group if group in GROUPS else "other"
        totals[name] = totals.get(name, 0.0) + seconds
    # phases of other threads overlap, so that their sum may pass the call's own time
    spent = sum(totals.values())
    if spent > call.duration_s > 0:
        totals = {name: seconds * call.duration_s / spent for name, seconds in totals.items()}
    parts = [(name, totals[name]) for name in GROUPS if totals.get(name)]
    rest = call.duration_s - sum(seconds for _, seconds in parts)
    if rest > 0.005 * call.duration_s:
        parts.append(("outside the compiler", rest))
    return PhaseBar(label=label, total_s=call.duration_s, parts=parts)


def own_times(process: ProcessStory) -> list[tuple[str, str, float]]:
    """Each ended phase's group, name and seconds, less those of the phases inside it."""
    own: list[float] = []
    stacks: dict[int | None, list[int]] = {}
    for index, row in enumerate(process.phases):
        stack = stacks.setdefault(row.thread, [])
        del stack[row.depth :]
        own.append(row.duration_s or 0.0)
        if stack:
            own[stack[-1]] -= row.duration_s or 0.0
        stack.append(index)
    rows = zip(process.phases, own, strict=True)
    return [(row.group, row.name, max(seconds, 0.0)) for row, seconds in rows if row.duration_s]


def cost_figure(run: Run) -> Figure | None:
    """When this configuration has paid for its first call; None where it never does."""
    found = measure(run)
    even, eager, compiled = found.cold_break_even, found.eager, found.compiled
    if even is None or eager is None or compiled is None or found.cold_first_call_s is None:
        return None
    lines = [
        CostLine(label="eager", first_call_s=0.0, per_call_s=eager.median, is_eager=True),
        CostLine(label="cold cache", first_call_s=found.cold_first_call_s, per_call_s=compiled.median),
    ]
    if found.warm_first_call_s is not None:
        lines.append(CostLine(label="warm cache", first_call_s=found.warm_first_call_s, per_call_s=compiled.median))
    caption = (
        "Total time over calls. Where a line crosses eager’s, compiling has paid for its first call: "
        f"after about {units.count(float(f'{even.calls:.3g}'))} calls with a cold cache."
    )
    return Figure(chart=CostChart(lines=lines, calls=2 * even.calls), caption=caption)
