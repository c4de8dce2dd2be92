"""Advice on timings that contradict each other. What disturbs a machine is told by the worker's own warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.domain import units
from compilescope.domain.advice.rule import KALIBERA, Advice, Case


def processes_disagree(case: Case) -> Iterator[Advice]:
    """Two processes measured two different speedups."""
    if case.measures.processes_disagree:
        parts = ", ".join(
            f"{start} {units.speedup(row.value, row.spread)}" for start, row in case.measures.process_speedups
        )
        yield Advice(
            code="processes_disagree",
            title="The two processes disagree",
            evidence=f"Their own intervals exclude each other: {parts}.",
            remedy="Close other programs, fix clocks and threads, or raise the budget; the interval covers both.",
            source=KALIBERA,
            severity="note",
        )


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (processes_disagree,)
