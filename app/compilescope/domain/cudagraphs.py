"""CUDA graphs of a run in words: recorded, recorded again, skipped and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.run import Run

MODES = ("reduce-overhead", "max-autotune")
_STATES = {"recorded": "recorded", "skipped": "skipped", "warning": "warning"}


@dataclass(frozen=True, kw_only=True)
class GraphRow:
    """Events that say the same: one state, one reason, one place, one compile."""

    event: e.CudaGraph
    count: int

    @property
    def reason(self) -> str:
        if self.event.reason:
            return " ".join(self.event.reason.split())
        if self.event.state != "recorded":
            return "no reason given"
        again = f", {self.count - 1} of them again for other inputs or memory" if self.count > 1 else ""
        return f"replayed from the next call on{again}"


def rows(events: Iterable[e.CudaGraph]) -> list[GraphRow]:
    """Each distinct event with how often it came."""
    counts: dict[tuple[object, ...], list[e.CudaGraph]] = {}
    for event in events:
        key = (event.state, event.reason, event.file, event.line, event.compile_id)
        counts.setdefault(key, []).append(event)
    return [GraphRow(event=found[0], count=len(found)) for found in counts.values()]


def is_wanted(run: Run) -> bool:
    """Whether there is something to say: the mode asks for CUDA graphs, or some were made."""
    return run.config.mode in MODES or any(process.cudagraphs for process in run.processes)


def sentence(run: Run) -> str:
    """What became of CUDA graphs in this run."""
    story = run.story
    device = _device(run)
    if run.config.mode in MODES and device == "cpu":
        same = "default" if run.config.mode == "reduce-overhead" else "max-autotune-no-cudagraphs"
        return f"{run.config.mode} ran on the CPU, where there are no CUDA graphs: here it is the same as {same}."
    found = story.cudagraphs if story else []
    recorded = sum(event.state == "recorded" for event in found)
    skipped = sum(event.state == "skipped" for event in found)
    if recorded and skipped:
        return (
            f"{units.plural(recorded, 'CUDA graph')} recorded, {skipped} skipped: what was skipped runs as in default."
        )
    if recorded:
        return f"{units.plural(recorded, 'CUDA graph')} recorded: launches are replayed without Python."
    if skipped:
        return f"CUDA graphs were skipped {units.plural(skipped, 'time')}: that code runs as in default."
    if found:
        return "No CUDA graph was recorded."
    if story and (story.has_compiled or run.is_over):
        return "No CUDA graph was recorded, and torch gives no reason."
    return "CUDA graphs are recorded on the second call."


def _device(run: Run) -> str | None:
    found = next((p.workload.device for p in run.processes if p.workload and p.workload.device), None)
    return found or run.workload.device
