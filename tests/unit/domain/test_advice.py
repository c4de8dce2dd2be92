"""Every rule fires on what it is for, and keeps quiet beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from compilescope.domain import events as e
from compilescope.domain.advice import Advice, advise
from compilescope.domain.config import Config
from compilescope.domain.playoff import PlayOff
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval
from compilescope.domain.trace.records import read_trace
from compilescope.domain.trace.translator import TraceTranslator
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]

AT = {"file": "model.py", "line": 12, "function": "forward"}
SIZE = {"guard": "TENSOR_MATCH", "reason": "tensor 'x' size mismatch at index 1. expected 8, actual 9"}


def broken(reason: str, **more: object) -> e.GraphBreak:
    return e.GraphBreak(kind="Unsupported", reason=reason, **AT, **more)  # type: ignore[arg-type]


def recompiles(values: Iterable[object], **more: object) -> list[e.Recompile]:
    return [e.Recompile(actual=str(value), **AT, **more) for value in values]  # type: ignore[arg-type]


CUDA = {"device": "cuda:0"}
RECURRENT = broken("Attempted to wrap RNN, GRU, or LSTM", id="GB0014")
ITEM = broken("Unsupported Tensor.item() call with capture_scalar_outputs=False", id="GB0124")
AT_BACKWARD = e.GraphBreak(
    kind="Unsupported Tensor.backward() call", id="GB0123", file="/a/compilescope/worker/training.py", line=44
)
SKIP = e.CudaGraph(state="skipped", reason="mutated inputs (1 instances)", **AT)  # type: ignore[arg-type]
PENDING = e.CudaGraph(
    state="warning",
    reason="Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards. "
    "Consider running with torch.no_grad() or using torch.compiler.cudagraph_mark_step_begin() before each model "
    "invocation",
)
COUNTER = [
    e.Recompile(source="self.step", guard=f"self.step == {step}", expected=str(step), **AT)  # type: ignore[arg-type]
    for step in (1, 2, 3)
]
NOT_BUSY = e.GpuBusy(side="compiled", seconds=0.4e-3, launches=30)
BUSY = e.GpuBusy(side="compiled", seconds=1.9e-3, launches=30)
OLD = e.Environment(device_capability="7.5")
DIFFER = e.Numerics(verdict="differ", max_abs_error=1.0)
TUNED = Config(mode="max-autotune")


def loaded(precision: str | None) -> e.WorkloadReady:
    """What was taken of a script that left torch's precision of matrix products so."""
    inputs = (e.Input(name="x", shape=(8, 16), dtype="float32"),)
    return e.WorkloadReady(precision="fp32", device="cuda:0", inputs=inputs, float32_matmul_precision=precision)


FIRES = [
    ("not_compiled", {"graphs": 0}),
    ("frame_skipped", {"extra": [broken("in a with block", frame_skipped=True)]}),
    ("break_in_loop", {"extra": [broken("call to unsupported function", in_loop=True)]}),
    ("graph_break_rnn", {"extra": [RECURRENT]}),
    ("graph_break_item", {"extra": [ITEM]}),
    ("graph_break_output_shape", {"extra": [broken("Dynamic shape operator", id="GB0036")]}),
    ("graph_break_branch_on_data", {"extra": [broken("Data-dependent branching", id="GB0170")]}),
    ("graph_break_loop_on_data", {"extra": [broken("Data-dependent branching", in_loop=True, ends_loop=True)]}),
    ("graph_break_branch_on_data", {"extra": [broken("Data-dependent branching", in_loop=True)]}),
    ("break_in_loop", {"extra": [broken("Data-dependent branching", in_loop=True)]}),
    ("graph_break_fake_tensors", {"extra": [broken("Operator does not support running with fake tensors")]}),
    ("graph_break_logging", {"extra": [broken("Failed to trace", explanation="builtin operator `print`")]}),
    ("graph_break", {"extra": [broken("Call to a C extension", hints=("Wrap it in a custom operator",))]}),
    ("whole_step_in_parts", {"config": Config(scope="step"), "extra": [AT_BACKWARD]}),
    ("recompile_limit", {"extra": [e.RecompileLimit(limit=8, reason="size mismatch", **AT)]}),
    ("changing_sizes", {"extra": recompiles((9, 10), source="L['x']", dimension=1, **SIZE)}),
    ("changing_number", {"extra": COUNTER}),
    ("recompile", {"extra": recompiles(("True",), source="L['flag']", guard="L['flag'] == False")}),
    ("recompiles_while_timing", {"extra": [e.Void(block=2, reason="The compiled model compiled again.")]}),
    ("recompiles_while_timing", {"extra": [e.Warning(code="recompiles_every_call", message="40 calls compiled.")]}),
    ("results_differ", {"extra": [DIFFER]}),
    ("cudagraph_skipped", {**CUDA, "config": Config(mode="reduce-overhead"), "extra": [SKIP]}),
    ("cudagraph_warning", {**CUDA, "config": Config(mode="reduce-overhead"), "extra": [PENDING, PENDING]}),
    ("cudagraphs_without_cuda", {"config": Config(mode="reduce-overhead")}),
    ("launch_bound", {**CUDA, "extra": [NOT_BUSY]}),
    ("tf32_off", CUDA),
    ("old_gpu", {**CUDA, "starts": ("cold",), "extra": [OLD]}),
    ("never_pays", {"speedup": 0.9}),
    ("pays_late", {"interval": (1.01, 1.009, 1.011), "eager_s": 0.1}),
    ("cache_bypassed", {"extra": [e.Cache(cache="fx_graph", state="bypass", reason="a custom pass")]}),
]

QUIET = [
    ("whole_step_in_parts", {"config": Config(scope="step"), "extra": [ITEM]}),
    ("graph_break", {"config": Config(scope="step"), "extra": [AT_BACKWARD]}),
    ("not_compiled", {"graphs": 1}),
    ("frame_skipped", {"extra": [broken("resumed after it", frame_skipped=False)]}),
    ("break_in_loop", {"extra": [broken("call to unsupported function", in_loop=False)]}),
    ("graph_break_rnn", {"extra": [ITEM]}),
    ("graph_break_item", {"extra": [RECURRENT]}),
    ("graph_break_output_shape", {"extra": [ITEM]}),
    ("graph_break_branch_on_data", {"extra": [ITEM]}),
    ("graph_break_branch_on_data", {"extra": [broken("Data-dependent branching", in_loop=True, ends_loop=True)]}),
    ("break_in_loop", {"extra": [broken("Data-dependent branching", in_loop=True, ends_loop=True)]}),
    ("graph_break_loop_on_data", {"extra": [broken("call to unsupported function", in_loop=True, ends_loop=True)]}),
    ("graph_break_fake_tensors", {"extra": [ITEM]}),
    ("graph_break_logging", {"extra": [broken("call to unsupported function blueprint()")]}),
    ("graph_break_logging", {"extra": [broken("Failed to trace", hints=("if it is logging (e.g. `print`)",))]}),
    ("graph_break", {"extra": [ITEM]}),
    ("recompile_limit", {"extra": COUNTER}),
    ("changing_sizes", {"extra": COUNTER}),
    ("changing_number", {"extra": recompiles((9, 10), source="L['x']", dimension=1, **SIZE)}),
    ("changing_number", {"extra": COUNTER[:1]}),
    ("recompile", {"extra": COUNTER}),
    ("recompiles_while_timing", {"extra": [e.Void(block=2, reason="The loss is not finite.")]}),
    ("results_differ", {}),
    ("cudagraph_skipped", {**CUDA, "config": Config(mode="reduce-overhead"), "extra": [e.CudaGraph(state="recorded")]}),
    ("cudagraph_warning", {**CUDA, "config": Config(mode="reduce-overhead"), "extra": [SKIP]}),
    ("cudagraphs_without_cuda", {"config": Config(mode="max-autotune-no-cudagraphs")}),
    ("cudagraphs_without_cuda", {**CUDA, "config": Config(mode="reduce-overhead")}),
    ("launch_bound", {**CUDA, "extra": [BUSY]}),
    ("launch_bound", {**CUDA, "extra": [NOT_BUSY], "config": Config(mode="reduce-overhead")}),
    ("launch_bound", {**CUDA, "extra": [NOT_BUSY], "config": Config(options={"triton.cudagraphs": True})}),
    ("launch_bound", {**CUDA, "extra": [NOT_BUSY], "graphs": 0}),
    ("launch_bound", CUDA),
    ("tf32_off", {}),
    ("tf32_off", {**CUDA, "starts": ("cold",), "extra": [OLD]}),
    ("tf32_off", {**CUDA, "extra": [loaded("high")]}),
    ("tf32_off", {**CUDA, "extra": [loaded(None)]}),
    ("tf32_off", {**CUDA, "extra": [e.Warning(code="own_precision", message="The script makes weights in bfloat16.")]}),
    ("old_gpu", CUDA),
    ("never_pays", {"speedup": 1.5}),
    ("never_pays", {"speedup": 1.0, "noise": 0.8, "blocks": 20}),
    ("never_pays", {"interval": (1.09, 0.995, 1.19)}),
    ("never_pays", {"interval": (0.8, 0.79, 0.81), "extra": [DIFFER]}),
    ("never_pays", {"interval": (0.8, 0.79, 0.81), "graphs": 0}),
    ("never_pays", {"interval": (1.5, 1.49, 1.51), "cache_was_empty": None}),
    ("never_pays", {"speedup": 0.9, "ended": None}),
    ("never_pays", {"speedup": 0.9, "ended": e.Ended(outcome="stopped")}),
    ("pays_late", {"speedup": 1.5}),
    # between half a minute and an hour
    ("pays_late", {"interval": (1.01, 1.002, 1.03), "eager_s": 0.01}),
    ("pays_late", {"interval": (1.01, 1.009, 1.011), "eager_s": 0.1, "extra": [DIFFER]}),
    ("pays_late", {"interval": (1.01, 1.009, 1.011), "eager_s": 0.1, "cache_was_empty": None}),
    ("cache_bypassed", {"extra": [e.Cache(cache="fx_graph", state="miss")]}),
    ("processes_disagree", {}),
    ("autotune_not_worth_it", {"config": Config(mode="max-autotune")}),
]


@pytest.mark.parametrize(("code", "options"), FIRES, ids=lambda value: value if isinstance(value, str) else "")
def test_that_a_rule_fires(make_run: RunMaker, code: str, options: dict[str, object]):
    found = [advice for advice in advise(make_run(**options)) if advice.code == code]

    assert len(found) == 1
    _check(found[0])


@pytest.mark.parametrize(("code", "options"), QUIET, ids=lambda value: value if isinstance(value, str) else "")
def test_that_a_rule_keeps_quiet(make_run: RunMaker, code: str, options: dict[str, object]):
    assert code not in [advice.code for advice in advise(make_run(**options))]


def test_that_autotuning_without_a_gain_is_told_beside_the_plain_run(make_run: RunMaker):
    plain = make_run("plain", speedup=1.5)
    tuned = make_run("tuned", speedup=1.5, config=Config(mode="max-autotune"), extra=[], seed=1)
    better = make_run("better", speedup=2.0, config=Config(mode="max-autotune"), seed=2)
    _slow_first_call(tuned), _slow_first_call(better)

    assert "autotune_not_worth_it" in [advice.code for advice in advise(tuned, [plain, tuned])]
    assert "autotune_not_worth_it" not in [advice.code for advice in advise(better, [plain, better])]
    assert "autotune_not_worth_it" not in [advice.code for advice in advise(plain, [plain, tuned])]


def test_that_a_play_off_that_autotuning_won_is_no_loss_to_speak_of(make_run: RunMaker):
    plain = make_run("plain", speedup=1.5)
    tuned = make_run("tuned", speedup=1.5, config=Config(mode="max-autotune"), seed=1)
    _slow_first_call(tuned)
    won = PlayOff(one="tuned", two="plain", ratio=Interval(value=1.04, low=1.03, high=1.05))

    found = advise(tuned, [plain, tuned], play_offs=[won])

    assert "autotune_not_worth_it" not in [advice.code for advice in found]


def test_that_runs_of_another_workload_are_no_measure_for_autotuning(make_run: RunMaker):
    plain = make_run("plain", workload=Workload(script="other.py"))
    tuned = make_run("tuned", config=Config(mode="max-autotune"), seed=1)
    _slow_first_call(tuned)

    assert "autotune_not_worth_it" not in [advice.code for advice in advise(tuned, [plain])]


@pytest.mark.parametrize(
    ("plain", "tuned"),
    [
        ({"interval": (1.5, 1.49, 1.51), "extra": [DIFFER]}, (1.5, 1.49, 1.51)),
        ({"interval": (1.5, 1.49, 1.51), "graphs": 0}, (1.5, 1.49, 1.51)),
        ({"interval": (0.9, 0.89, 0.91)}, (0.9, 0.89, 0.91)),
        ({"interval": (1.5, 1.49, 1.51)}, (1.5, 0.9, 2.4)),
        ({"interval": (1.5, 1.2, 1.9)}, (1.5, 1.49, 1.51)),
        ({"interval": (1.5, 1.45, 1.55)}, (1.58, 1.54, 1.62)),
        ({"interval": (1.5, 1.49, 1.51), "cache_was_empty": None}, (1.5, 1.49, 1.51)),
    ],
    ids=["incorrect", "not compiled", "slower", "own noise", "its noise", "a gain by the ratio", "own cache"],
)
def test_that_autotuning_is_held_against_nothing_but_what_is_faster_right_and_known_to_be_as_good(
    make_run: RunMaker, plain: dict[str, object], tuned: tuple[float, float, float]
):
    run = make_run("tuned", interval=tuned, config=TUNED)
    _slow_first_call(run)

    assert "autotune_not_worth_it" not in [advice.code for advice in advise(run, [make_run("plain", **plain), run])]


def test_that_a_search_that_gave_wrong_results_is_not_called_one_without_a_gain(make_run: RunMaker):
    run = make_run("tuned", interval=(1.5, 1.49, 1.51), config=TUNED, extra=[DIFFER])
    _slow_first_call(run)

    assert "autotune_not_worth_it" not in [advice.code for advice in advise(run, [make_run("plain")])]


def test_that_the_best_of_the_plain_runs_is_advised_instead_of_autotuning(make_run: RunMaker):
    plain = make_run("plain", interval=(1.40, 1.39, 1.41), config=Config(mode="default"))
    best = make_run("best", interval=(1.60, 1.59, 1.61), config=Config(mode="reduce-overhead"))
    run = make_run("tuned", interval=(1.40, 1.39, 1.41), config=TUNED)
    _slow_first_call(run)

    (found,) = (row for row in advise(run, [plain, best, run]) if row.code == "autotune_not_worth_it")

    assert found.remedy == "Use reduce-overhead."
    assert "reduce-overhead 1.600× ± 0.010 after 8.00 s" in found.evidence


def test_that_tf32_is_told_by_the_setting_in_force_and_of_matrix_products_alone(make_run: RunMaker):
    (found,) = (row for row in advise(make_run(**CUDA)) if row.code == "tf32_off")

    assert found.title == "fp32 matrix products run without tensor cores"
    assert "torch's precision of float32 matrix products is highest" in found.evidence


def test_that_contradicting_processes_are_told(make_run: RunMaker):
    chunks = [
        e.Samples(side=side, block=0, seconds=tuple(seconds * (1 + 0.001 * (i % 3)) for i in range(40)))
        for side, seconds in (("eager", 3e-3), ("compiled", 3.3e-3))
    ]
    run = make_run(starts=("cold",), noise=0.001, extra=[e.Hello(start="warm"), *chunks])

    assert "processes_disagree" in [advice.code for advice in advise(run)]


@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        ("while_on_a_tensor", {"graph_break_loop_on_data"}),
        ("lstm_not_compiled", {"not_compiled", "graph_break_rnn"}),
        (
            "graph_break_and_recompile",
            {
                "graph_break_item",
                "graph_break_branch_on_data",
                "graph_break_logging",
                "changing_sizes",
                "changing_number",
                "recompile",
            },
        ),
        ("mlp_default", set()),
        ("training_step_bf16", set()),
    ],
)
def test_that_recorded_traces_get_the_advice_that_fits(trace: str, codes: set[str]):
    (path,) = (Path(__file__).parents[2] / "transcripts").glob(f"*/{trace}.log.gz")
    translator = TraceTranslator(str(path))
    run = Run("r", config=Config(), workload=Workload(script="m.py"))
    run.apply(e.Hello())
    for record in read_trace(path):
        run.apply_all(translator.feed(record))
    run.apply_all([*translator.finish(), e.FirstCall(side="compiled", duration_s=3.0)])

    assert {advice.code for advice in advise(run)} == codes


def test_that_nothing_is_advised_on_a_run_that_has_not_begun():
    assert advise(Run("r", config=Config(), workload=Workload(script="m.py"))) == ()


def test_that_a_while_on_a_tensor_is_to_become_a_for_over_the_known_count(make_run: RunMaker):
    extra = [broken("Data-dependent branching", in_loop=True, ends_loop=True)]

    (found,) = (row for row in advise(make_run(extra=extra)) if "break" in row.code)

    assert "for step in range" in found.remedy
    assert "torch.where" not in found.remedy and "torch.cond" not in found.remedy


@pytest.mark.parametrize(("graphs", "skipped"), [(0, False), (0, True), (1, True)])
def test_that_no_loop_is_said_to_enter_compiled_code_where_none_was_made(
    make_run: RunMaker, graphs: int, skipped: bool
):
    found = advise(make_run(graphs=graphs, extra=[broken("call to print", in_loop=True, frame_skipped=skipped)]))
    (in_loop,) = (row for row in found if row.code == "break_in_loop")

    assert "enters compiled code" not in in_loop.remedy
    assert "runs eager" in in_loop.remedy


def test_that_problems_come_first(make_run: RunMaker):
    extra = [ITEM, e.RecompileLimit(limit=8), e.Cache(cache="fx_graph", state="bypass")]

    severities = [advice.severity for advice in advise(make_run(extra=extra))]

    assert severities == sorted(severities, key=("problem", "cost", "note").index)


def test_that_the_remedy_for_sizes_follows_what_is_set(make_run: RunMaker):
    extra = recompiles((9, 10), source="L['x']", dimension=1, **SIZE)

    def remedy(dynamic: bool | None) -> str:
        found = advise(make_run(extra=extra, config=Config(dynamic=dynamic)))
        return next(advice.remedy for advice in found if advice.code == "changing_sizes")

    assert "mark_dynamic(x, 1)" in remedy(None)
    assert "off here" in remedy(False)
    assert "on already" in remedy(True)


def test_that_dynamic_is_not_advised_where_it_was_tried_in_vain(make_run: RunMaker):
    def told(run: Run, others: list[Run]) -> str:
        return next(advice.remedy for advice in advise(run, others) if advice.code == "changing_sizes")

    same = recompiles((9, 10), source="L['x']", dimension=1, **SIZE)
    elsewhere = recompiles((9,), source="L['y']", dimension=1, **SIZE)
    run = make_run(extra=same)
    in_vain = make_run(extra=same, config=Config(dynamic=True))

    assert "Turning dynamic on does not help" in told(run, [run, in_vain]) and "Try dynamic" not in told(run, [in_vain])
    assert "Turning dynamic on does not help" in told(make_run(extra=same, config=Config(dynamic=False)), [in_vain])
    assert "Try dynamic on" in told(run, [make_run(extra=elsewhere, config=Config(dynamic=True))])
    assert "Try dynamic on" in told(run, [make_run(config=Config(dynamic=True))])


def test_that_each_recompile_has_the_advice_of_its_own_cause_whatever_other_variants_say(make_run: RunMaker):
    size = "tensor 'x' size mismatch at index 0. expected 8, actual 12"
    gradient = "tensor 'x' requires_grad mismatch. expected requires_grad={}"
    told = [
        e.Recompile(source="x", guard=gradient.format(0), reason=gradient.format(0), expected="0", **AT),
        e.Recompile(source="x", guard=gradient.format(1), reason=f"{gradient.format(1)}\n{size}", expected="1", **AT),
        e.Recompile(source="x", guard=size, reason=f"{size}\n{gradient.format(1)}", dimension=0, **AT),
        e.Recompile(source="x", guard="tensor 'x' stride mismatch at index 0. expected 4, actual 1", dimension=0, **AT),
        e.Recompile(source="___stack0", guard="___stack0 == 1.9", reason=f"___stack0 == 1.9\n{size}", **AT),
    ]

    found = [row for row in advise(make_run(extra=told)) if row.code != "graph_break"]

    (sizes,) = (row for row in found if row.code == "changing_sizes")
    assert sizes.evidence.startswith("1 recompile for x, dimension 0")
    others = [row for row in found if row.code == "recompile"]
    assert [row.evidence.partition(" ")[0] for row in others] == ["2", "1", "1"]
    assert ["gradients" in others[0].remedy, "layout" in others[1].remedy, ".item()" in others[2].remedy] == [True] * 3
    assert "changing_number" not in {row.code for row in found}


def test_that_one_recompile_that_made_a_size_dynamic_is_only_a_note(make_run: RunMaker):
    extra = recompiles((9,), source="L['x']", dimension=1, **SIZE)

    found = next(advice for advice in advise(make_run(extra=extra)) if advice.code == "changing_sizes")

    assert found.severity == "note"


def test_that_breaks_of_one_cause_are_one_piece_of_advice_with_every_place(make_run: RunMaker):
    extra = [e.GraphBreak(kind="x", reason="Tensor.item()", file="m.py", line=line) for line in (3, 9)]

    found = [advice for advice in advise(make_run(extra=extra)) if advice.code.startswith("graph_break")]

    assert [advice.code for advice in found] == ["graph_break_item"]
    assert [place.line for place in found[0].places] == [3, 9]
    assert "m.py:3, m.py:9" in found[0].evidence


def test_that_no_advice_foretells_what_fullgraph_would_do(make_run: RunMaker):
    extra = [ITEM, RECURRENT, broken("Data-dependent branching"), broken("in a with block", frame_skipped=True)]

    for advice in advise(make_run(extra=extra)):
        assert "fullgraph" not in advice.evidence
        assert not any(word in advice.remedy for word in ("fullgraph will", "fullgraph would", "fullgraph captures"))


def test_that_a_warning_of_a_pending_backward_says_what_to_do(make_run: RunMaker):
    run = make_run(**CUDA, config=Config(mode="reduce-overhead"), extra=[PENDING])

    (advice,) = (advice for advice in advise(run) if advice.code == "cudagraph_warning")

    assert "pending, uninvoked backwards" in advice.evidence
    assert "backward()" in advice.remedy and "cudagraph_mark_step_begin" in advice.remedy


def _check(advice: Advice) -> None:
    for text in (advice.title, advice.evidence, advice.remedy, advice.source.title):
        assert text and "\n" not in text and "None" not in text
    assert advice.source.url.startswith("https://")


def _slow_first_call(run: Run) -> None:
    """Autotuning takes its time: the first call of every process took a minute."""
    for process in run.processes:
        process.first_calls["compiled", "forward"] = e.FirstCall(side="compiled", duration_s=60.0)
    run.revision["all"] += 1
