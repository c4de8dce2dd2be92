"""Records as they come from a live compile, told as events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.trace import Entrance, TraceRecord, TraceTranslator

TORCH = "/usr/lib/python3.11/site-packages/torch"
MODEL = "/home/user/model.py"
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_):
        h = torch.relu(l_x_)
        return (h,)
"""


class Compiler:
    """Feeds records the way torch writes them for one compile id after the other."""

    def __init__(self, hidden: tuple[str, ...] = (), **entrance: Any) -> None:
        self.translator = TraceTranslator("trace.log", hidden=hidden)
        self.translator.entrance = Entrance(**entrance) if entrance else None
        self.events: list[e.Event] = []
        self.id: tuple[int, int] = (0, 0)

    def record(self, metadata: dict[str, Any], payload: str = "", at: float = 1.0) -> None:
        frame, count = self.id
        whole = {**metadata, "frame_id": frame, "frame_compile_id": count, "attempt": 0}
        self.events += self.translator.feed(TraceRecord(whole, text=payload, at=at, thread=7, offset=9, length=99))

    def artifact(self, name: str, payload: str) -> None:
        self.record({"artifact": {"name": name, "encoding": "string"}}, payload)

    def start(self, file: str = MODEL, function: str = "forward", line: int = 5, caller: int = 40) -> None:
        stack = [
            {"line": caller, "name": "<module>", "filename": "/home/user/train.py"},
            {"line": line, "name": function, "filename": file},
        ]
        self.record({"dynamo_start": {"stack": stack}})

    def graph(self) -> None:
        self.record({"dynamo_output_graph": {"sizes": {}}}, GRAPH)

    def end(self, **metrics: Any) -> None:
        self.record({"compilation_metrics": {"has_guarded_code": True, **metrics}})

    def tick(self, name: str, state: str, microseconds: float, **arguments: Any) -> None:
        value = {"name": name, "ts": microseconds, "args": arguments, "ph": state, "cat": "dynamo_timed", "tid": 0}
        self.record({"chromium_event": {}}, json.dumps(value, indent=0))

    def all(self, kind: type[e.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def a_break(line: int, preamble: str = "") -> str:
    return (
        f"Graph break in user code at {MODEL}:{line}\nGraph Break Reason: {preamble}Unsupported thing\n"
        "  Explanation: It is not supported.\n  Hint: Do without.\n\n"
        f'User code traceback:\n  File "{MODEL}", line {line}, in forward\n    thing()\n\n'
    )


def test_that_a_compile_is_told_from_begin_to_end_with_its_place() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.graph()
    compiler.end(guard_count=12, entire_frame_compile_time_s=0.5)

    told = compiler.all(e.Compile)
    assert [(event.state, event.graphs, event.ops) for event in told] == [
        ("begin", None, None),
        ("captured", 1, 1),
        ("end", None, None),
    ]
    assert {(event.file, event.line, event.function, event.compile_id) for event in told} == {
        (MODEL, 5, "forward", "0/0")
    }
    assert (told[-1].guards, told[-1].duration_s) == (12, 0.5)


def test_that_a_graph_captured_again_by_a_retry_counts_once() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.graph()
    compiler.graph()
    compiler.end(graph_op_count=1)

    assert sum(event.graphs or 0 for event in compiler.all(e.Compile)) == 1


def test_that_a_graph_whose_text_is_missing_counts_by_the_metrics() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.end(graph_op_count=4)

    assert [(event.graphs, event.ops) for event in compiler.all(e.Compile) if event.state == "captured"] == [(1, 4)]


def test_that_a_break_is_told_before_the_backend_has_compiled_what_is_left() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.artifact("dynamo_graph_break_reason", a_break(8))
    compiler.graph()

    (event,) = compiler.all(e.GraphBreak)
    assert (event.line, event.kind, event.hints, event.frame_skipped) == (
        8,
        "Unsupported thing",
        ("Do without.",),
        False,
    )


def test_that_a_break_reported_again_when_its_frame_is_skipped_is_one_break() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.artifact("dynamo_graph_break_reason", a_break(8))
    compiler.artifact("dynamo_graph_break_reason", a_break(8, "Failed to handle graph break gracefully. Skipping.\n\n"))
    compiler.end(has_guarded_code=False, fail_type="Unsupported", fail_reason="Unsupported thing\n  Explanation: …")

    (event,) = compiler.all(e.GraphBreak)
    assert event.frame_skipped
    assert compiler.all(e.Compile)[-1].state == "skipped"
    assert compiler.all(e.Compile)[-1].reason == "Unsupported thing"


def test_that_a_break_of_a_compile_that_never_ends_is_told_in_the_end() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.artifact("dynamo_graph_break_reason", a_break(8))

    assert compiler.all(e.GraphBreak) == []
    assert [event.compile_id for event in compiler.translator.finish(2.0)] == ["0/0"]


def test_that_an_exception_without_a_break_is_a_failed_compile() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.end(has_guarded_code=False, fail_type="BackendCompilerFailed", fail_reason="backend raised:\nmore")

    last = compiler.all(e.Compile)[-1]
    assert (last.state, last.reason) == ("failed", "BackendCompilerFailed: backend raised:")


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [
        ("IndexError", "failed", "IndexError: out of range (hidden by torch._dynamo.config.suppress_errors)"),
        ("Unsupported", "skipped", "out of range"),
    ],
)
@pytest.mark.parametrize("broke", [False, True])
def test_that_a_failure_that_suppress_errors_hides_is_no_frame_that_was_left(
    kind: str, state: str, reason: str, broke: bool
) -> None:
    compiler = Compiler()
    compiler.start()
    if broke:
        compiler.artifact("dynamo_graph_break_reason", a_break(8))
    compiler.end(has_guarded_code=False, fail_type=kind, fail_reason="out of range", config_suppress_errors=True)

    last = compiler.all(e.Compile)[-1]
    assert (last.state, last.reason) == (state, reason)


def test_that_the_refusal_at_the_limit_is_no_recompile_and_the_limit_is_told_once() -> None:
    compiler = Compiler()
    for count in range(2):
        compiler.id = (0, count)
        if count:
            compiler.artifact("recompile_reasons", f"0/{count - 1}: self.calls == {count - 1}")
        compiler.start()
        compiler.end()
    compiler.id = (0, 2)
    compiler.artifact("recompile_reasons", '["0/1: self.calls == 1", "0/0: self.calls == 0"]')
    message = (
        f"torch._dynamo hit config.recompile_limit (2)\n   function: 'forward' ({MODEL}:5)\n"
        "   last reason: 0/1: self.calls == 1\n"
    )
    compiler.events += compiler.translator.feed_message("torch._dynamo.convert_frame", "WARNING", message)
    compiler.events += compiler.translator.feed_message("torch._dynamo", "WARNING", message)
    compiler.end(has_guarded_code=False, fail_type="Unsupported", fail_reason="Dynamo recompile limit exceeded\n  Exp")

    assert [event.failed_compile_id for event in compiler.all(e.Recompile)] == ["0/0"]
    (limit,) = compiler.all(e.RecompileLimit)
    assert (limit.limit, limit.line, limit.function, limit.reason) == (2, 5, "forward", "0/1: self.calls == 1")


def test_that_a_saved_trace_tells_the_limit_without_the_message() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.end()
    compiler.id = (0, 1)
    compiler.artifact("recompile_reasons", "0/0: self.calls == 0")
    compiler.end(fail_type="FailOnRecompileLimitHit", fail_reason="Hard failure due to fullgraph=True")

    (limit,) = compiler.all(e.RecompileLimit)
    assert (limit.file, limit.line, limit.reason) == (MODEL, 5, "0/0: self.calls == 0")
    assert compiler.all(e.Recompile) == []
    assert compiler.all(e.Compile)[-1].state == "failed"


def test_that_a_wrapped_library_module_stands_under_its_own_name_and_arguments() -> None:
    compiler = Compiler(file=f"{TORCH}/nn/modules/container.py", line=250, arguments=("input", "mask"))
    compiler.start(f"{TORCH}/_dynamo/external_utils.py", "inner", 67)
    compiler.id = (0, 1)
    compiler.artifact("recompile_reasons", "0/0: tensor 'args[1]' size mismatch at index 2. expected 4, actual 8")
    compiler.start(f"{TORCH}/_dynamo/external_utils.py", "inner", 67)

    (recompile,) = compiler.all(e.Recompile)
    assert (recompile.source, recompile.dimension, recompile.function, recompile.line) == ("mask", 2, "forward", 250)


def test_that_a_wrapped_module_of_a_saved_trace_stands_at_the_line_that_called_it() -> None:
    compiler = Compiler()
    compiler.start(f"{TORCH}/_dynamo/external_utils.py", "inner", 67, caller=40)

    (begin,) = compiler.all(e.Compile)
    assert (begin.file, begin.line, begin.function) == ("/home/user/train.py", 40, "forward")


def test_that_regions_of_two_threads_overlap_and_each_gets_its_own_duration() -> None:
    compiler = Compiler()
    compiler.tick("async_compile.wait", "B", 1_000_000)
    compiler.tick("compile_file", "B", 2_000_000)
    compiler.tick("async_compile.wait", "E", 3_000_000)
    compiler.tick("compile_file", "E", 6_000_000)
    compiler.tick("fx_graph_cache_miss", "i", 500_000, components=["[abc] gm: x"])

    ended = [event for event in compiler.all(e.Phase) if event.state == "end"]
    assert [(event.name, event.duration_s, event.at) for event in ended] == [
        ("async_compile.wait", 2.0, 3.0),
        ("compile_file", 4.0, 6.0),
    ]


def test_that_autotuning_with_all_choices_takes_its_time_from_the_phase() -> None:
    compiler = Compiler()
    compiler.translator.timeline.autotune_told = True
    compiler.tick("mm_template_autotuning", "B", 1_000_000)
    compiler.tick("mm_template_autotuning", "E", 3_500_000, autotune_choices_stats='{"best_kernel": "mm"}')
    assert compiler.all(e.Autotune) == []

    (event,) = compiler.translator.feed_autotune(e.Autotune(operation="mm", winner="triton_mm_3"))
    assert isinstance(event, e.Autotune)
    assert (event.winner, event.duration_s) == ("triton_mm_3", 2.5)


def test_that_a_symbol_is_told_once_and_a_specialised_one_with_the_line_that_did_it() -> None:
    compiler = Compiler()
    created = {"symbol": "s77", "val": "4", "vr": "[2, int_oo]", "source": "L['x'].size()[0]", "user_stack": []}
    compiler.record({"create_symbol": created})
    compiler.record({"create_symbol": created})
    stack = [{"line": 13, "name": "forward", "filename": MODEL}]
    compiler.record({"guard_added_fast": {"expr": "Eq(s77, 4)", "user_stack": stack}})
    compiler.record({"guard_added_fast": {"expr": "32*s77 <= 2147483647", "user_stack": stack}})
    compiler.record({"symbolic_shape_specialization": {"symbol": "s77", "sources": ["L['x'].size()[0]"], "value": "4"}})

    told = [(event.state, event.symbol, event.source, event.value, event.line) for event in compiler.all(e.Symbol)]
    assert told == [
        ("symbolic", "s77", "x.size()[0]", "4", None),
        ("constrained", "s77", None, None, 13),
        ("specialised", "s77", "x.size()[0]", "4", 13),
    ]


def test_that_a_cache_lookup_tells_key_reason_and_where_its_components_lie() -> None:
    compiler = Compiler()
    compiler.artifact(
        "fx_graph_cache_miss",
        json.dumps({"key": "abc", "components": ['[k] gm: say "hi"], x', "[l] y"], "time_taken_ns": 2_500_000_000}),
    )
    compiler.artifact("aotautograd_cache_bypass", json.dumps({"cache_bypass_reason": 'Unsupported "call"'}))

    miss, bypass = compiler.all(e.Cache)
    assert (miss.cache, miss.state, miss.key, miss.duration_s) == ("fx_graph", "miss", "abc", 2.5)
    assert miss.components == e.TextSpan(file="trace.log", offset=9, length=99)
    assert (bypass.cache, bypass.state, bypass.reason, bypass.components) == (
        "aot_autograd",
        "bypass",
        'Unsupported "call"',
        None,
    )


CODE = """
def call(args):
    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(arg0, arg1, out=buf0)
    return (buf0, )
"""
STACKS = "inductor_provenance_tracking_kernel_stack_traces"


def test_that_a_kernel_waits_for_the_lines_that_torch_tells_after_the_code() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.record({"inductor_output_code": {"filename": "c.py"}}, CODE)
    assert compiler.all(e.Kernel) == []

    stack = f'  File "{MODEL}", line 8, in forward\n    x @ w\n'
    compiler.artifact(STACKS, json.dumps({"extern_kernels.mm:1": [stack]}))

    (kernel,) = compiler.all(e.Kernel)
    assert (kernel.name, kernel.launches, kernel.compile_id) == ("extern_kernels.mm", 1, "0/0")
    assert kernel.places == (e.Place(file=MODEL, line=8, function="forward"),)
    assert compiler.translator.finish() == []


def test_that_a_kernel_whose_lines_never_come_is_told_in_the_end_and_one_of_plain_code_at_once() -> None:
    compiler = Compiler()
    compiler.record({"inductor_output_code": {"filename": "c.py"}}, CODE)
    assert [event.type for event in compiler.translator.finish(5.0)] == ["kernel"]

    plain = "\n".join(line for line in CODE.splitlines() if "handles" not in line)
    compiler.record({"inductor_output_code": {"filename": "c.py"}}, plain)
    assert [kernel.name for kernel in compiler.all(e.Kernel)] == ["extern_kernels.mm"]


def test_that_a_frame_that_broke_and_left_neither_guards_nor_operations_was_skipped() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.artifact("dynamo_graph_break_reason", a_break(26))
    compiler.end(guard_count=None, graph_op_count=None)

    (told,) = compiler.all(e.GraphBreak)
    assert told.frame_skipped
    assert [event.state for event in compiler.all(e.Compile)] == ["begin", "skipped"]


def test_that_a_break_told_after_its_compile_failed_is_told_at_once_and_the_frame_was_skipped() -> None:
    compiler = Compiler()
    compiler.start()
    compiler.end(has_guarded_code=False, fail_type="Unsupported", fail_reason="SKIPPED INLINING")
    compiler.artifact("dynamo_graph_break_reason", a_break(32, preamble="Graph break: skip: "))

    (told,) = compiler.all(e.GraphBreak)
    assert (told.line, told.frame_skipped) == (32, True)
    assert [event.state for event in compiler.all(e.Compile)] == ["begin", "failed", "skipped"]
    assert compiler.translator.finish() == []


def test_that_records_nobody_knows_yet_are_passed_over() -> None:
    compiler = Compiler()
    compiler.record({"something_new": {"a": 1}}, "text")
    compiler.artifact("something_else", "text")

    assert compiler.events == []
