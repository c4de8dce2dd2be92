"""Which configurations run the same generated code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes.stories import recorded_run

from compilescope.domain import events as e
from compilescope.domain.codekey import code_key
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.trace.code import digest

RunMaker = Callable[..., Run]

MODULE = """
# AOT ID: ['0_inference']
# kernel path: /tmp/one/cl/ccl5.py
cpp_fused_0 = async_compile.cpp_pybinding(['float*'], r'''
#include "/tmp/one/2r/c2rn.h"
#pragma omp parallel
''')
def call(args):
    assert_size_stride(arg0_1, (8, ), (1, ), 'input')
    cpp_fused_0(arg0_1)
"""
OTHER_PLACE = """
# AOT ID: ['3_inference']
# kernel path: /home/user/cache/cl/ccl5.py
cpp_fused_0 = async_compile.cpp_pybinding(['float*'], r'''
#include "/home/user/cache/2r/c2rn.h"
#pragma omp parallel
''')
def call(args):
    cpp_fused_0(arg0_1)
"""


def output(name: str, compile_id: str = "0/0") -> e.Text:
    return e.Text(kind="output_code", compile_id=compile_id, digest=name)


def test_that_the_folder_comments_and_size_checks_make_no_other_code():
    assert digest(MODULE) == digest(OTHER_PLACE)


@pytest.mark.parametrize("line", ["cpp_fused_0(arg0_1)", "#pragma omp parallel", "c2rn.h"])
def test_that_any_other_line_makes_another_code(line: str):
    assert digest(MODULE) != digest(MODULE.replace(line, "pass"))


def test_that_recorded_runs_of_the_same_code_have_one_key():
    default, warm = recorded_run("mlp_default"), recorded_run("mlp_default_warm")
    graphs = recorded_run("mlp_reduce_overhead", mode="reduce-overhead")

    assert code_key(default) == code_key(warm) is not None
    assert code_key(graphs) not in (None, code_key(default))


def test_that_a_mode_that_changes_no_code_changes_no_key(make_run: RunMaker):
    keys = {code_key(make_run(extra=[output("a")], config=Config(mode=mode))) for mode in (None, "reduce-overhead")}

    assert len(keys) == 1 and None not in keys


def test_that_cuda_graphs_and_options_are_part_of_the_code_that_runs(make_run: RunMaker):
    recorded = e.CudaGraph(state="recorded")
    runs = [
        make_run(extra=[output("a")], device="cuda:0"),
        make_run(extra=[output("a"), recorded], device="cuda:0", config=Config(mode="reduce-overhead")),
        make_run(extra=[output("a")], device="cuda:0", config=Config(options={"cpp.threads": 1})),
    ]

    assert len({code_key(run) for run in runs} - {None}) == 3


@pytest.mark.parametrize(
    ("extra", "options"),
    [
        ([], {}),
        ([output("")], {}),
        ([output("a", "1/0")], {}),
        ([output("a"), e.RecompileLimit(limit=8)], {}),
        ([output("a"), e.Compile(compile_id="1/0", state="failed")], {}),
        ([output("a")], {"config": Config(backend="aot_eager")}),
        ([output("a")], {"config": Config(mode="reduce-overhead"), "device": "cuda:0"}),
    ],
    ids=["no code", "an older worker", "another graph's", "past the limit", "failed", "backend", "graphs not told"],
)
def test_that_no_key_is_told_where_part_of_what_runs_is_not_known(
    make_run: RunMaker, extra: list[e.Event], options: dict[str, object]
):
    assert code_key(make_run(extra=extra, **options)) is None
