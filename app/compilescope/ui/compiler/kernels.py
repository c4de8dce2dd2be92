"""The kernels of a run: a row each, with what they were made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain import units, words
from compilescope.domain.run import COMPILED, EAGER, Run
from compilescope.ui.models.rows import Column

KINDS = {"triton": "Triton", "cpp": "C++", "extern": "library"}


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A kernel of one compile."""

    event: e.Kernel

    @property
    def places(self) -> str:
        """`model.py:12, 13`: each file once."""
        lines: dict[str, list[str]] = {}
        for place in self.event.places:
            lines.setdefault(place.file, []).extend([str(place.line)] if place.line else [])
        return "; ".join(f"{words.file_name(file)}:{', '.join(found)}" for file, found in lines.items())


def kernel_rows(run: Run | None) -> list[KernelRow]:
    """The cold process's kernels; a warm one launches the same."""
    story = run.story if run else None
    return [KernelRow(event=event) for event in story.kernels] if story else []


def launches_sentence(run: Run | None, rows: Sequence[KernelRow]) -> str:
    """What a call launches, compiled and eager, where the profiler counted; and what the generated code holds."""
    if not rows or run is None:
        return ""
    launches = sum(row.event.launches or 0 for row in rows)
    generated = sum(row.event.kind != "extern" for row in rows)
    code = (
        f"In the generated code: {units.plural(len(rows), 'kernel')} ({generated} generated), "
        f"{units.plural(launches, 'launch', 'launches')}{_versions(rows)}."
    )
    return " ".join([*_counted(run), code])


def _counted(run: Run) -> Iterator[str]:
    """What the profiler counted: kernels on the GPU, or else operators and kernels on the CPU."""
    # loss and optimizer are a part of what was timed, and so of what was counted
    call = "A training step" if run.workload.phase == "training" else "A call"
    on_gpu = {side: busy.launches for process in run.processes for side, busy in process.gpu_busy.items()}
    if on_gpu.get(EAGER) and on_gpu.get(COMPILED):
        compiled, eager = units.count(on_gpu[COMPILED]), units.count(on_gpu[EAGER])
        yield f"{call} launches {compiled} kernels on the GPU, in eager {eager}."
        return
    on_cpu = {
        side: profile.launches
        for process in run.processes
        for side, profile in process.profiles.items()
        if profile.clock == "cpu"
    }
    if on_cpu.get(EAGER) and on_cpu.get(COMPILED):
        compiled, eager = units.count(on_cpu[COMPILED]), units.count(on_cpu[EAGER])
        yield f"{call} runs {compiled} operators and generated kernels, in eager {eager} operators."


def _versions(rows: Sequence[KernelRow]) -> str:
    """Code that was compiled anew for other inputs is there several times, and a call runs one of them."""
    compiles = {row.event.compile_id for row in rows if row.event.compile_id}
    pieces = {compile_id.rpartition("/")[0] for compile_id in compiles}
    return f", of all {len(compiles)} compiles together" if len(compiles) > len(pieces) else ""


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
        explanation="Calls in the generated code of this compile.",
    ),
    Column(title="Compile", value=lambda row: row.event.compile_id or "", text=lambda row: row.event.compile_id or "–"),
    Column(
        title="Source lines",
        value=lambda row: row.places,
        text=lambda row: row.places or "–",
        tip=lambda row: "\n".join(words.full_place(place.file, place.line) for place in row.event.places),
    ),
)
