"""What a graph break costs: what it prevents, what torch measured, and never a time that nobody measured."""

from __future__ import annotations

from compilescope.domain import events as e
from compilescope.domain.breakcost import costs
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload

AT = {"file": "model.py", "line": 12, "function": "forward"}


def sentences(*events: e.Event, **of_break: bool) -> str:
    run = Run("one", config=Config(), workload=Workload(script="model.py"))
    run.apply_all([e.Hello(), *events, e.GraphBreak(kind="item", **AT, **of_break)])  # type: ignore[arg-type]
    assert run.story is not None
    (row,) = run.story.graph_breaks.values()
    return " ".join(costs(run, row))


def compiled(compile_id: str, latency_us: float | None, guards: int = 9) -> e.Compile:
    return e.Compile(state="end", compile_id=compile_id, guards=guards, guard_latency_us=latency_us)


def test_that_a_break_says_what_it_prevents_and_that_its_time_is_not_measured() -> None:
    text = sentences()

    assert "Nothing is fused across this line" in text
    assert text.endswith("is not measured.")
    assert "CUDA graph" not in text and "pieces" not in text


def test_that_the_checks_are_those_of_the_last_version_of_each_piece_as_torch_measured_them() -> None:
    text = sentences(compiled("0/0", 90.0), compiled("0/1", 70.0), compiled("1/0", 40.0), compiled("2/0", None, 0))

    assert "2 compiled pieces" in text
    assert "(40.0–70.0 µs, as torch measured it" in text


def test_that_pieces_without_a_measured_latency_have_no_number() -> None:
    text = sentences(compiled("0/0", None), compiled("1/0", None))

    assert "2 compiled pieces; the guards of each are checked first. " in text


def test_that_a_skipped_function_is_told_to_run_eager_as_a_whole() -> None:
    text = sentences(frame_skipped=True, in_loop=True)

    assert "The function forward runs eager as a whole" in text
    assert "round" not in text


def test_that_a_break_of_a_run_without_a_graph_leaves_no_compiled_code() -> None:
    text = sentences(e.FirstCall(side="compiled", duration_s=1.0), in_loop=True)

    assert "all of it runs eager" in text
    assert "compiled code" not in text and "every round" not in text


def test_that_a_break_between_recorded_cuda_graphs_says_so() -> None:
    assert "A CUDA graph ends here" in sentences(e.CudaGraph(state="recorded"))
    assert "A CUDA graph ends here" not in sentences(e.CudaGraph(state="skipped"))
