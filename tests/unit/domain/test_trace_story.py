"""Recorded traces of a GPU and of a CPU, folded into the story that a person reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.run import ProcessStory, Run
from compilescope.domain.trace import TraceTranslator, read_text, read_trace, translate
from compilescope.domain.verdict import places_text
from compilescope.domain.workload import Workload

TRACES = Path(__file__).parents[2] / "transcripts" / "h200"
CPU_TRACES = TRACES.parent / "cpu"


def trace(name: str) -> Path:
    return next(folder / f"{name}.log.gz" for folder in (TRACES, CPU_TRACES) if (folder / f"{name}.log.gz").exists())


def fold(events: list[e.Event]) -> ProcessStory:
    run = Run("trace", config=Config(), workload=Workload(script=""))
    run.apply_all(events)
    assert run.story is not None
    return run.story


def story(name: str) -> ProcessStory:
    return fold(list(translate(trace(name))))


def with_messages(name: str) -> ProcessStory:
    """The trace, and beside it what only loggers and callbacks said."""
    messages: list[dict[str, Any]] = json.loads((TRACES / "messages.json").read_text())[name]
    translator = TraceTranslator(str(trace(name)))
    events = [event for record in read_trace(trace(name)) for event in translator.feed(record)]
    for message in messages:
        if "message" in message and "logger" in message:
            events += translator.feed_message(message["logger"], message["level"], message["message"])
        elif "callback" in message:
            events += translator.feed_callback(message["trigger"], message["compile_id"])
    return fold([*events, *translator.finish()])


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.log.gz")), ids=lambda path: path.name.split(".")[0])
def test_that_every_phase_that_began_has_ended_and_every_event_survives_the_wire(path: Path) -> None:
    events = list(translate(path))
    decoded = [e.decode(e.encode(event)) for event in events]
    folded = fold(events)

    assert decoded == events
    assert all(row.duration_s is not None and row.duration_s >= 0 for row in folded.phases)
    assert all(row.group != "other" for row in folded.phases if row.name not in ("gc", "automatic_dynamic"))


def test_that_a_plain_model_is_one_graph_with_its_kernels_and_texts() -> None:
    told = story("mlp_default")

    assert (told.graphs, told.ops, len(told.graph_breaks), len(told.recompiles)) == (1, 3, 0, 0)
    assert {kernel.name: kernel.kind for kernel in told.kernels} == {
        "triton_poi_fused_addmm_gelu_0": "triton",
        "extern_kernels.mm": "extern",
        "extern_kernels.addmm": "extern",
    }
    assert {text.kind for text in told.texts} >= {"dynamo_graph", "aot_inference", "post_grad", "output_code", "guards"}
    assert [row.function for row in told.compiles.values()] == ["forward"]
    assert next(iter(told.compiles.values())).guards == 74


def test_that_texts_are_read_from_where_the_events_point() -> None:
    told = story("mlp_default")
    texts = {text.kind: read_text(text.file, text.offset, text.length) for text in told.texts}

    assert texts["dynamo_graph"].startswith("class GraphModule(torch.nn.Module):\n    def forward(self")
    assert "async_compile.triton('triton_poi_fused_addmm_gelu_0'" in texts["output_code"]
    assert "TREE_GUARD_MANAGER" in texts["guards"]


def test_that_the_cold_start_misses_and_the_warm_one_hits_under_the_same_key() -> None:
    cold, warm = ({(row.cache, row.state): row for row in story(f"mlp_default{end}").cache} for end in ("", "_warm"))

    assert set(cold) == {("fx_graph", "miss"), ("aot_autograd", "miss")}
    assert set(warm) == {("fx_graph", "hit"), ("aot_autograd", "hit")}
    assert cold["fx_graph", "miss"].key == warm["fx_graph", "hit"].key
    assert cold["fx_graph", "miss"].duration_s == pytest.approx(1.376, abs=1e-3)
    assert warm["fx_graph", "hit"].saved_s == pytest.approx(1.376, abs=1e-3)
    assert warm["aot_autograd", "hit"].saved_s == pytest.approx(2.056)


def test_that_the_key_of_cold_and_warm_start_differs_in_no_component() -> None:
    cold, warm = story("mlp_default").cache[1].components, story("mlp_default_warm").cache[0].components
    assert cold and warm

    parts = [set(json.loads(read_text(span.file, span.offset, span.length))["components"]) for span in (cold, warm)]

    assert parts[0] == parts[1]
    assert len(parts[0]) > 400


def test_that_a_cuda_graph_is_recorded_once_though_trace_and_callback_both_say_so() -> None:
    for told in (story("mlp_reduce_overhead"), with_messages("mlp_reduce_overhead")):
        assert [row.state for row in told.cudagraphs] == ["recorded"]


def test_that_a_mutated_input_skips_cuda_graphs_at_its_line_and_is_told_once() -> None:
    told = with_messages("cudagraph_skip_mutated_input")

    assert [(row.state, row.reason, row.line, row.function) for row in told.cudagraphs] == [
        ("skipped", "mutated inputs (1 instances)", 12, "forward")
    ]
    assert story("cudagraph_skip_mutated_input").cudagraphs == []


def test_that_many_input_sizes_are_a_warning_and_the_specialised_dimension_is_named() -> None:
    told = with_messages("cudagraph_dynamic_shapes")
    fates = {(row.state, row.source): row.value for row in told.symbols}

    assert [row.state for row in told.cudagraphs] == ["warning"]
    assert "9 distinct sizes" in (told.cudagraphs[0].reason or "")
    assert fates["symbolic", "args[0].size()[0]"] == "8"
    assert fates["specialised", "args[0].size()[1]"] == "64"
    assert told.graphs == 1


def test_that_autotuning_names_operation_winner_and_time() -> None:
    told = story("mlp_max_autotune")

    assert [(row.operation, row.inputs[0], row.winner) for row in told.autotunes] == [
        ("addmm", "64x512", "triton_mm_17"),
        ("addmm", "64x256", "triton_mm_34"),
    ]
    assert told.autotunes[0].duration_s == pytest.approx(0.449, abs=1e-3)
    assert told.autotunes[0].choices[0]["seconds"] == pytest.approx(28.7e-6, rel=0.01)
    assert [row.state for row in told.cudagraphs] == ["recorded"]
    assert sum(kernel.launches or 0 for kernel in told.kernels if kernel.name.startswith("triton_tem")) == 2


def test_that_breaks_are_one_row_a_place_with_id_and_function() -> None:
    told = story("graph_break_and_recompile")
    rows = {(row.event.id, row.event.line, row.event.function): row.count for row in told.graph_breaks.values()}

    assert rows == {("GB0170", 10, "forward"): 4, ("GB0124", 11, "forward"): 2, ("GB0059", 11, "forward"): 2}
    assert all(row.event.frame_skipped is False for row in told.graph_breaks.values())
    assert all(row.event.hints and row.event.explanation for row in told.graph_breaks.values())
    assert told.graphs == 10


def test_that_recompiles_name_what_changed() -> None:
    told = story("graph_break_and_recompile")
    events = [event for row in told.recompiles.values() for event in row.events]

    assert len(events) == 7
    sizes = [event for event in events if event.source == "x"]
    assert [(event.dimension, event.expected, event.actual, event.failed_compile_id) for event in sizes] == [
        (0, "4", "5", "0/0")
    ]
    assert [event.expected for event in events if event.source == "self.step"] == ["1", "2", "2", "3"]
    assert {event.function for event in events} == {"forward"}
    assert told.recompile_limits == []


def test_that_each_recompile_of_a_function_with_several_variants_is_told_by_what_changed() -> None:
    told = story("recompiles_of_blocks")

    causes: dict[str, int] = {}
    for row in told.recompiles.values():
        cause = re.search(r"size|requires_grad|___stack0 ==", row.event.guard)
        assert cause
        causes[cause[0]] = causes.get(cause[0], 0) + row.count
    # four batches, of which the third has another size; a number from .item() that the blocks after the first vary
    assert causes == {"size": 5, "requires_grad": 2, "___stack0 ==": 1}


def test_that_a_second_size_is_the_cause_of_the_recompiles_that_follow_it() -> None:
    told = story("recompiles_of_a_sweep")
    events = [event for row in told.recompiles.values() for event in row.events]

    assert [event.source for event in events] == ["x"] * 6
    assert [(event.expected, event.actual) for event in events] == [("0", None)] * 2 + [("8", "12")] * 4


def test_that_a_loop_that_a_tensor_ends_is_broken_at_one_line_in_a_loop() -> None:
    told = story("while_on_a_tensor")
    (row,) = told.graph_breaks.values()

    assert (row.count, row.event.line, row.event.function) == (2, 25, "forward")
    assert (row.event.in_loop, row.event.ends_loop) == (True, True)


def test_that_two_kinds_of_break_at_one_line_are_one_place() -> None:
    told = story("graph_break_and_recompile")

    assert (len(told.graph_breaks), len(told.break_places)) == (3, 2)


def test_that_breaks_at_one_line_are_told_with_it_whatever_their_cause_and_function() -> None:
    def told(*rows: e.GraphBreak) -> str:
        found = ProcessStory(e.Hello())
        for row in rows:
            found.apply(row)
        return places_text(found)

    one = e.GraphBreak(file="/home/user/net.py", line=9, kind="print", function="forward")
    lambda_, item = replace(one, function="<lambda>"), replace(one, kind="item")

    assert told(one, one, lambda_, item) == ", all at net.py:9"
    assert told(one) == " at net.py:9"
    assert told(one, replace(one, line=12)) == " at 2 places"
    # what has no known line adds no place
    assert told(one, replace(one, file=None, line=None)) == " at 1 known place"
    assert told(replace(one, line=None)) == ""


def test_that_breaks_in_layers_of_torch_stand_at_the_lines_that_call_the_layers() -> None:
    told = story("breaks_in_a_library_layer")
    lines = {(Path(row.event.file or "").name, row.event.line): row.count for row in told.graph_breaks.values()}

    assert lines == {("quant_mlp.py", 16): 2, ("quant_mlp.py", 17): 2, ("quant_mlp.py", 18): 2, ("quant_mlp.py", 19): 1}
    compile_ids = [compile_id for row in told.graph_breaks.values() for compile_id in row.compile_ids]
    assert sorted(compile_ids) == [f"{number}/0" for number in range(7)]


def test_that_a_break_in_a_layer_of_torch_keeps_torchs_own_line_below_the_one_that_calls_it() -> None:
    (row,) = story("break_in_a_library_layer").graph_breaks.values()

    assert [(Path(place.file).name, place.line) for place in row.event.stack] == [
        ("run_noloop.py", 6),
        ("noloop.py", 17),
        ("linear.py", 58),
    ]
    assert (row.event.line, row.event.function, row.event.in_loop) == (17, "forward", False)


def test_that_an_lstm_is_told_as_not_compiled_with_one_break_that_skips_the_frame() -> None:
    told = story("lstm_not_compiled")
    (row,) = told.graph_breaks.values()

    assert told.graphs == 0
    assert [compile.state for compile in told.compiles.values()] == ["skipped"]
    assert (row.count, row.event.id, row.event.frame_skipped) == (1, "GB0014", True)
    assert (row.event.line, row.event.function) == (7, "forward")


def test_that_a_fullgraph_error_is_a_failed_compile_and_no_break() -> None:
    told = story("fullgraph_error")

    assert told.graph_breaks == {}
    assert [(row.state, row.reason) for row in told.compiles.values()] == [
        ("failed", "Unsupported: Data-dependent branching")
    ]


def test_that_a_training_step_shows_its_backward_and_a_warm_one_saves_it() -> None:
    cold, warm = story("training_step_bf16"), story("training_step_bf16_warm")
    groups = {row.group for row in cold.phases}

    assert groups >= {"dynamo", "guards", "aot", "inductor", "codegen", "kernels", "autotune", "backward"}
    assert {text.kind for text in cold.texts} >= {"aot_joint", "aot_forward", "aot_backward"}
    assert [row.state for row in cold.cache if row.cache == "fx_graph"] == ["miss", "miss"]
    assert [row.state for row in warm.cache if row.cache == "fx_graph"] == ["hit", "hit"]
    assert (cold.graphs, warm.graphs) == (1, 1)
    assert [kernel.name for kernel in cold.kernels] == [kernel.name for kernel in warm.kernels]
