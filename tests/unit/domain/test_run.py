"""The fold of events into a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload


@pytest.fixture
def run() -> Run:
    return Run("r", config=Config(), workload=Workload(script="model.py"))


def test_that_a_run_is_its_stream_whatever_the_pace():
    stream = [e.Hello(), e.Stage(name="load"), e.Stage(name="load", state="end", at=2.0), e.Ended()]
    once, twice = (Run("r", config=Config(), workload=Workload(script="m.py")) for _ in range(2))

    once.apply_all(stream)
    for event in stream:
        twice.apply(event)

    assert once.revision == twice.revision
    assert [vars(row) for row in once.processes[0].stages] == [vars(row) for row in twice.processes[0].stages]


def test_that_only_the_section_of_an_event_gets_a_new_revision(run: Run):
    run.apply(e.Hello())
    before = dict(run.revision)

    run.apply(e.Samples(side="eager", seconds=(0.1,)))

    changed = {section for section in run.revision if run.revision[section] != before.get(section)}
    assert changed == {"samples", "all"}


def test_that_a_stream_without_a_hello_is_still_told(run: Run):
    run.apply(e.Failure(error=e.RunError(stage="start", type="ImportError", message="no torch")))

    assert run.error is not None and run.error.message == "no torch"


def test_that_cold_and_warm_are_kept_apart(run: Run):
    run.apply_all([e.Hello(start="cold"), e.Cache(cache="fx_graph", state="miss")])
    run.apply_all([e.Hello(start="warm"), e.Cache(cache="fx_graph", state="hit")])

    assert run.cold is not None and [row.state for row in run.cold.cache] == ["miss"]
    assert run.warm is not None and [row.state for row in run.warm.cache] == ["hit"]
    assert run.story is run.cold


def test_that_the_same_break_is_one_row_and_another_line_is_another(run: Run):
    first = e.GraphBreak(id="GB0124", kind="item", file="m.py", line=3, function="forward", compile_id="0/0")
    other = e.GraphBreak(id="GB0124", kind="item", file="m.py", line=9, function="forward")

    run.apply_all([e.Hello(), first, first, other])

    assert run.story is not None
    assert [row.count for row in run.story.graph_breaks.values()] == [2, 1]


def test_that_phases_nest_on_their_thread_and_end_by_name(run: Run):
    run.apply_all(
        [
            e.Hello(),
            e.Phase(name="dynamo", thread=1, at=0.0),
            e.Phase(name="inductor", thread=1, at=1.0),
            e.Phase(name="build", thread=2, at=1.1),
            e.Phase(name="inductor", thread=1, at=3.0, state="end"),
            e.Phase(name="dynamo", thread=1, at=4.0, state="end", duration_s=3.9),
        ]
    )

    assert run.story is not None
    rows = {row.name: (row.depth, row.duration_s) for row in run.story.phases}
    assert rows == {"dynamo": (0, 3.9), "inductor": (1, 2.0), "build": (0, None)}


def test_that_an_end_without_a_begin_changes_nothing(run: Run):
    run.apply_all([e.Hello(), e.Phase(name="x", state="end"), e.Stage(name="load", state="end")])

    assert run.story is not None and not run.story.phases and not run.story.stages


def test_that_void_blocks_are_left_out_of_both_sides(run: Run):
    run.apply_all(
        [
            e.Hello(),
            e.Samples(side="eager", block=0, seconds=(1.0, 2.0, 3.0)),
            e.Samples(side="compiled", block=0, seconds=(4.0, 5.0, 6.0)),
            e.Void(block=1, reason="a recompile"),
        ]
    )

    assert run.story is not None
    assert run.story.samples("eager").seconds == [1.0, 3.0]
    assert run.story.samples("compiled").blocks == [0, 2]


def test_that_graphs_add_up_over_the_states_of_a_compile(run: Run):
    run.apply_all(
        [
            e.Hello(),
            e.Compile(compile_id="0/0", state="begin", file="m.py", line=2, function="forward"),
            e.Compile(compile_id="0/0", state="captured", graphs=1, ops=7),
            e.Compile(compile_id="0/0", state="end", guards=12, duration_s=1.0),
            e.Compile(compile_id="1/0", state="skipped", reason="no tensors"),
        ]
    )

    assert run.story is not None
    row = run.story.compiles["0/0"]
    assert (run.story.graphs, run.story.ops) == (1, 7)
    assert (row.function, row.state, row.guards, row.duration_s) == ("forward", "end", 12, 1.0)


def test_that_events_of_unknown_kinds_are_skipped(run: Run):
    run.apply(e.Hello())
    before = run.revision["all"]

    run.apply(e.Event())

    assert run.revision["all"] == before


def test_that_the_current_stage_is_the_one_that_is_on(run: Run):
    run.apply_all([e.Hello(), e.Stage(name="load"), e.Stage(name="load", state="end"), e.Stage(name="eager")])

    assert run.current_stage is not None and run.current_stage.name == "eager"
    assert not run.is_over and run.outcome is None


def test_that_a_counter_that_fails_with_a_new_guard_each_time_is_one_row(run: Run):
    steps = [
        e.Recompile(file="m.py", line=3, function="forward", source="self.step", guard=f"self.step == {n}")
        for n in range(4)
    ]

    run.apply_all([e.Hello(), *steps])

    (row,) = run.story.recompiles.values()
    assert row.count == 4
    assert row.event.guard == "self.step == 3"


def test_that_a_snapshot_stays_as_it_was_while_the_run_goes_on(make_run: Callable[..., Run]):
    run = make_run(ended=None, starts=("cold",))
    before = comparison_json(Comparison(id="c", created=0.0, runs=[run]))

    taken = run.snapshot()
    run.apply(e.Samples(side="eager", block=900, seconds=(1.0,)))
    run.apply(e.GraphBreak(kind="new", file="m.py", line=1))
    run.apply(e.Phase(name="new"))
    run.apply(e.Ended())

    assert comparison_json(Comparison(id="c", created=0.0, runs=[taken])) == before


@pytest.mark.parametrize(
    ("story", "is_trace", "graphs", "breaks"),
    [
        ([e.Compile(state="begin")], False, None, None),
        ([e.Compile(state="begin"), e.GraphBreak(kind="item")], False, None, 1),
        ([e.Compile(state="end", graphs=2)], False, 2, None),
        ([e.Compile(state="begin"), e.FirstCall(side="compiled")], False, 0, 0),
        ([e.Compile(state="begin")], True, 0, 0),
    ],
    ids=["failed while compiling", "broke and failed", "captured and failed", "captured nothing", "a trace"],
)
def test_that_none_was_counted_is_known_only_once_compiling_is_over(
    story: list[e.Event], is_trace: bool, graphs: int | None, breaks: int | None
) -> None:
    run = Run("r", config=Config(), workload=Workload(script="m.py"))
    run.is_trace = is_trace
    run.apply_all([e.Hello(), *story, e.Ended(outcome="failed")])

    assert (run.graphs, run.breaks) == (graphs, breaks)
