"""The pipeline strip's steps, from events."""

from __future__ import annotations

from collections.abc import Iterable

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.pipeline import NAMES, SelfTimes, State, pipeline, self_times
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload


def run_of(events: Iterable[e.Event], config: Config | None = None) -> Run:
    workload = Workload(script="/model.py", device="cpu")
    return Run("r", config=config or Config(mode="default"), workload=workload).apply_all(events)


def states(run: Run) -> dict[str, str]:
    return {step.name: step.state.value for step in pipeline(run)}


def stage(name: str, begin: float, end: float | None = None) -> list[e.Event]:
    events: list[e.Event] = [e.Stage(at=begin, name=name)]
    if end is not None:
        events.append(e.Stage(at=end, name=name, state="end", duration_s=end - begin))
    return events


def phase(name: str, group: str, begin: float, end: float | None = None) -> list[e.Event]:
    events: list[e.Event] = [e.Phase(at=begin, name=name, group=group)]
    if end is not None:
        events.append(e.Phase(at=end, name=name, group=group, state="end", duration_s=end - begin))
    return events


def test_that_without_a_run_every_step_waits() -> None:
    assert [step.name for step in pipeline(None)] == list(NAMES)
    assert {step.state for step in pipeline(None)} == {State.WAITING}


def test_that_the_innermost_open_phase_says_which_step_is_on() -> None:
    run = run_of(
        [
            e.Hello(),
            *stage("load", 0, 1),
            *stage("compile", 1),
            *phase("entire_frame_compile", "dynamo", 1),
            *phase("inductor_compile", "inductor", 2),
        ]
    )

    found = states(run)

    assert found["Script"] == "done"
    assert found["Inductor"] == "on"
    assert found["Dynamo"] == "done"
    assert found["Measured"] == "waiting"


def test_that_a_second_is_counted_for_one_step_only() -> None:
    run = run_of(
        [
            e.Hello(),
            e.Phase(at=0, name="outer", group="dynamo"),
            e.Phase(at=1, name="inner", group="inductor"),
            e.Phase(at=4, name="inner", group="inductor", state="end", duration_s=3),
            e.Phase(at=5, name="outer", group="dynamo", state="end", duration_s=5),
        ]
    )

    assert self_times(run.processes[0].phases, 5) == {"dynamo": 2.0, "inductor": 3.0}


def test_that_kernels_built_beside_the_thread_that_waits_for_them_are_not_counted_twice() -> None:
    events = [
        e.Hello(),
        e.Phase(at=0, name="compile", group="inductor", thread=1),
        e.Phase(at=2, name="wait", group="kernels", thread=1),
        e.Phase(at=2.5, name="compile_file", group="kernels", thread=2),
        e.Phase(at=6.5, name="compile_file", group="kernels", thread=2, state="end", duration_s=4),
        e.Phase(at=7, name="wait", group="kernels", thread=1, state="end", duration_s=5),
        e.Phase(at=7, name="compile", group="inductor", thread=1, state="end", duration_s=7),
        # the backward is compiled on a thread that nobody waits for in a phase
        e.Phase(at=8, name="backward", group="backward", thread=2),
        e.Phase(at=9, name="backward", group="backward", thread=2, state="end", duration_s=1),
    ]
    whole = run_of(events).processes[0].phases

    assert self_times(whole, 9) == {"inductor": 2.0, "kernels": 5.0, "backward": 1.0}

    reader, run = SelfTimes(), run_of(())
    for event in events:
        run.apply(event)
        live = reader.of(run.processes[0].phases, event.at)
    assert live == self_times(whole, 9)


def test_that_nothing_goes_on_in_a_run_that_was_stopped() -> None:
    compiling = [*phase("trace", "dynamo", 1, 2), *phase("compile_file", "kernels", 2, 3)]
    run = run_of([e.Hello(), *stage("load", 0, 1), *stage("compile", 1), *compiling, e.Ended(outcome="stopped")])

    found = states(run)

    assert found["Dynamo"] == "done"
    assert found["Kernels"] == "stopped"


def test_that_a_failure_marks_the_step_that_failed() -> None:
    error = e.RunError(stage="eager", type="RuntimeError", message="shapes")
    run = run_of([e.Hello(), *stage("load", 0, 1), *stage("eager", 1), e.Ended(outcome="failed", error=error)])

    found = states(run)

    assert found["Script"] == "failed"
    assert found["Dynamo"] == "waiting"


def test_that_what_lies_behind_a_failure_of_the_compiler_was_not_reached() -> None:
    error = e.RunError(stage="compile", type="Unsupported", message="Data-dependent branching")
    run = run_of(
        [e.Hello(), *stage("compile", 0, 1), *phase("trace", "dynamo", 0, 1), e.Ended(outcome="failed", error=error)]
    )

    steps = {step.name: step for step in pipeline(run)}

    assert steps["Dynamo"].state is State.FAILED
    assert steps["Kernels"].detail == "not reached"
    assert steps["CUDA graphs"].detail == "not on a CPU"


def test_that_a_compiler_that_did_nothing_shows_its_steps_as_not_used() -> None:
    run = run_of(
        [
            e.Hello(),
            *stage("compile", 0),
            *phase("dynamo", "dynamo", 0, 1),
            e.FirstCall(side="compiled", duration_s=1.0),
            e.Stage(at=1, name="compile", state="end", duration_s=1.0),
            *stage("measure", 1),
        ]
    )

    steps = {step.name: step for step in pipeline(run)}

    assert steps["Inductor"].state is State.ABSENT
    assert steps["Dynamo"].detail == "0 graphs"
    assert steps["Measured"].state is State.ON


def test_that_cuda_graphs_on_a_cpu_are_named_as_such() -> None:
    run = run_of([e.Hello(), *stage("compile", 0)], Config(mode="reduce-overhead"))

    steps = {step.name: step for step in pipeline(run)}

    assert steps["CUDA graphs"].detail == "not on a CPU"


def test_that_a_stopped_run_is_done_with_nothing_that_it_was_in() -> None:
    at_once = run_of([e.Hello(), *stage("load", 0, 0.1), e.Ended(outcome="stopped")])
    compiling = run_of(
        [e.Hello(), *stage("load", 0, 1), *stage("compile", 1), *phase("a", "dynamo", 1), e.Ended(outcome="stopped")]
    )
    unborn = run_of([e.Ended(outcome="stopped")])

    assert states(at_once)["Script"] == "stopped"
    assert states(compiling)["Script"] == "done"
    assert states(compiling)["Dynamo"] == "stopped"
    assert states(compiling)["Inductor"] == "waiting"
    assert states(run_of([e.Hello(), *stage("compile", 1), e.Ended(outcome="stopped")]))["Dynamo"] == "stopped"
    assert states(unborn)["Script"] == "stopped"
    assert "done" not in states(unborn).values()
