"""Shapes, guards, CUDA graphs and the exported timeline, on recorded traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.stories import recorded_run

from compilescope.domain import cudagraphs
from compilescope.domain import events as e
from compilescope.domain.advice.recompiles import fix
from compilescope.domain.chrometrace import chrome_trace, write_chrome_trace
from compilescope.domain.errors import AppError
from compilescope.domain.guardtree import matches, parse_guards
from compilescope.domain.pipeline import pipeline
from compilescope.domain.results import run_json
from compilescope.domain.run import Run
from compilescope.domain.shapes import dimensions, sentence
from compilescope.domain.trace import read_text


@pytest.fixture(scope="module")
def changing() -> Run:
    return recorded_run("graph_break_and_recompile")


def test_that_a_specialised_dimension_is_told_from_a_symbolic_one() -> None:
    run = recorded_run("cudagraph_dynamic_shapes")
    assert run.cold

    rows = dimensions(run.cold.symbols)

    assert [(row.source, row.state) for row in rows] == [
        ("args[0], dimension 0", "symbolic"),
        ("args[0], dimension 1", "specialised"),
    ]
    assert rows[0].range == "2 or more"
    assert rows[1].sentence == "fixed to 64: what the code asks of it leaves one value"
    assert sentence(rows) == "Of 2 symbols: 1 symbolic, 1 specialised after all."


def test_that_the_line_that_constrained_a_dimension_is_its_line() -> None:
    came_up = e.Symbol(state="symbolic", symbol="s0", source="x.size()[1]", file="model.py", line=3, compile_id="0/1")
    asked = e.Symbol(state="constrained", symbol="s0", reason="s0 <= 4", file="model.py", line=8, compile_id="0/1")

    (row,) = dimensions([came_up, asked])

    assert row.place == e.Place(file="model.py", line=8)
    assert row.sentence == "any size, as long as s0 <= 4"


def test_that_numbers_become_symbols_without_being_sizes(changing: Run) -> None:
    assert changing.cold
    rows = {row.symbol: row for row in dimensions(changing.cold.symbols)}

    assert (rows["zf84"].sentence, rows["zf84"].value) == ("any value", "-0.03448")
    assert rows["s77"].sentence == "any size"


def test_that_a_guard_tree_is_read_with_its_count_and_latency() -> None:
    run = recorded_run("mlp_default")
    assert run.cold
    span = next(text for text in run.cold.texts if text.kind == "guards")

    tree = parse_guards(read_text(span.file, span.offset, span.length))

    assert (tree.count, tree.latency_us) == (50, 76.33)
    top = tree.root.children[0]
    assert top.text == "RootGuardManager"
    tensor = next(node for node in top.walk() if node.kind == "TENSOR_MATCH")
    assert tensor.text.startswith("check_tensor(args[0], Tensor")
    assert tensor.place == ("nn/modules/linear.py", 134)
    assert tensor.parent is not None and tensor.parent.text.startswith("args[0]")
    assert matches(tensor, ["float32", "linear.py"]) and not matches(tensor, ["float32", "conv"])


def test_that_a_text_without_guards_is_an_empty_tree() -> None:
    assert parse_guards("").count == 0


def test_that_a_cuda_graph_mode_on_a_cpu_is_said_to_be_the_same_as_another() -> None:
    run = recorded_run("mlp_reduce_overhead", mode="reduce-overhead")
    run.apply(e.Hello(start="warm"))
    run.apply(e.WorkloadReady(device="cpu"))

    assert cudagraphs.sentence(run) == (
        "reduce-overhead ran on the CPU, where there are no CUDA graphs. Here it is the same as default."
    )


def test_that_recorded_cuda_graphs_are_counted_and_skipped_ones_have_their_reason() -> None:
    run = recorded_run("mlp_reduce_overhead", mode="reduce-overhead")
    assert run.cold
    assert cudagraphs.sentence(run) == "1 CUDA graph recorded: launches are replayed without Python."

    skip = e.CudaGraph(state="skipped", reason="mutated inputs (1 instances)", file="g.py", line=33)
    rows = cudagraphs.rows([*run.cold.cudagraphs, skip, skip])

    assert [(row.event.state, row.count) for row in rows] == [("recorded", 1), ("skipped", 2)]
    assert rows[1].reason == "mutated inputs (1 instances)"


def test_that_a_mode_without_cuda_graphs_has_nothing_to_say_of_them() -> None:
    assert not cudagraphs.is_wanted(recorded_run("mlp_default"))
    assert cudagraphs.is_wanted(recorded_run("mlp_reduce_overhead", mode="reduce-overhead"))


def test_that_a_trace_in_which_torch_made_graphs_ready_is_not_told_as_one_that_never_asked() -> None:
    run = recorded_run("cudagraph_dynamic_shapes")
    run.is_trace = True

    assert cudagraphs.is_wanted(run)
    assert cudagraphs.fate(run) == {step.name: step.detail for step in pipeline(run)}["CUDA graphs"]
    assert cudagraphs.fate(run) == "made ready, none recorded"
    assert "asked for" in cudagraphs.sentence(run) and "no recording" in cudagraphs.sentence(run)
    assert run_json(run)["cudagraphs"] == {"captured": None, "skips": []}


def test_that_a_trace_without_cuda_graphs_does_not_say_what_was_asked_for() -> None:
    run = recorded_run("mlp_default")
    assert cudagraphs.fate(run) == "not asked for"
    run.is_trace = True

    assert cudagraphs.fate(run) == "none in the trace"


def test_that_each_kind_of_recompile_has_its_remedy(changing: Run) -> None:
    assert changing.cold
    remedies = {row.event.source: fix(changing, row) for row in changing.cold.recompiles.values()}

    assert remedies["x"].startswith("Try dynamic on (dynamic=True), or torch._dynamo.mark_dynamic(x, 0)")
    assert remedies["self.step"].startswith("Keep self.step in a tensor (a buffer)")


def test_that_the_timeline_becomes_a_chrome_trace(tmp_path: Path, changing: Run) -> None:
    write_chrome_trace(changing, tmp_path / "timeline.json")
    assert changing.cold

    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]

    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == len(changing.cold.phases)
    assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= set(spans[0])
    assert all(span["dur"] >= 0 for span in spans)
    assert sum(event["name"] == "recompile" for event in events) == 7


def test_that_a_warm_process_stands_behind_the_cold_one_in_time() -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")
    assert run.cold

    events = chrome_trace(run)["traceEvents"]

    begins = {pid: min(e["ts"] for e in events if e["ph"] == "X" and e["pid"] == pid) for pid in (1, 2)}
    assert begins[2] >= run.cold.last_at * 1e6


def test_that_a_timeline_that_cannot_be_written_is_one_sentence(tmp_path: Path, changing: Run) -> None:
    with pytest.raises(AppError, match="could not be written"):
        write_chrome_trace(changing, tmp_path)
