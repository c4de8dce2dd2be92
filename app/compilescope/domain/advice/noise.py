"""Advice on the machine: what disturbed the timing, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.domain import units
from compilescope.domain.advice.rule import BENCHMARK, KALIBERA, Advice, Case


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


def throttled(case: Case) -> Iterator[Advice]:
    """The GPU lowered its clock."""
    reasons = sorted({reason for p in case.run.processes for row in p.noise for reason in row.throttle})
    if reasons:
        yield Advice(
            code="throttled",
            title="The GPU was held back",
            evidence=f"Clocks were lowered while timing: {', '.join(reasons)}.",
            remedy="Let it cool, or lock a clock that it can hold (nvidia-smi --lock-gpu-clocks), and measure again.",
            source=BENCHMARK,
            severity="note",
        )


def shared_gpu(case: Case) -> Iterator[Advice]:
    """Somebody else computes on the same GPU."""
    others = max((row.processes or 0 for p in case.run.processes for row in p.noise), default=0)
    if case.on_cuda and others:
        yield Advice(
            code="shared_gpu",
            title="Other processes use this GPU",
            evidence=f"{units.plural(others, 'other process', 'other processes')} used the GPU while timing.",
            remedy="End them or choose another GPU: their kernels run in between these.",
            source=BENCHMARK,
            severity="note",
        )


def busy_cpu(case: Case) -> Iterator[Advice]:
    """More work than this run's own threads account for."""
    threads = next((p.environment.threads for p in case.run.processes if p.environment and p.environment.threads), None)
    load = max((row.load_average or 0.0 for p in case.run.processes for row in p.noise), default=0.0)
    if threads is not None and load > 1.5 * threads + 1:
        yield Advice(
            code="busy_cpu",
            title="The CPU was busy with other work",
            evidence=f"A load average of {load:.1f}, while this run computes with {units.plural(threads, 'thread')}.",
            remedy="Close other programs, or raise the budget: the interval is as wide as the unrest makes it.",
            source=BENCHMARK,
            severity="note",
        )


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (processes_disagree, throttled, shared_gpu, busy_cpu)
