"""The kernels of a run: a row each, with what they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.run import Run
from compilescope.ui.compiler.run_pane import full_place, place_text
from compilescope.ui.models.rows import Column

KINDS = {"triton": "Triton", "cpp": "C++", "extern": "library"}


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A kernel of one compile."""

    event: e.Kernel

    @property
    def places(self) -> str:
        return ", ".join(place_text(place.file, place.line) for place in self.event.places)


def kernel_rows(run: Run | None) -> list[KernelRow]:
    """The cold process's kernels; a warm one launches the same."""
    story = run.story if run else None
    return [KernelRow(event=event) for event in story.kernels] if story else []


def launches_sentence(run: Run | None, rows: Sequence[KernelRow]) -> str:
    """How many kernels, how many launches a call, and eager's beside it where the profiler counted."""
    if not rows or run is None:
        return ""
    launches = sum(row.event.launches or 0 for row in rows)
    generated = sum(row.event.kind != "extern" for row in rows)
    text = (
        f"{units.plural(len(rows), 'kernel')} ({generated} generated), {units.plural(launches, 'launch', 'launches')}"
    )
    busy = {side: busy.launches for process in run.processes for side, busy in process.gpu_busy.items()}
    if busy.get("eager") and busy.get("compiled"):
        eager, compiled = units.count(busy["eager"]), units.count(busy["compiled"])
        return f"{text}. On the GPU, a call: eager {eager} launches, compiled {compiled}."
    return f"{text} in the generated code."


COLUMNS: tuple[Column[KernelRow], ...] = (
    Column(
        title="Kernel",
        value=lambda row: row.event.name,
        text=lambda row: row.event.name,
        tip=lambda row: row.event.name,
    ),
    Column(
        title="Kind",
        value=lambda row: row.event.kind,
        text=lambda row: KINDS.get(row.event.kind, row.event.kind),
        explanation="Triton and C++ kernels were generated; library kernels are called.",
    ),
    Column(
        title="Launches",
        value=lambda row: row.event.launches,
        text=lambda row: units.count(row.event.launches),
        is_number=True,
        explanation="Calls in the generated code; each runs once a call of the model.",
    ),
    Column(title="Compile", value=lambda row: row.event.compile_id or "", text=lambda row: row.event.compile_id or "–"),
    Column(
        title="Source lines",
        value=lambda row: row.places,
        text=lambda row: row.places or "–",
        tip=lambda row: "\n".join(full_place(place.file, place.line) for place in row.event.places),
    ),
)
