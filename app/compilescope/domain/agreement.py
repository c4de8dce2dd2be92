"""Whether a run's compiled results agree with eager's, from all checks of all its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain.events import Numerics
from compilescope.domain.run import Run

WORST_FIRST = ("differ", "nondeterministic", "not_checked", "match")
# each backend adds one stage of the compiler to the one before it
_STAGES = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Whether results agree, and the evidence. `verdict`: match, differ, nondeterministic, not_checked."""

    verdict: str = "not_checked"
    subject: str | None = None
    backend: str | None = None
    max_abs_error: float | None = None
    reference_ratio: float | None = None
    detail: str = ""


def agreement(run: Run) -> Agreement:
    """The worst verdict on the configuration's own backend; rows of other backends only place a difference.

    One part that could not be checked leaves the whole so, whatever the others say.
    """
    rows = [row for p in run.processes for row in p.numerics]
    own = [row for row in rows if row.backend in (None, run.config.backend)]
    for verdict in WORST_FIRST:
        matching = [row for row in own if row.verdict == verdict]
        if not matching:
            continue
        worst = max(matching, key=lambda row: row.max_abs_error or 0.0)
        ratios = [row.reference_ratio for row in matching if row.reference_ratio is not None]
        return Agreement(
            verdict=verdict,
            subject=worst.subject,
            backend=_first_stage(rows) if verdict == "differ" else None,
            max_abs_error=worst.max_abs_error,
            reference_ratio=max(ratios, default=None),
            detail=f"{_size(run, worst.shape)}{worst.detail}",
        )
    return Agreement()


def verdict_at(run: Run, shape: int) -> str | None:
    """The worst verdict on one size of a sweep, 0 being the first; None where no result of it was compared."""
    rows = [row for p in run.processes for row in p.numerics if row.backend in (None, run.config.backend)]
    found = {row.verdict for row in rows if (row.shape or 0) == shape}
    return next((verdict for verdict in WORST_FIRST if verdict in found), None)


def _size(run: Run, shape: int | None) -> str:
    """Of a sweep, the size that a row is of; an input with fewer sizes keeps its last."""
    if shape is None:
        return ""
    sizes = {name: rows[min(shape, len(rows) - 1)] for name, rows in (run.workload.inputs or {}).items() if rows}
    words = ", ".join(f"{name} = {'×'.join(map(str, size))}" for name, size in sizes.items())
    return f"With {words}: " if words else f"At size {shape + 1} of the sweep: "


def _first_stage(rows: Sequence[Numerics]) -> str | None:
    """The earliest stage of the compiler whose results differ."""
    differing = [row.backend for row in rows if row.verdict == "differ" and row.backend]
    return min(differing, key=lambda name: _STAGES.index(name) if name in _STAGES else len(_STAGES), default=None)
