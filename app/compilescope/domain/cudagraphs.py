"""CUDA graphs of a run in words: recorded, recorded again, skipped and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain import units
from compilescope.domain.run import ProcessStory, Run

PENDING_BACKWARD = re.compile(r"fast path\b.*\bbackward", re.IGNORECASE | re.DOTALL)
_REMEDIES = (
    (
        PENDING_BACKWARD,
        "Call backward() on the outputs before the next call, make calls that need no gradients under torch.no_grad(), "
        "or call torch.compiler.cudagraph_mark_step_begin() before each step.",
    ),
    (re.compile("mutat"), "Return the new value instead of writing into the input, or copy the input first."),
    (re.compile("cpu"), "Move the tensor or operator that lives on the CPU to the GPU."),
    (re.compile("multiple devices"), "Keep each compiled part on one GPU."),
    (
        re.compile("dynamic"),
        "Keep sizes fixed for this part, or pad to a few sizes: each size needs a graph of its own.",
    ),
    (re.compile("complex memory overlap"), "Pass a contiguous copy of the input."),
    (re.compile("incompatible op"), "Move that operator out of the compiled part."),
    (re.compile("non-tensor inputs"), "Keep what is no tensor out of the compiled part, or let it be made there."),
    (re.compile("no part of the graph"), "Let the compiled part hold some of the GPU's work."),
)


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


def remedy(event: e.CudaGraph) -> str | None:
    """What to do about a graph that was skipped, or that torch warns about."""
    reason = (event.reason or "").lower()
    if event.state == "recorded":
        return None
    return next((text for words, text in _REMEDIES if words.search(reason)), None)


def remedies(found: Iterable[GraphRow]) -> list[str]:
    """What to do, each once."""
    return list(dict.fromkeys(text for row in found if (text := remedy(row.event))))


def rows(events: Iterable[e.CudaGraph]) -> list[GraphRow]:
    """Each distinct event with how often it came."""
    counts: dict[tuple[object, ...], list[e.CudaGraph]] = {}
    for event in events:
        key = (event.state, event.reason, event.file, event.line, event.compile_id)
        counts.setdefault(key, []).append(event)
    return [GraphRow(event=found[0], count=len(found)) for found in counts.values()]


def is_wanted(run: Run) -> bool:
    """Whether there is something to say: the configuration asks for CUDA graphs, or torch began to make some."""
    return run.config.wants_cudagraphs or any(process.asked_for_cudagraphs for process in run.processes)


def fate(run: Run, process: ProcessStory | None = None) -> str:
    """What became of CUDA graphs in a few words, in one process, else in the one that tells the run's story.

    Empty while that is open.
    """
    story = process or run.story
    if story and story.recorded_cudagraphs:
        skipped = len(story.skipped_cudagraphs)
        return f"{story.recorded_cudagraphs} recorded{f', {skipped} skipped' if skipped else ''}"
    if story and story.skipped_cudagraphs:
        return "skipped"
    if run.is_on_cpu:
        return "not on a CPU"
    if story and story.asked_for_cudagraphs:
        # a later call may record, and a trace may end before it
        return "made ready, none recorded"
    if run.is_trace:
        return "none in the trace"
    return "" if run.config.wants_cudagraphs else "not asked for"


def captured(run: Run) -> bool | None:
    """Whether CUDA graphs were recorded; None where nobody knows."""
    story = run.story
    if story and story.recorded_cudagraphs:
        return True
    is_without = story and (story.skipped_cudagraphs or (story.has_compiled and (not is_wanted(run) or run.is_on_cpu)))
    return False if is_without else None


def sentence(run: Run) -> str:
    """What became of CUDA graphs in this run."""
    story = run.story
    if run.config.wants_cudagraphs and run.is_on_cpu:
        return f"{run.config.asks_by} ran on the CPU, where there are no CUDA graphs.{_same_as(run.config.mode)}"
    found = story.cudagraphs if story else []
    recorded = story.recorded_cudagraphs if story else 0
    skipped = len(story.skipped_cudagraphs) if story else 0
    if recorded and skipped:
        return (
            f"{units.plural(recorded, 'CUDA graph')} recorded, {skipped} skipped: what was skipped runs as in default."
        )
    if recorded:
        return f"{units.plural(recorded, 'CUDA graph')} recorded: launches are replayed without Python."
    if skipped:
        return f"CUDA graphs were skipped {units.plural(skipped, 'time')}: that code runs as in default."
    if story and run.is_trace and story.asked_for_cudagraphs:
        return "CUDA graphs were asked for and made ready, and this trace holds no recording of one."
    if found or (story and run.is_over and story.asked_for_cudagraphs):
        return "No CUDA graph was recorded."
    if story and (story.has_compiled or run.is_over):
        return "No CUDA graph was recorded, and torch gives no reason."
    return "CUDA graphs are recorded on the second call."


def _same_as(mode: str | None) -> str:
    same = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}.get(mode or "")
    return f" Here it is the same as {same}." if same else ""
