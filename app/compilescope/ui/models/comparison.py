"""The rows of the comparison table: eager, and each configuration beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain import units, words
from compilescope.domain.comparison import interval_text
from compilescope.domain.matrix import labelled, varying_parts
from compilescope.domain.measures import Measures, Summary
from compilescope.domain.ranking import relative
from compilescope.domain.run import Run
from compilescope.domain.standing import standing, tone
from compilescope.domain.statistics import Interval
from compilescope.domain.workload import Workload
from compilescope.ui.findings import Finding, Findings
from compilescope.ui.models.rows import Column

EAGER = "eager"


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """`run` is None for eager, which has no figure of its own: it is measured anew beside each configuration.

    A row of eager has the workload that it ran. `scope`: what tells a row from others of the same name.
    """

    run: Run | None
    finding: Finding
    workload: Workload | None = None
    scope: str = ""
    # in the row of eager: what was measured beside each configuration
    beside: tuple[Measures, ...] = ()
    # the speedup over eager of what speedups refer to; None where that is eager itself
    base: Interval | None = None
    is_base: bool = False

    @property
    def measures(self) -> Measures:
        return self.finding.measures

    @property
    def is_eager(self) -> bool:
        return self.run is None

    @property
    def speedup(self) -> Interval | None:
        """Over the baseline."""
        own = self.measures.speedup if self.run else Interval(value=1.0, low=1.0, high=1.0)
        return relative(own, self.base) if own and self.base else own

    @property
    def label(self) -> str:
        if self.run is None:
            return f"{EAGER}{self.scope}"
        # torch's backend of that name is a configuration like others
        name = f"backend {EAGER}" if self.run.label == EAGER else self.run.label
        return f"{name}{self.scope}"

    @property
    def eager(self) -> tuple[float, ...]:
        """Eager's median in turns with this configuration; in the row of eager, each of them."""
        known = self.beside if self.run is None else (self.measures,)
        return tuple(found.eager.median for found in known if found.eager)

    @property
    def summary(self) -> Summary | None:
        """Compiled; eager has none."""
        return self.measures.compiled if self.run else None

    @property
    def first_calls_s(self) -> tuple[float, ...]:
        if self.run is None:
            return tuple(found.eager_first_call_s for found in self.beside if found.eager_first_call_s is not None)
        cold = self.measures.cold_first_call_s
        return () if cold is None else (cold,)

    @property
    def warm_first_call_s(self) -> float | None:
        return self.measures.warm_first_call_s if self.run else None

    @property
    def graphs(self) -> int | None:
        return self.run.graphs if self.run else None

    @property
    def breaks(self) -> int | None:
        return self.run.breaks if self.run else None


def comparison_rows(runs: Sequence[Run], findings: Findings, baseline: str | None = None) -> list[ComparisonRow]:
    """Eager first, in each phase and precision, then the runs in their order.

    `baseline`: the run that speedups refer to, unless it is eager. A run of another phase or precision has another
    eager, and stays beside that.
    """
    chosen = next((run for run in runs if run.id == baseline), None)
    base = findings.of(chosen).measures.speedup if chosen else None
    # phase and precision are in the labels
    several = [part for part in varying_parts(run.workload for run in runs) if part == "device"]
    rows = []
    for run in runs:
        own = base if chosen and run.workload == chosen.workload else None
        rows.append(
            ComparisonRow(
                run=run,
                finding=findings.of(run),
                scope=labelled("", run.workload, several),
                base=own,
                is_base=own is not None and run is chosen,
            )
        )
    if not rows or runs[0].is_trace:
        return rows
    return [*_eager_rows(rows), *rows]


def _eager_rows(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """What each workload came to in eager."""
    groups: list[list[ComparisonRow]] = []
    for row in rows:
        group = next((g for g in groups if g[0].run and row.run and g[0].run.workload == row.run.workload), None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    workloads = [group[0].run.workload for group in groups if group[0].run]
    varying = varying_parts(workloads)
    return [
        ComparisonRow(
            run=None,
            finding=Finding(),
            workload=workload,
            scope=labelled("", workload, varying),
            beside=tuple(row.measures for row in group),
            base=group[0].base,
            is_base=group[0].base is None,
        )
        for group, workload in zip(groups, workloads, strict=True)
    ]


def _spread(row: ComparisonRow) -> str:
    found = row.summary
    return units.duration_range((found.p05, found.p95) if found else ())


def _standing(row: ComparisonRow) -> str:
    if row.run is None:
        return "baseline" if row.is_base else "eager"
    is_judged = not row.run.is_over or row.run.outcome != "finished" or row.run.is_trace or row.finding.verdict
    text = standing(row.run, row.finding.verdict) if is_judged or row.finding.problem else "judging"
    return f"baseline, {text}" if row.is_base else text


def _why(row: ComparisonRow) -> str:
    if row.run is None:
        return (
            "The model as it is. Measured anew beside each configuration, in turns with it; each speedup refers to "
            "the eager of its own row, in the same phase and precision. Here stand the lowest and the highest of these "
            "medians."
        )
    verdict = row.finding.verdict
    if verdict is None:
        return row.finding.problem
    return "\n".join([verdict.summary, *(f"• {reason}" for reason in verdict.reasons)])


def _why_eager(row: ComparisonRow) -> str:
    return (
        _why(row)
        if row.run is None
        else "Eager, as it ran in turns with this configuration, in the same phase and precision."
    )


def _speedup(row: ComparisonRow) -> str:
    if row.is_base:
        return "1×" if row.summary or (row.run is None and row.eager) else "–"
    return interval_text(row.speedup)


def _speedup_tone(row: ComparisonRow) -> str:
    if row.base is not None:
        found = row.speedup
        certain = found is not None and not row.is_base and not found.contains(1.0)
        return "" if not certain or found is None else "good" if found.value > 1 else "warn"
    verdict = row.finding.verdict
    return words.TONES[verdict.kind] if row.run and verdict and verdict.kind in ("faster", "slower") else ""


COLUMNS: tuple[Column[ComparisonRow], ...] = (
    Column(title="Configuration", value=lambda row: row.label, text=lambda row: row.label, tip=_why),
    Column(
        title="Eager",
        value=lambda row: row.eager[0] if row.eager else None,
        text=lambda row: units.duration_range(row.eager),
        is_number=True,
        tip=_why_eager,
        explanation="Median time per call of the model as it is, measured in turns with this configuration, in the "
        "same process.",
    ),
    Column(
        title="Compiled",
        value=lambda row: row.summary.median if row.summary else None,
        text=lambda row: units.duration(row.summary.median if row.summary else None),
        is_number=True,
        explanation="Median time per call, calls back to back, measured in turns with eager in the same process.",
    ),
    Column(
        title="p05 – p95",
        value=lambda row: row.summary.p95 if row.summary else None,
        text=_spread,
        is_number=True,
        explanation="Nine blocks in ten of the compiled model lie between these.",
    ),
    Column(
        title="Speedup",
        value=lambda row: row.speedup.value if row.speedup else None,
        text=_speedup,
        is_number=True,
        tone=_speedup_tone,
        tip=_why,
        explanation="Eager over compiled of the same row (over that of the baseline, where another row was chosen), "
        "and half the width of its 95 % interval. It is the median ratio of neighbouring blocks, so that a machine "
        "whose speed wanders slows both alike; the medians beside it wander with the machine.",
    ),
    Column(
        title="First call",
        value=lambda row: row.first_calls_s[0] if row.first_calls_s else None,
        text=lambda row: units.duration_range(row.first_calls_s),
        is_number=True,
        explanation="The first call, which pays for compiling: with an empty cache, or with your own if you chose it.",
    ),
    Column(
        title="Warm cache",
        value=lambda row: row.warm_first_call_s,
        text=lambda row: units.duration(row.warm_first_call_s),
        is_number=True,
        explanation="The first call of a second process that finds the first one's cache.",
    ),
    Column(
        title="Graphs",
        value=lambda row: row.graphs,
        text=lambda row: units.count(row.graphs),
        is_number=True,
        tone=lambda row: "bad" if row.graphs == 0 else "",
        explanation="Captured graphs that hold at least one operation. None means that nothing was compiled.",
    ),
    Column(
        title="Breaks",
        value=lambda row: row.breaks,
        text=lambda row: units.count(row.breaks),
        is_number=True,
        tone=lambda row: "warn" if row.breaks else "",
        explanation="Graph breaks: places where the compiler had to leave the graph.",
    ),
    Column(
        title="Result",
        value=_standing,
        text=_standing,
        tone=lambda row: tone(row.run, row.finding.verdict) if row.run else "muted",
        tip=_why,
    ),
)
