"""The compiler's pipeline as one run went, or goes, through it: seven steps with state, time and what came out."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from enum import Enum

from compilescope.domain import cudagraphs, units
from compilescope.domain.run import COMPILED, EAGER, PhaseRow, ProcessStory, Run, StageRow

_GROUPS = {
    "Dynamo": ("dynamo", "guards"),
    "AOTAutograd": ("aot", "backward"),
    "Inductor": ("inductor", "codegen"),
    "Kernels": ("kernels", "autotune"),
    "CUDA graphs": ("cudagraphs",),
}
_SCRIPT_STAGES = ("start", "load", "eager")
_MEASURE_STAGES = ("eager", "check", "warm_up", "measure", "profile")
NAMES = ("Script", *_GROUPS, "Measured")


class State(str, Enum):
    """What a step is doing. ABSENT: this configuration does not use it."""

    WAITING = "waiting"
    ON = "on"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. `began` is the `at` since which it is on, for a clock that goes on between events."""

    name: str
    state: State = State.WAITING
    duration_s: float | None = None
    began: float | None = None
    detail: str = ""


def pipeline(run: Run | None, process: ProcessStory | None = None) -> tuple[Step, ...]:
    """The steps of a run's process; by default of the one that is on, or of the cold one when the run is over."""
    if run is None:
        return tuple(Step(name=name) for name in NAMES)
    story = process or (run.story if run.is_over else run.processes[-1] if run.processes else None)
    if story is None:
        steps = [Step(name=name) for name in NAMES]
    else:
        steps = [_script(run, story), *_compiler(run, story), _measured(run, story)]
    return tuple(_with_stop(steps) if run.outcome == "stopped" else steps)


def _with_stop(steps: list[Step]) -> list[Step]:
    """The last step that was reached did not come to its end; before any, it is the first. None goes on."""
    last = max((i for i, step in enumerate(steps) if step.state in (State.ON, State.DONE)), default=0)
    ended = [replace(step, state=State.DONE) if step.state is State.ON else step for step in steps]
    return [*ended[:last], replace(ended[last], state=State.STOPPED), *ended[last + 1 :]]


class SelfTimes:
    """Seconds per group, each second counted once, for the innermost phase that was on.

    What a second thread does while the first one is in a phase (it builds kernels that the first one then waits for)
    takes no time of its own. Reads each phase once: a strip that asks many times a second must not get slower as a
    run goes on.
    """

    def __init__(self) -> None:
        self._read = 0
        self._totals: dict[str, float] = {}
        self._stacks: dict[int | None, list[PhaseRow]] = {}
        self._open: list[tuple[PhaseRow, str | None]] = []
        # the threads whose phases lie beside another's
        self._helpers: set[int | None] = set()

    def of(self, phases: list[PhaseRow], now: float) -> dict[str, float]:
        """The times as of `now`; `phases` is the list of the last call, grown."""
        while self._read < len(phases):
            phase = phases[self._read]
            stack = self._stacks.setdefault(phase.thread, [])
            del stack[phase.depth :]
            if not stack:
                self._note_helper(phase)
            if phase.thread not in self._helpers:
                self._open.append((phase, stack[-1].group if stack else None))
            stack.append(phase)
            self._read += 1
        ended = [pair for pair in self._open if pair[0].duration_s is not None]
        self._open = [pair for pair in self._open if pair[0].duration_s is None]
        _add(self._totals, ended, now)
        totals = dict(self._totals)
        _add(totals, self._open, now)
        return {group: max(total, 0.0) for group, total in totals.items()}

    @property
    def innermost(self) -> str | None:
        """The group of the phase that began last of those that are on."""
        return self._open[-1][0].group if self._open else None

    def _note_helper(self, phase: PhaseRow) -> None:
        """Whether the thread on which this outermost phase began only helps another one, that is in a phase too."""
        outermost = [stack[0] for thread, stack in self._stacks.items() if stack and thread not in self._helpers]
        if any(row.thread != phase.thread and _is_on(row, phase.began) for row in outermost):
            self._helpers.add(phase.thread)
        else:
            self._helpers.discard(phase.thread)


def self_times(phases: list[PhaseRow], now: float) -> dict[str, float]:
    """Seconds per group, each second counted once, for the innermost phase that was on."""
    return SelfTimes().of(phases, now)


def _is_on(row: PhaseRow, at: float) -> bool:
    return row.duration_s is None or row.began + row.duration_s > at


def _add(totals: dict[str, float], phases: list[tuple[PhaseRow, str | None]], now: float) -> None:
    for phase, outer in phases:
        duration = _duration(phase, now)
        totals[phase.group] = totals.get(phase.group, 0.0) + duration
        if outer is not None:
            totals[outer] = totals.get(outer, 0.0) - duration


_self_times: weakref.WeakKeyDictionary[ProcessStory, SelfTimes] = weakref.WeakKeyDictionary()


def _duration(row: PhaseRow | StageRow, now: float) -> float:
    return row.duration_s if row.duration_s is not None else max(now - row.began, 0.0)


def _script(run: Run, story: ProcessStory) -> Step:
    detail = ""
    if story.workload:
        detail = units.plural(len(story.workload.inputs), "input")
    return _staged("Script", _SCRIPT_STAGES, run, story, detail)


def _measured(run: Run, story: ProcessStory) -> Step:
    pairs = min(len(story.samples(side).seconds) for side in (EAGER, COMPILED))
    return _staged("Measured", _MEASURE_STAGES, run, story, units.plural(pairs, "block") if pairs else "")


def _staged(name: str, stages: tuple[str, ...], run: Run, story: ProcessStory, detail: str) -> Step:
    rows = [row for row in story.stages if row.name in stages and _is_of(name, row, story)]
    if run.is_trace:
        # it begins with the compiler, and ends with it
        return Step(name=name, state=State.ABSENT)
    if not rows:
        return Step(name=name, state=State.FAILED if _failed_in(run, stages) else State.WAITING)
    total = sum(_duration(row, story.last_at) for row in rows)
    open_row = next((row for row in rows if row.duration_s is None), None)
    if _failed_in(run, stages):
        state = State.FAILED
    elif open_row is None:
        later = [row for row in story.stages if row.name not in stages and row.began >= rows[-1].began]
        is_last = name == "Measured" and not later and not run.is_over
        state = State.ON if is_last or ((not later and name == "Script") and not run.is_over) else State.DONE
    else:
        state = State.DONE if run.is_over else State.ON
    began = open_row.began if open_row and state is State.ON else None
    return Step(name=name, state=state, duration_s=total, began=began, detail=detail)


def _is_of(step: str, row: StageRow, story: ProcessStory) -> bool:
    """Eager's first call is the script's where it comes before anything compiles, as in a warm process; after that it
    is what the compiled model is measured against."""
    if row.name != "eager":
        return True
    compiled_before = any(other.name == "compile" and other.began <= row.began for other in story.stages)
    return compiled_before == (step == "Measured")


def _failed_in(run: Run, stages: tuple[str, ...]) -> bool:
    error = run.error
    if error is not None and error.stage == "eager" and "load" not in stages:
        return False  # whatever made it come up, it is the script's
    return run.is_over and run.outcome != "finished" and error is not None and error.stage in stages


def _compiler(run: Run, story: ProcessStory) -> list[Step]:
    compile_rows = [row for row in story.stages if row.name == "compile"]
    if not compile_rows and not run.is_trace:
        first = State.FAILED if _failed_in(run, ("compile",)) else State.WAITING
        return [Step(name=name, state=first if name == "Dynamo" else State.WAITING) for name in _GROUPS]
    reader = _self_times.setdefault(story, SelfTimes())
    times = reader.of(story.phases, story.last_at)
    # what a stop interrupts has no end of its own
    is_open = not run.is_over or run.outcome == "stopped"
    is_on = bool(compile_rows) and compile_rows[-1].duration_s is None and is_open
    innermost = (reader.innermost or "dynamo") if is_on else ""
    failed = _failed_in(run, ("compile",))
    steps = []
    for name, groups in _GROUPS.items():
        seconds = sum(times.get(group, 0.0) for group in groups)
        known = any(group in times for group in groups)
        state = State.ON if innermost in groups else State.DONE if known else State.WAITING
        if state is State.WAITING and not is_on:
            state = State.ABSENT
        steps.append(
            Step(
                name=name,
                state=state,
                duration_s=seconds if known else None,
                began=story.last_at if state is State.ON else None,
                detail=_detail(name, run, story),
            )
        )
    return _with_failure(steps) if failed else steps


def _with_failure(steps: list[Step]) -> list[Step]:
    """The last step that was reached is the one that failed; nobody knows of a later one whether it would be used."""
    reached = [index for index, step in enumerate(steps) if step.state in (State.ON, State.DONE)]
    last = reached[-1] if reached else 0
    steps[last] = Step(name=steps[last].name, state=State.FAILED, duration_s=steps[last].duration_s)
    return [*steps[: last + 1], *(replace(step, detail=step.detail or "not reached") for step in steps[last + 1 :])]


def _detail(name: str, run: Run, story: ProcessStory) -> str:
    if name == "Dynamo":
        parts = [] if run.graphs is None else [units.plural(run.graphs, "graph")]
        return ", ".join(parts + ([units.plural(story.break_count, "break")] if story.break_count else []))
    if name == "AOTAutograd":
        return units.plural(story.ops, "operation") if story.ops else ""
    if name == "Inductor":
        hits = story.lookups["fx_graph", "hit"]
        return units.plural(hits, "cache hit") if hits else ""
    if name == "Kernels":
        return units.plural(len(story.kernels), "kernel") if story.kernels else ""
    return cudagraphs.fate(run, story)
