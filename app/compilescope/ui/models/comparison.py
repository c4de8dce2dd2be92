"""The rows of the comparison table: eager, and each configuration beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilescope.domain import units, words
from compilescope.domain.figures import Figure, Result, Shown, figure, shown_in
from compilescope.domain.kinds import SPEEDUP
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
class TableRow:
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
    def result(self) -> Result:
        assert self.run is not None
        return Result(run=self.run, measures=self.measures, verdict=self.finding.verdict)

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


def comparison_rows(runs: Sequence[Run], findings: Findings, baseline: str | None = None) -> list[TableRow]:
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
            TableRow(
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


def _eager_rows(rows: Sequence[TableRow]) -> list[TableRow]:
    """What each workload came to in eager."""
    groups: list[list[TableRow]] = []
    for row in rows:
        group = next((g for g in groups if g[0].run and row.run and g[0].run.workload == row.run.workload), None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    workloads = [group[0].run.workload for group in groups if group[0].run]
    varying = varying_parts(workloads)
    return [
        TableRow(
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


def _standing(row: TableRow) -> str:
    if row.run is None:
        return "baseline" if row.is_base else "eager"
    is_judged = not row.run.is_over or row.run.outcome != "finished" or row.run.is_trace or row.finding.verdict
    text = standing(row.run, row.finding.verdict) if is_judged or row.finding.problem else "judging"
    return f"baseline, {text}" if row.is_base else text


def _why(row: TableRow) -> str:
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


def _why_eager(row: TableRow) -> str:
    return (
        _why(row)
        if row.run is None
        else "Eager, as it ran in turns with this configuration, in the same phase and precision."
    )


def _speedup(row: TableRow) -> str:
    if row.is_base:
        return "1×" if row.summary or (row.run is None and row.eager) else words.UNKNOWN
    return SPEEDUP.shown(row.speedup)


def _speedup_tone(row: TableRow) -> str:
    if row.base is not None:
        found = row.speedup
        certain = found is not None and not row.is_base and not found.contains(1.0)
        return "" if not certain or found is None else "good" if found.value > 1 else "warn"
    verdict = row.finding.verdict
    return words.TONES[verdict.kind] if row.run and verdict and verdict.kind in ("faster", "slower") else ""


def _column(figure: Figure, **other: Any) -> Column[TableRow]:
    """A figure of a run; eager has none."""

    def known(row: TableRow) -> Any:
        return None if row.run is None else figure.of(row.result)

    def value(row: TableRow) -> Any:
        found = known(row)
        return None if found is None else figure.kind.key(found)

    def tone(row: TableRow) -> str:
        found = known(row)
        return figure.tone(found) if figure.tone and found is not None else ""

    column: Column[TableRow] = Column(
        title=figure.head,
        value=value,
        text=lambda row: figure.kind.shown(known(row)),
        is_number=figure.kind.is_number,
        tone=tone,
        explanation=figure.explains,
    )
    return replace(column, **other)


_SPREAD: Column[TableRow] = Column(
    title="p05 – p95",
    value=lambda row: row.summary.p95 if row.summary else None,
    text=lambda row: units.duration_range((row.summary.p05, row.summary.p95) if row.summary else ()),
    is_number=True,
    explanation="Nine blocks in ten of the compiled model lie between these.",
)
# of figures that eager has too, or that refer to a baseline
_OWN: dict[str, dict[str, Any]] = {
    "timing.eager_ms": {
        "value": lambda row: row.eager[0] if row.eager else None,
        "text": lambda row: units.duration_range(row.eager),
        "tip": _why_eager,
    },
    "timing.speedup": {
        "value": lambda row: row.speedup.value if row.speedup else None,
        "text": _speedup,
        "tone": _speedup_tone,
        "tip": _why,
        "explanation": f"{figure('timing.speedup').explains} Where another row is the baseline, over that of its row.",
    },
    "compile.first_call_s": {
        "value": lambda row: row.first_calls_s[0] if row.first_calls_s else None,
        "text": lambda row: units.duration_range(row.first_calls_s),
    },
    "verdict_word": {
        "value": _standing,
        "text": _standing,
        "tone": lambda row: tone(row.run, row.finding.verdict) if row.run else "muted",
        "tip": _why,
    },
}


def _columns(place: Shown) -> list[Column[TableRow]]:
    return [_column(figure, **_OWN.get(figure.path, {})) for figure in shown_in(place)]


_EAGER, _COMPILED, *_MORE, _VERDICT = _columns(Shown.TABLE)
_NAME: Column[TableRow] = Column(
    title="Configuration", value=lambda row: row.label, text=lambda row: row.label, tip=_why
)
_OFFERED = _columns(Shown.OFFERED)
COLUMNS = (_NAME, _EAGER, _COMPILED, _SPREAD, *_MORE, *_OFFERED, _VERDICT)
# hidden until somebody chooses them
OFFERED = range(len(COLUMNS) - 1 - len(_OFFERED), len(COLUMNS) - 1)
