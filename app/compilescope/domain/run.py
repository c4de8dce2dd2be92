"""A run, folded from its events: the same from a live worker, the history, a recording or a trace."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.story import COMPILED, EAGER, ProcessStory
from compilescope.domain.story_rows import CompileRow, GraphBreakRow, PhaseRow, RecompileRow, Series, StageRow
from compilescope.domain.workload import Workload

__all__ = [
    "COMPILED",
    "EAGER",
    "CompileRow",
    "GraphBreakRow",
    "PhaseRow",
    "ProcessStory",
    "RecompileRow",
    "Run",
    "Series",
    "StageRow",
]


class Run:
    """One configuration's run: a cold process, then a warm one. Owned by one thread.

    `revision[section]` rises when that section changes, so that a pane redraws only what did. The compile story
    (graphs, breaks, recompiles …) is the cold process's; timings come from both.
    """

    def __init__(self, run_id: str, *, config: Config, workload: Workload, label: str | None = None) -> None:
        self.id = run_id
        self.config = config
        self.workload = workload
        self.label = label or config.label
        # read from a saved trace, where nothing was measured
        self.is_trace = False
        self.processes: list[ProcessStory] = []
        self.ended: e.Ended | None = None
        self.revision: Counter[str] = Counter()

    def apply(self, event: e.Event) -> None:
        if isinstance(event, e.Hello):
            self.processes.append(ProcessStory(event))
            self._touch("stages")
            return
        if isinstance(event, e.Ended):
            self.ended = event
            self._touch("outcome")
            return
        if not self.processes:
            # a process that dies before its hello, or a stream that was cut, still gets told
            self.processes.append(ProcessStory(e.Hello()))
        section = self.processes[-1].apply(event)
        if section:
            self._touch(section)

    def apply_all(self, stream: Iterable[e.Event]) -> Run:
        for event in stream:
            self.apply(event)
        return self

    def snapshot(self) -> Run:
        """The run as it is now, for another thread to read while this one goes on."""
        taken = copy.copy(self)
        taken.processes = [process.snapshot() for process in self.processes]
        taken.revision = self.revision.copy()
        return taken

    def _touch(self, section: str) -> None:
        self.revision[section] += 1
        self.revision["all"] += 1

    @property
    def cold(self) -> ProcessStory | None:
        return next((p for p in self.processes if p.start == "cold"), None)

    @property
    def warm(self) -> ProcessStory | None:
        return next((p for p in self.processes if p.start == "warm"), None)

    @property
    def story(self) -> ProcessStory | None:
        """The process that tells the compile story."""
        return self.cold or (self.processes[0] if self.processes else None)

    @property
    def graphs(self) -> int | None:
        return self._count(self.story.graphs if self.story else 0)

    @property
    def ops(self) -> int | None:
        return self._count(self.story.ops if self.story else 0)

    @property
    def guards(self) -> int | None:
        return self._count(self.story.guards if self.story else 0)

    @property
    def breaks(self) -> int | None:
        return self._count(self.story.break_count if self.story else 0)

    @property
    def recompiles(self) -> int | None:
        return self._count(self.story.recompile_count if self.story else 0)

    def _count(self, number: int) -> int | None:
        """What was counted while compiling. That there is none is known once all was told: when the first compiled call
        has returned, or a trace has ended."""
        story = self.story
        is_told = story is not None and (story.has_compiled or (self.is_trace and self.is_over))
        return number if number or is_told else None

    @property
    def uses_own_cache(self) -> bool:
        """Whether the first process began with the user's own compiler cache, which may have held anything: then its
        first call is no cold one."""
        return self.cold is not None and not self.is_trace and self.cold.hello.cache_was_empty is not True

    @property
    def outcome(self) -> str | None:
        """finished, failed, crashed, stopped, timed_out; None while the run goes on."""
        return self.ended.outcome if self.ended else None

    @property
    def is_over(self) -> bool:
        return self.ended is not None

    @property
    def error(self) -> e.RunError | None:
        if self.ended and self.ended.error:
            return self.ended.error
        return next((p.failure.error for p in self.processes if p.failure), None)

    @property
    def device(self) -> str | None:
        """What the worker ran on: "cpu", "cuda:0" …; what was asked for until it has said, None where nothing was."""
        found = next((p.workload.device for p in self.processes if p.workload and p.workload.device), None)
        return found or self.workload.device

    @property
    def is_on_cpu(self) -> bool:
        return (self.device or "").startswith("cpu")

    @property
    def current_stage(self) -> StageRow | None:
        rows = self.processes[-1].stages if self.processes else []
        return next((row for row in reversed(rows) if row.duration_s is None), rows[-1] if rows else None)
