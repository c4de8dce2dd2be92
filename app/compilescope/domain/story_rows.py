"""The rows of a process's story: what several events of one thing add up to."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.domain import events as e


@dataclass(kw_only=True)
class StageRow:
    """A stage of the worker; `duration_s` is None while it is on."""

    name: str
    began: float
    duration_s: float | None = None


@dataclass(kw_only=True)
class PhaseRow:
    """A compiler phase; `depth` counts the phases around it on its thread; `duration_s` is None while it is on."""

    name: str
    group: str
    compile_id: str | None
    thread: int | None
    began: float
    depth: int = 0
    duration_s: float | None = None


@dataclass(kw_only=True)
class CompileRow:
    """One compile id: what it captured and what became of it."""

    compile_id: str
    file: str | None = None
    line: int | None = None
    function: str | None = None
    trigger: str | None = None
    state: str = "begin"
    reason: str | None = None
    graphs: int = 0
    ops: int = 0
    guards: int | None = None
    guard_latency_us: float | None = None
    duration_s: float | None = None


@dataclass(kw_only=True)
class GraphBreakRow:
    """One distinct break: root cause and place; `count` adds up."""

    event: e.GraphBreak
    count: int = 1
    compile_ids: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class RecompileRow:
    """Recompiles of one function for one kind of guard; `events` in order."""

    events: list[e.Recompile]

    @property
    def event(self) -> e.Recompile:
        return self.events[-1]

    @property
    def count(self) -> int:
        return len(self.events)


@dataclass(kw_only=True)
class Series:
    """Timed blocks of one side in one process: seconds per call, by block number."""

    clock: str = "wall"
    blocks: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    clock_mhz: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    # how many seconds were sorted, and those; replaced as a whole, since several threads may read a run that is over
    _sorted: tuple[int, list[float]] = field(default=(0, []), repr=False)

    def snapshot(self) -> Series:
        """The blocks so far."""
        return Series(
            clock=self.clock,
            blocks=list(self.blocks),
            seconds=list(self.seconds),
            wall_s=list(self.wall_s),
            clock_mhz=list(self.clock_mhz),
            at=list(self.at),
        )

    def ordered(self) -> list[float]:
        """The seconds above 0, sorted: what is new is sorted into what was asked for before. Not to be changed."""
        known, ordered = self._sorted
        if known < len(self.seconds):
            ordered = sorted([*ordered, *(value for value in self.seconds[known:] if value > 0)])
            self._sorted = (len(self.seconds), ordered)
        return ordered
