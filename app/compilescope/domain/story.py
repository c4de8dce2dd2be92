"""What one worker process told: its stages, compile story, timings and checks."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator

from compilescope.domain import events as e
from compilescope.domain.story_rows import CompileRow, GraphBreakRow, PhaseRow, RecompileRow, Series, StageRow

EAGER, COMPILED = "eager", "compiled"

# what a guard on a tensor tests: size, stride, dtype, requires_grad
_ASPECT = re.compile(r"' (\S.*?) mismatch")
# events that are rows as they stand, by their section
_ROWS: dict[type[e.Event], str] = {
    e.Symbol: "symbols",
    e.Cache: "cache",
    e.CudaGraph: "cudagraphs",
    e.Autotune: "autotunes",
    e.Kernel: "kernels",
    e.Text: "texts",
    e.Numerics: "numerics",
    e.Noise: "noise",
    e.FirstUse: "first_uses",
    e.Warning: "warnings",
}


class ProcessStory:
    """What one worker process told. Lists only ever grow, so a reader may remember how far it has read."""

    def __init__(self, hello: e.Hello) -> None:
        self.hello = hello
        self.start = hello.start
        self.environment: e.Environment | None = None
        self.workload: e.WorkloadReady | None = None
        self.stages: list[StageRow] = []
        self.phases: list[PhaseRow] = []
        self.compiles: dict[str, CompileRow] = {}
        self.graph_breaks: dict[tuple[object, ...], GraphBreakRow] = {}
        self.recompiles: dict[tuple[object, ...], RecompileRow] = {}
        # those of the training step around the model, where it is compiled too: nobody can mend them in a script
        self.step_breaks: dict[tuple[object, ...], GraphBreakRow] = {}
        self.step_recompiles: dict[tuple[object, ...], RecompileRow] = {}
        self.recompile_limits: list[e.RecompileLimit] = []
        self.symbols: list[e.Symbol] = []
        self.cache: list[e.Cache] = []
        self.cudagraphs: list[e.CudaGraph] = []
        self.autotunes: list[e.Autotune] = []
        self.kernels: list[e.Kernel] = []
        self.texts: list[e.Text] = []
        # what a live window asks of the lists again and again, which may be long
        self.lookups: Counter[tuple[str, str]] = Counter()
        self.text_kinds: set[str] = set()
        self.phase_groups: set[str] = set()
        self.first_calls: dict[tuple[str, str], e.FirstCall] = {}
        self.first_uses: list[e.FirstUse] = []
        self.later_first_calls: dict[tuple[int, str], e.FirstCall] = {}
        self.series: dict[tuple[int, str, str], Series] = {}
        self.voids: list[e.Void] = []
        self.entered: e.Entered | None = None
        self.measured: dict[int, e.Measured] = {}
        self.gpu_busy: dict[str, e.GpuBusy] = {}
        self.profiles: dict[str, e.Profile] = {}
        self.memory: dict[tuple[str, str], e.Memory] = {}
        self.numerics: list[e.Numerics] = []
        self.noise: list[e.Noise] = []
        self.warnings: list[e.Warning] = []
        self.failure: e.Failure | None = None
        self.last_at = 0.0
        self._open_phases: dict[int | None, list[PhaseRow]] = {}

    def snapshot(self) -> ProcessStory:
        """What was told so far, for another thread to read while more is told to this one."""
        taken = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (list, dict)):
                setattr(taken, name, copy.copy(value))
        taken.series = {key: series.snapshot() for key, series in self.series.items()}
        for name in ("recompiles", "step_recompiles"):
            rows: dict[tuple[object, ...], RecompileRow] = getattr(self, name)
            setattr(taken, name, {key: RecompileRow(events=list(row.events)) for key, row in rows.items()})
        return taken

    @property
    def graphs(self) -> int:
        """Captured graphs that hold at least one operation. Where the process went on after a compile that failed, as
        suppress_errors makes it do, the graphs of that one never run."""
        return sum(row.graphs for row in self._captured)

    @property
    def ops(self) -> int:
        return sum(row.ops for row in self._captured)

    @property
    def _captured(self) -> Iterator[CompileRow]:
        return (row for row in self.compiles.values() if row.state != "failed" or self.failure is not None)

    @property
    def failed_compiles(self) -> list[CompileRow]:
        """Compiles that ended with an error; where the run goes on all the same, something hides it."""
        return [row for row in self.compiles.values() if row.state == "failed"]

    @property
    def entries_per_call(self) -> float | None:
        """How often a call enters compiled code, where that was counted."""
        return self.entered.entries / self.entered.calls if self.entered and self.entered.calls > 0 else None

    @property
    def guards(self) -> int:
        return sum(row.guards or 0 for row in self.compiles.values())

    @property
    def break_count(self) -> int:
        """Graph breaks, those of one place and cause each; the script's alone, as are recompiles."""
        return sum(row.count for row in self.graph_breaks.values())

    @property
    def recompile_count(self) -> int:
        return sum(row.count for row in self.recompiles.values())

    @property
    def recorded_cudagraphs(self) -> int:
        return sum(row.state == "recorded" for row in self.cudagraphs)

    @property
    def skipped_cudagraphs(self) -> list[e.CudaGraph]:
        return [row for row in self.cudagraphs if row.state == "skipped"]

    @property
    def asked_for_cudagraphs(self) -> bool:
        """Whether torch began to make CUDA graphs, whatever became of them."""
        return bool(self.cudagraphs) or "cudagraphs" in self.phase_groups

    @property
    def break_places(self) -> tuple[tuple[str, int], ...]:
        """Lines that have a graph break, or several, each once; what has no known line is no place of its own."""
        events = (row.event for row in self.graph_breaks.values())
        return tuple(dict.fromkeys((event.file, event.line) for event in events if event.file and event.line))

    @property
    def has_compiled(self) -> bool:
        """Whether the compiled side's first call has ended, so that its counts are final enough to judge."""
        return any(side == COMPILED for side, _ in self.first_calls)

    def samples(self, side: str, *, shape: int = 0, measure: str = "back_to_back") -> Series:
        """The series of one side; an empty one while there is none. Void blocks are left out."""
        series = self.series.get((shape, side, measure), Series())
        void = {row.block for row in self.voids}
        if not void or measure != "back_to_back":
            return series
        keep = [i for i, block in enumerate(series.blocks) if block not in void]
        return Series(
            clock=series.clock,
            blocks=[series.blocks[i] for i in keep],
            seconds=[series.seconds[i] for i in keep],
            wall_s=[series.wall_s[i] for i in keep] if len(series.wall_s) == len(series.blocks) else [],
            clock_mhz=[series.clock_mhz[i] for i in keep] if len(series.clock_mhz) == len(series.blocks) else [],
            at=[series.at[i] for i in keep],
        )

    def apply(self, event: e.Event) -> str | None:
        """Fold one event in; the name of the section that changed."""
        self.last_at = max(self.last_at, event.at)
        match event:
            case e.Environment():
                self.environment = event
                return "environment"
            case e.WorkloadReady():
                self.workload = event
                return "workload"
            case e.Stage():
                self._stage(event)
                return "stages"
            case e.Phase():
                self._phase(event)
                return "phases"
            case e.Compile():
                self._compile(event)
                return "compiles"
            case e.GraphBreak():
                self._graph_break(event)
                return "graph_breaks"
            case e.Recompile():
                self._recompile(event)
                return "recompiles"
            case e.RecompileLimit():
                self.recompile_limits.append(event)
                return "recompiles"
            case e.FirstCall():
                self._first_call(event)
                return "first_calls"
            case e.Samples():
                self._samples(event)
                return "samples"
            case e.Void():
                self.voids.append(event)
                return "samples"
            case e.Measured():
                self.measured[event.shape] = event
                return "samples"
            case e.GpuBusy():
                self.gpu_busy[event.side] = event
                return "samples"
            case e.Profile():
                self.profiles[event.side] = event
                return "profiles"
            case e.Memory():
                self.memory[event.side, event.when] = event
                return "memory"
            case e.Entered():
                self.entered = event
                return "compiles"
            case e.Failure():
                self.failure = event
                return "outcome"
        return self._append(event)

    def _append(self, event: e.Event) -> str | None:
        """Keep an event that is a row as it stands."""
        section = _ROWS.get(type(event))
        if section is not None:
            getattr(self, section).append(event)
        if isinstance(event, e.Cache):
            self.lookups[event.cache, event.state] += 1
        elif isinstance(event, e.Text):
            self.text_kinds.add(event.kind)
        return section

    def _first_call(self, event: e.FirstCall) -> None:
        """The first of all is the run's; those of later shapes of a sweep are kept by shape."""
        if event.shape:
            self.later_first_calls.setdefault((event.shape, event.side), event)
        else:
            self.first_calls.setdefault((event.side, event.direction), event)

    def _stage(self, event: e.Stage) -> None:
        if event.state == "begin":
            self.stages.append(StageRow(name=event.name, began=event.at))
            return
        for row in reversed(self.stages):
            if row.name == event.name and row.duration_s is None:
                row.duration_s = event.duration_s if event.duration_s is not None else event.at - row.began
                return

    def _phase(self, event: e.Phase) -> None:
        stack = self._open_phases.setdefault(event.thread, [])
        if event.state == "begin":
            row = PhaseRow(
                name=event.name,
                group=event.group,
                compile_id=event.compile_id,
                thread=event.thread,
                began=event.at,
                depth=len(stack),
            )
            stack.append(row)
            self.phases.append(row)
            self.phase_groups.add(event.group)
            return
        # events of other threads overlap these, so an end is matched by name and never by position
        for index in range(len(stack) - 1, -1, -1):
            if stack[index].name == event.name:
                row = stack.pop(index)
                row.duration_s = event.duration_s if event.duration_s is not None else event.at - row.began
                row.compile_id = row.compile_id or event.compile_id
                return

    def _compile(self, event: e.Compile) -> None:
        key = event.compile_id or "?"
        row = self.compiles.setdefault(key, CompileRow(compile_id=key))
        row.file, row.line = event.file or row.file, event.line or row.line
        row.function, row.trigger = event.function or row.function, event.trigger or row.trigger
        row.state, row.reason = event.state, event.reason or row.reason
        row.graphs += event.graphs or 0
        row.ops += event.ops or 0
        row.guards = event.guards if event.guards is not None else row.guards
        row.guard_latency_us = event.guard_latency_us if event.guard_latency_us is not None else row.guard_latency_us
        row.duration_s = event.duration_s if event.duration_s is not None else row.duration_s

    def _graph_break(self, event: e.GraphBreak) -> None:
        key = (event.id or event.kind, event.file, event.line, event.function)
        rows = self.step_breaks if event.origin else self.graph_breaks
        row = rows.get(key)
        if row is None:
            row = rows[key] = GraphBreakRow(event=event, count=0)
        row.count += 1
        if event.compile_id:
            row.compile_ids.append(event.compile_id)

    def _recompile(self, event: e.Recompile) -> None:
        # a counter fails with a new guard text each time, and a size with a new number: the source tells what it is
        aspect = _ASPECT.search(event.guard)
        cause = (event.source, event.dimension, aspect and aspect[1]) if event.source else (event.guard,)
        key = (event.file, event.line, event.function, *cause)
        rows = self.step_recompiles if event.origin else self.recompiles
        row = rows.get(key)
        if row is None:
            rows[key] = RecompileRow(events=[event])
        else:
            row.events.append(event)

    def _samples(self, event: e.Samples) -> None:
        series = self.series.setdefault((event.shape, event.side, event.measure), Series(clock=event.clock))
        series.blocks += range(event.block, event.block + len(event.seconds))
        series.seconds += event.seconds
        series.wall_s += event.wall_s
        series.clock_mhz += event.clock_mhz
        series.at += [event.at] * len(event.seconds)
