"""What the texts of torch 2.6 to 2.14 say: breaks, recompiles, limits, CUDA graphs, graphs and kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilescope.domain.events import Place
from compilescope.domain.trace.breaks import parse_break
from compilescope.domain.trace.code import count_operations, either, node_places, parse_kernels, traced_places
from compilescope.domain.trace.loops import ends_loop, is_in_loop
from compilescope.domain.trace.messages import parse_cudagraph, parse_limit
from compilescope.domain.trace.phases import group
from compilescope.domain.trace.places import Places, function_name
from compilescope.domain.trace.recompiles import parse_reasons, plain_source
from compilescope.domain.trace.resumes import Functions, last_line

OLD_BREAK = """Graph break in user code at /home/user/model.py:12
Reason: Unsupported: builtin: print [<class 'torch._dynamo.variables.constant.ConstantVariable'>] False
User code traceback:
  File "/home/user/train.py", line 40, in <module>
    model(x)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1750, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/user/model.py", line 12, in torch_dynamo_resume_in_forward_at_10
    print("here")

Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/torch/_dynamo/symbolic_convert.py", line 659, in wrapper
    return inner_fn(self, inst)
torch._dynamo.exc.Unsupported: builtin: print
"""

OLD_SKIP = """Graph break: skip: from user code at:
  File "/home/user/model.py", line 8, in forward
    for i in range(3): print(i)

Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py", line 1164, in __call__
    result = self._inner_convert(
torch._dynamo.exc.Unsupported: Graph break under GenericContextWrappingVariable

from user code:
   File "/home/user/model.py", line 8, in forward
"""

NEW_BREAK = """Graph break in user code at /home/user/model.py:26
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`
    with config.capture_scalar_outputs=False.
  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True`.
  Hint: Or live with it.

  Developer debug context: call_method TensorVariable() item () {}

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
  Hint: Move the break out of the loop.

  Developer debug context: frame skipped

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb7000.html

Stack variable source attribution:
  nothing

User code traceback:
  File "/home/user/model.py", line 26, in forward
    if x.sum().item() > 0:

NoneType: None
"""


def test_that_a_break_of_torch_2_6_has_kind_place_and_stack_without_torchs_frames() -> None:
    found = parse_break(OLD_BREAK, Places())

    assert found.causes[0].kind.startswith("builtin: print")
    assert found.causes[0].id is None
    assert found.place == Place(file="/home/user/model.py", line=12, function="forward")
    assert [place.line for place in found.stack] == [40, 12]
    assert not found.frame_skipped


def test_that_a_skipped_frame_of_torch_2_6_takes_its_reason_from_the_exception() -> None:
    found = parse_break(OLD_SKIP, Places())

    assert found.frame_skipped
    assert found.causes[0].kind == "Graph break under GenericContextWrappingVariable"
    assert found.causes[0].explanation == ""
    assert found.place == Place(file="/home/user/model.py", line=8, function="forward")


def test_that_the_root_cause_comes_before_what_followed_from_it() -> None:
    found = parse_break(NEW_BREAK, Places())
    root, consequence = found.causes

    assert (root.id, root.kind) == ("GB0124", "Unsupported Tensor.item() call with capture_scalar_outputs=False")
    expected = "Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False."
    assert root.explanation == expected
    assert root.hints == ("Set `torch._dynamo.config.capture_scalar_outputs = True`.", "Or live with it.")
    assert consequence.kind == "graph break in loop"
    assert found.in_loop
    assert found.frame_skipped


def test_that_frames_of_the_program_that_compiles_are_nobodys_business() -> None:
    frame = '  File "/opt/scope/worker/bench.py", line 3, in first\n    x\n'
    text = NEW_BREAK.replace("traceback:\n", f"traceback:\n{frame}")

    assert [place.line for place in parse_break(text, Places(hidden=["/opt/scope/worker"])).stack] == [26]


def test_that_a_loop_is_found_in_the_source_where_torch_does_not_tell(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("def forward(x):\n    x = x + 1\n    for i in range(3):\n        print(i)\n    return x\n")

    assert is_in_loop([Place(file=str(file), line=4, function="forward")])
    assert not is_in_loop([Place(file=str(file), line=2, function="forward")])
    assert not is_in_loop([Place(file=str(tmp_path / "none.py"), line=4, function="forward")])


WHILE = """def forward(x, t, mask):
    while t > 0:
        x = x + 1
    for i in mask.tolist():
        if x.sum() > 9:
            x = x - 1
        if x.sum() > 10:
            break
    for i in range(3):
        if x.mean() > 1: return x
    while True:
        for j in range(3):
            if j > 1:
                break
        if (x.sum() >
                10):
            break
    return x
"""


def test_that_the_tests_that_decide_on_another_round_are_told_from_other_lines_of_a_loop(tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text(WHILE)
    lines = range(1, len(WHILE.splitlines()) + 1)
    places = {line: [Place(file=str(file), line=line, function="forward")] for line in lines}

    assert [line for line in lines if is_in_loop(places[line])] == [2, 3, *range(5, 9), 10, *range(11, 18)]
    assert [line for line in lines if ends_loop(places[line])] == [2, 7, 10, 11, 13, 15, 16]


def test_that_a_while_on_a_tensor_is_a_break_in_a_loop_also_where_its_file_is_not_here() -> None:
    text = (
        "Graph break in user code at /home/user/policy.py:25\nGraph Break Reason: Data-dependent branching\n\n"
        'User code traceback:\n  File "/home/user/train.py", line 5, in <module>\n    c(x)\n'
        '  File "/home/user/policy.py", line 25, in forward\n    while time >= -dt / 2:\n          ^^^^^^^^^^^^\n\n'
        "NoneType: None\n"
    )
    found = parse_break(text, Places())
    other = parse_break(text.replace("while time >= -dt / 2:", "if time >= -dt / 2:   "), Places())

    assert (found.in_loop, found.ends_loop) == (True, True)
    assert (other.in_loop, other.ends_loop) == (False, False)


def test_that_a_resumed_function_goes_by_its_own_name() -> None:
    assert function_name("torch_dynamo_resume_in_forward_at_12") == "forward"
    assert function_name("torch_dynamo_resume_in_torch_dynamo_resume_in_step_at_3_at_12") == "step"
    assert function_name("inner") == "inner"


BYTECODE_3_11 = """  18           0 RESUME                   0
             14 LOAD_GLOBAL             31 (NULL + f)
        >>  190 PRECALL                  1

 19         194 CALL                     1
            204 SWAP                     3
"""
BYTECODE_3_13 = """  18           RESUME                   0
               LOAD_GLOBAL             31 (f + NULL)

  --           COPY_FREE_VARS           1
  19   L1:     CALL                     1
               SWAP                     3
"""


@pytest.mark.parametrize("bytecode", [BYTECODE_3_11, BYTECODE_3_13])
def test_that_the_last_line_of_a_made_function_is_that_of_what_is_left_to_python(bytecode: str) -> None:
    assert last_line(bytecode) == 19


def test_that_a_resumed_part_belongs_to_the_function_above_it_of_its_name_and_file() -> None:
    functions = Functions()
    for line in (5, 20, 40):
        functions.add(Place(file="a.py", line=line, function="forward"))
    functions.add(Place(file="b.py", line=30, function="forward"))

    assert functions.first_line(Place(file="a.py", line=33, function="forward")) == 20
    assert functions.first_line(Place(file="a.py", line=3, function="forward")) is None


@pytest.mark.parametrize(
    ("payload", "source", "dimension", "expected", "actual"),
    [
        ("0/0: tensor 'L['x']' size mismatch at index 0. expected 4, actual 5", "x", 0, "4", "5"),
        ("[\"0/0: tensor 'x' size mismatch at index 1. expected 9, actual 14\"]", "x", 1, "9", "14"),
        ("0/0: tensor 'x' stride mismatch at index 0. expected 4, actual 1", "x", 0, "4", "1"),
        ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "x", None, "0", None),
        ("0/0: tensor 'x' rank mismatch. expected 2, actual 3", "x", None, "2", "3"),
        ("0/0: n == 1   # c = f(x, n)  # model.py:39 in forward\nUser stack trace:\n  File", "n", None, "1", None),
        ("0/0: L['n'] == 1  # c = f(x, n)  # model.py:39 in forward", "n", None, "1", None),
        ("0/1: self.calls == 1   # self.calls += 1  # m.py:9 in forward (HINT: int)", "self.calls", None, "1", None),
        ("0/0: s == 'a'", "s", None, "'a'", None),
        ("0/0: self.param_groups[0]['lr'] == 0.04", "self.param_groups[0]['lr']", None, "0.04", None),
        ("0/0: self._modules['drop'].training == True  # x", "self.drop.training", None, "True", None),
        ("0/1: 2 <= ids.size()[1] <= 4096  # x", "ids", 1, "2 to 4096", None),
        ("0/1: 2 <= L['x'].size()[0]  # _dynamo/x.py", "x", 0, "at least 2", None),
        ("0/0: len(L['items']) == 2", "len(items)", None, "2", None),
        ("0/0: ___check_type_id(fn, 94003), type=<class 'a.B'> (HINT: type B)", "fn", None, "<class 'a.B'>", None),
        ("0/1: GLOBAL_STATE changed: grad_mode ", "global state: grad_mode", None, None, None),
    ],
)
def test_that_a_recompile_reason_names_source_dimension_and_values(
    payload: str, source: str, dimension: int | None, expected: str | None, actual: str | None
) -> None:
    reason = parse_reasons(payload)[0]

    assert (reason.source, reason.dimension, reason.expected, reason.actual) == (source, dimension, expected, actual)
    assert reason.failed in ("0/0", "0/1")


def test_that_the_compile_that_was_used_last_and_did_not_fit_comes_first() -> None:
    reasons = parse_reasons('[\n"0/1: self.step == 1   # self.step += 1",\n"0/0: self.step == 0   # self.step += 1"\n]')

    assert [reason.failed for reason in reasons] == ["0/1", "0/0"]
    assert [reason.guard for reason in reasons] == ["self.step == 1", "self.step == 0"]


def test_that_a_guards_line_is_kept_and_its_comment_cut_off() -> None:
    reason = parse_reasons("0/0: n == 1                  # c = f(x, n)  # app/model.py:39 in forward")[0]

    assert reason.guard == "n == 1"
    assert reason.place == Place(file="app/model.py", line=39, function="forward")


def test_that_a_wrappers_positional_argument_gets_its_name() -> None:
    assert plain_source("args[0].size()[1]", ("input", "mask")) == "input.size()[1]"
    assert plain_source("args[2]", ("input", "mask")) == "args[2]"


@pytest.mark.parametrize("option", ["recompile_limit", "cache_size_limit"])
def test_that_the_limits_message_names_function_limit_and_reason(option: str) -> None:
    found = parse_limit(
        f"torch._dynamo hit config.{option} (8)\n   function: 'forward' (/home/user/m.py:28)\n"
        "   last reason: 0/7: self.calls == 7\nTo log all recompilation reasons, use TORCH_LOGS"
    )

    assert found is not None
    assert found.place == Place(file="/home/user/m.py", line=28, function="forward")
    assert (found.limit, found.reason) == (8, "0/7: self.calls == 7")


def test_that_a_cudagraph_reason_is_told_once_however_often_torch_repeats_its_preamble() -> None:
    found = parse_cudagraph(
        "skipping cudagraphs due to skipping cudagraphs due to cpu device (arg1_1). Found from : \n"
        '   File "/home/user/g.py", line 33, in <lambda>\n    return x + y\n'
    )

    assert found is not None
    assert (found.state, found.reason) == ("skipped", "cpu device (arg1_1)")
    assert found.place == Place(file="/home/user/g.py", line=33, function="<lambda>")


def test_that_a_branch_on_data_keeps_its_id_where_torch_prints_no_link() -> None:
    text = "Graph Break Reason: Data-dependent branching\n  Explanation: Detected it.\n\nUser code traceback:\n"

    assert [cause.id for cause in parse_break(text, Places()).causes] == ["GB0170"]


def test_that_other_messages_are_nobodys_news() -> None:
    assert parse_cudagraph("Graph break from `Tensor.item()`") is None
    assert parse_limit("Graph break from `Tensor.item()`") is None


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 32][32, 1]cpu", L_w_: "f32[32][1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # File: /home/user/model.py:9 in forward, code: h = self.a(x)
        h: "f32[4, 32][32, 1]cpu" = torch._C._nn.linear(l_x_, l_w_);  l_x_ = l_w_ = None

        # File: /home/user/model.py:10 in torch_dynamo_resume_in_forward_at_9, code: h[0] = 1
        h[(0, slice(None, None, None))] = 1;  setitem = h;  setitem = None
        scale = self.scale
        gt: "b8[][]cpu" = h > 0;  h = None
        return (gt,)
"""


def test_that_a_graphs_operations_are_its_calls() -> None:
    assert count_operations(GRAPH) == 3
    assert count_operations("class GraphModule(torch.nn.Module):\n    def forward(self):\n        return ()\n") == 0


def test_that_a_graphs_nodes_know_their_lines() -> None:
    places = node_places(GRAPH)

    assert places["h"] == Place(file="/home/user/model.py", line=9, function="forward")
    assert places["gt"] == Place(file="/home/user/model.py", line=10, function="forward")


CODE = """
cpp_fused_add_0 = async_compile.cpp_pybinding(['float*'], '''
extern "C" void kernel() {}
''')
triton_poi_fused_mul_1 = async_compile.triton('triton_poi_fused_mul_1', '''
def call(): not this one
''', device_str='cuda')

async_compile.wait(globals())
del async_compile

class Runner:
    def call(self, args):
        args.clear()
        buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
        # Topologically Sorted Source Nodes: [h], Original ATen: [aten.addmm]
        extern_kernels.addmm(arg0, arg1, out=buf0)
        # Topologically Sorted Source Nodes: [h, gt], Original ATen: [aten.add]
        cpp_fused_add_0(buf0)
        cpp_fused_add_0(buf0)
        # Topologically Sorted Source Nodes: [], Original ATen: []
        stream0 = get_raw_stream(0)
        triton_poi_fused_mul_1.run(buf0, 16, stream=stream0)
        buf3 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(buf0, buf0)
        buf4 = reinterpret_tensor(buf0, (4, 4), (1, 4), 0)
        return (buf0, )

def benchmark_compiled_module(times=10):
    extern_kernels.mm(None)
"""


def test_that_kernels_are_counted_by_their_launches_and_know_their_lines() -> None:
    kernels = {kernel.name: kernel for kernel in parse_kernels(CODE, node_places(GRAPH))}

    assert {name: (kernel.kind, kernel.launches) for name, kernel in kernels.items()} == {
        "cpp_fused_add_0": ("cpp", 2),
        "triton_poi_fused_mul_1": ("triton", 1),
        "extern_kernels.addmm": ("extern", 1),
        "_scaled_dot_product_flash_attention_for_cpu": ("extern", 1),
    }
    assert [place.line for place in kernels["cpp_fused_add_0"].places] == [9, 10]
    assert [place.line for place in kernels["extern_kernels.addmm"].places] == [9]


HANDLED = """
cpp_fused_relu_0 = async_compile.cpp_pybinding(['float*'], '''
''')

def call(args):
    # [Provenance debug handles] cpp_fused_relu_0:1
    cpp_fused_relu_0(buf0)
    # Topologically Sorted Source Nodes: [h], Original ATen: [aten.addmm]
    # [Provenance debug handles] extern_kernels.addmm:2
    extern_kernels.addmm(arg0, arg1, out=buf0)
    # [Provenance debug handles] cpp_fused_relu_0:3
    cpp_fused_relu_0(buf0)
    return (buf0, )
"""


def stack(*lines: int) -> str:
    return "".join(f'  File "/home/user/model.py", line {line}, in forward\n    code()\n    ^^^^^^\n' for line in lines)


def test_that_a_cpp_kernel_comes_from_the_lines_that_torch_traced_each_launch_to() -> None:
    stacks = {"cpp_fused_relu_0:1": [stack(40, 9), stack(40, 10)], "cpp_fused_relu_0:3": [stack(40, 9), stack(40, 12)]}
    traced = traced_places(json.dumps(stacks))

    kernels = {kernel.name: kernel for kernel in parse_kernels(HANDLED, node_places(GRAPH))}

    assert [place.line for place in kernels["cpp_fused_relu_0"].placed(traced)] == [9, 10, 12]
    assert [place.line for place in kernels["extern_kernels.addmm"].placed(traced)] == [9]  # by its comment
    assert traced_places("") == traced_places("[]") == {}


def test_that_a_node_without_a_line_does_not_take_over_the_one_above() -> None:
    graph = GRAPH.replace("        scale = ", "        # No stacktrace found for following nodes\n        scale = ")

    assert "gt" not in node_places(graph)


def test_that_a_name_that_means_two_lines_in_a_backward_module_means_none() -> None:
    one, two, three = (Place(file="/home/user/model.py", line=line) for line in (1, 2, 3))

    assert either({"h": one, "mul": two}, {"mul": three, "mm": one}) == {"h": one, "mm": one}


def test_that_each_timed_region_belongs_to_a_part_of_the_compiler() -> None:
    named = {
        "entire_frame_compile": "dynamo",
        "_compile.compile_inner": "dynamo",
        "build_guards": "guards",
        "create_aot_dispatcher_function": "aot",
        "aot_trace_joint_graph": "aot",
        "fx_codegen_and_compile": "inductor",
        "GraphLowering.run": "inductor",
        "GraphLowering.codegen": "codegen",
        "compile_file": "kernels",
        "async_compile.wait": "kernels",
        "mm_template_autotuning": "autotune",
        "entire_backward_compile": "backward",
        "CUDAGraphNode.record": "cudagraphs",
        "something_new": "other",
    }

    assert {name: group(name) for name in named} == named
