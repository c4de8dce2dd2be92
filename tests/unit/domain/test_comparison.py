"""Verdicts and recommendations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison, judge, recommend
from compilescope.domain.config import Config
from compilescope.domain.prose import saving_text, summary
from compilescope.domain.ranking import relative
from compilescope.domain.run import Run
from compilescope.domain.standing import standing
from compilescope.domain.statistics import Interval
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]

DIFFER = e.Numerics(backend="inductor", verdict="differ", max_abs_error=0.25)
BROKEN = e.RunError(stage="compile", type="BackendCompilerFailed", message="no compiler\nmore", hint="Install g++.")


def kind(run: Run) -> str | None:
    found = judge(run)
    return found.kind if found else None


def test_that_a_run_that_goes_on_has_no_verdict(make_run: RunMaker):
    assert judge(make_run(ended=None)) is None


@pytest.mark.parametrize(("speedup", "expected"), [(1.5, "faster"), (0.8, "slower"), (1.0, "no_difference")])
def test_that_the_interval_decides_the_verdict(make_run: RunMaker, speedup: float, expected: str):
    assert kind(make_run(speedup=speedup)) == expected


def test_that_a_gain_within_the_noise_floor_is_no_difference(make_run: RunMaker):
    run = make_run(speedup=1.03, noise=0.002)

    assert kind(run) == "faster"
    found = judge(run, noise_floor=0.04)
    assert found is not None and found.kind == "no_difference"


def test_that_a_wrong_result_outweighs_a_speedup(make_run: RunMaker):
    found = judge(make_run(speedup=3.0, extra=[DIFFER]))

    assert found is not None and found.kind == "incorrect"
    assert found.summary.startswith("The compiled results are wrong: ") and "0.25" in found.summary
    assert not any("differ from eager" in reason for reason in found.reasons)


def test_that_zero_graphs_are_not_compiled_whatever_the_time(make_run: RunMaker):
    assert kind(make_run(graphs=0, speedup=1.2)) == "not_compiled"


def test_that_an_error_of_compiled_code_that_ran_is_no_failure_to_compile(make_run: RunMaker):
    error = e.RunError(stage="compile", type="_LinAlgError", message="The compiled code raised this", ran=True)
    found = judge(make_run(ended=e.Ended(outcome="failed", error=error), starts=("cold",)))

    assert found is not None and found.reasons[0].startswith("It ended while compiled code ran: ")


def test_that_a_hidden_failure_of_the_compiler_is_told_as_not_compiled(make_run: RunMaker):
    reason = "IndexError: list index out of range (hidden by torch._dynamo.config.suppress_errors)"
    failed = e.Compile(compile_id="0/0", state="failed", function="forward", reason=reason)
    found = judge(make_run(speedup=0.864, extra=[failed]))

    assert found is not None and found.kind == "not_compiled"
    assert found.summary == f"Nothing was compiled: compiling forward failed with {reason}, so the model ran eager."


def test_that_one_failed_compile_beside_others_is_told_and_no_verdict_of_its_own(make_run: RunMaker):
    failed = e.Compile(compile_id="1/0", state="failed", function="head", reason="IndexError: no", graphs=1)
    run = make_run(extra=[failed])
    found = judge(run)

    assert found is not None and found.kind == "faster"
    assert "Compiling head failed with IndexError: no: it runs eager." in found.reasons
    assert run.story is not None and run.story.graphs == 1


@pytest.mark.parametrize(
    ("entered", "limits", "expected"),
    [
        (e.Entered(calls=2, entries=0), (), "Compiled code never ran: 1 graph was captured"),
        (e.Entered(entries=0), (e.RecompileLimit(function="forward"),), "Compiled code no longer runs: 1 graph"),
        (e.Entered(entries=3), (), "Faster than eager"),
        (e.Entered(calls=0, entries=0), (), "Faster than eager"),
    ],
)
def test_that_graphs_that_no_call_enters_are_not_compiled(
    make_run: RunMaker, entered: e.Entered, limits: tuple[e.Event, ...], expected: str
):
    found = judge(make_run(extra=[*limits, entered]))

    assert found is not None and found.summary.startswith(expected)
    assert (found.kind == "not_compiled") == expected.startswith("Compiled")


def test_that_wrong_outweighs_not_compiled_and_failed_outweighs_wrong(make_run: RunMaker):
    assert kind(make_run(graphs=0, extra=[DIFFER])) == "incorrect"
    assert kind(make_run(extra=[DIFFER], ended=e.Ended(outcome="failed", error=BROKEN))) == "failed"


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (e.Ended(outcome="failed", error=BROKEN), "BackendCompilerFailed: no compiler"),
        (e.Ended(outcome="crashed", signal="SIGSEGV"), "SIGSEGV"),
        (e.Ended(outcome="timed_out"), "time limit"),
        (e.Ended(outcome="stopped"), "Stopped"),
        (e.Ended(outcome="failed"), "nothing says why"),
    ],
)
def test_that_a_failure_says_how_it_ended(make_run: RunMaker, ended: e.Ended, words: str):
    found = judge(make_run(ended=ended))

    assert found is not None and found.kind == "failed"
    assert words in found.summary
    assert "\n" not in found.summary


@pytest.mark.parametrize("outcome", ["crashed", "timed_out"])
def test_that_a_process_that_was_ended_is_told_in_the_sentence_that_knows_most(make_run: RunMaker, outcome: str):
    error = e.RunError(stage="load", type="SIGSEGV", message="It was ended in stage load.")

    found = judge(make_run(ended=e.Ended(outcome=outcome, error=error)))

    assert found is not None and found.summary == "It was ended in stage load."


def test_that_a_class_of_our_own_is_not_put_before_a_sentence_of_our_own(make_run: RunMaker):
    error = e.RunError(stage="load", type="ScriptError", message="The inputs are of type ndarray.")

    found = judge(make_run(ended=e.Ended(outcome="failed", error=error)))

    assert found is not None and found.summary == "The inputs are of type ndarray."


def test_that_a_failure_gives_its_stage_and_hint(make_run: RunMaker):
    found = judge(make_run(ended=e.Ended(outcome="failed", error=BROKEN)))

    assert found is not None
    assert any("ended while compiling" in reason for reason in found.reasons)
    assert "Install g++." in found.reasons


def test_that_too_few_calls_are_said(make_run: RunMaker):
    found = judge(make_run(blocks=0))

    assert found is not None and found.kind == "too_noisy"
    assert "Too few" in found.summary


def test_that_noise_is_not_sold_as_no_difference(make_run: RunMaker):
    found = judge(make_run(speedup=1.0, noise=0.8, blocks=20))

    assert found is not None and found.kind == "too_noisy"
    assert found.summary.startswith("Too noisy to tell")


def test_that_a_gain_which_the_interval_leaves_open_is_too_noisy_to_tell_and_not_no_difference(make_run: RunMaker):
    run = make_run(interval=(1.09, 0.995, 1.19))

    verdict, found = judge(run), recommend(Comparison(id="c", created=0.0, runs=[run]))

    assert verdict is not None and verdict.kind == "too_noisy"
    assert verdict.summary == "Too noisy to tell: between 0.995× and 1.19× of eager's speed."
    assert standing(run, verdict) == "too noisy"
    assert found is not None and summary(found).startswith("No answer yet.")
    assert summary(found).endswith("A longer measurement, or a quieter machine, could still tell otherwise.")


def test_that_no_longer_measurement_is_asked_for_where_the_timing_was_given_up(make_run: RunMaker):
    warning = e.Warning(code="no_step_counts", message="The timing was given up.", hint="Look at the loss.")
    run = make_run(interval=(1.09, 0.995, 1.19), extra=[warning])

    found = recommend(Comparison(id="c", created=0.0, runs=[run]))

    assert found is not None and summary(found).startswith("No answer yet.")
    assert summary(found).endswith("The timing was given up. Look at the loss.")


@pytest.mark.parametrize(
    ("options", "noise_floor"),
    [
        ({"interval": (1.03, 1.02, 1.04)}, 0.04),
        ({"interval": (1.5, 1.49, 1.51), "extra": [DIFFER]}, 0.005),
        ({"interval": (1.5, 1.49, 1.51), "graphs": 0}, 0.005),
        ({"interval": (1.01, 0.99, 1.03)}, 0.005),
        ({"interval": (0.8, 0.79, 0.81)}, 0.005),
    ],
    ids=["within the noise floor", "incorrect", "not compiled", "no difference", "slower"],
)
def test_that_only_what_is_faster_pays_off(make_run: RunMaker, options: dict[str, Any], noise_floor: float):
    found = judge(make_run(**options), noise_floor)

    assert found is not None and found.kind != "faster"
    assert found.cold_break_even is None and found.warm_break_even is None
    assert "pays off" not in " ".join(found.reasons)


@pytest.mark.parametrize("cache_was_empty", [None, False])
def test_that_a_first_call_with_the_users_own_cache_is_no_cold_one(make_run: RunMaker, cache_was_empty: bool | None):
    found = judge(make_run(cache_was_empty=cache_was_empty, interval=(1.5, 1.49, 1.51)))

    assert found is not None and found.kind == "faster"
    assert "First call 8.00 s with your own cache, 2.00 s in a second process." in found.reasons
    assert found.cold_break_even is None and found.warm_break_even is not None


def test_that_a_slow_first_call_with_the_users_own_cache_is_no_cold_caveat(make_run: RunMaker):
    slow = e.FirstCall(side="compiled", direction="step", duration_s=40.0)
    run = make_run(cache_was_empty=None, extra=[slow])

    found = recommend(Comparison(id="c", created=0.0, runs=[run]))

    assert found is not None and "pays off" not in summary(found)
    assert "The first call takes 40.0 s with your own cache." in found.caveats


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((1.5, 1.486, 1.514), "from 120 blocks, stopped once the interval was narrow enough."),
        (
            (1.5, 1.45, 1.55),
            "from 120 blocks; each process stopped when it expected ± 1.0 %, and together they came to ± 3.3 %.",
        ),
    ],
)
def test_that_an_interval_is_called_narrow_enough_only_where_it_came_out_so(
    make_run: RunMaker, interval: tuple[float, float, float], words: str
):
    found = judge(make_run(interval=interval))

    assert found is not None and any(words in reason for reason in found.reasons)


def test_that_nothing_is_recommended_where_no_run_finished(make_run: RunMaker):
    runs = [make_run("a", ended=e.Ended(outcome="stopped")), make_run("b", ended=e.Ended(outcome="crashed"))]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and found.config is None
    assert summary(found).startswith("Nothing can be recommended")


def test_that_reasons_carry_numbers_with_units(make_run: RunMaker):
    found = judge(make_run())

    assert found is not None
    text = " ".join(found.reasons)
    assert "3.00 ms eager" in text and "95 %" in text and "8.00 s cold" in text and "calls" in text


def test_that_processes_that_contradict_each_other_are_a_warning(make_run: RunMaker):
    slow = [
        e.Hello(start="warm"),
        *(
            e.Samples(side=side, block=block, seconds=tuple(seconds * (1 + 0.001 * (i % 3)) for i in range(10)))
            for block in range(0, 60, 10)
            for side, seconds in (("eager", 3e-3), ("compiled", 3.3e-3))
        ),
    ]

    found = judge(make_run(starts=("cold",), noise=0.001, extra=slow))

    assert found is not None and found.kind == "too_noisy"
    assert any(reason.startswith("Warning") and "warm" in reason for reason in found.reasons)


def test_that_nothing_is_recommended_before_a_run_is_over(make_run: RunMaker):
    assert recommend(Comparison(id="c", created=0.0)) is None
    assert recommend(Comparison(id="c", created=0.0, runs=[make_run(ended=None)])) is None


def test_that_the_fastest_is_recommended_with_its_line_of_code(make_run: RunMaker):
    runs = [make_run("a", speedup=1.2), make_run("b", speedup=2.0, config=Config(mode="reduce-overhead"))]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and found.run_id == "b"
    assert found.snippet == 'model = torch.compile(model, mode="reduce-overhead")'
    assert "2.0" in summary(found) and "pays off" in summary(found)


def test_that_the_simpler_of_two_equals_is_recommended(make_run: RunMaker):
    runs = [
        make_run("tuned", speedup=1.505, config=Config(mode="max-autotune"), seed=1),
        make_run("plain", speedup=1.5, seed=2),
        make_run("marked", speedup=1.5, config=Config(dynamic=True), seed=3),
    ]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and found.run_id == "plain"


def test_that_a_gain_is_recommended_which_the_ratio_shows_although_the_intervals_overlap(make_run: RunMaker):
    plain = make_run("plain", interval=(1.50, 1.45, 1.55))
    best = make_run("best", interval=(1.58, 1.54, 1.62), config=Config(mode="reduce-overhead"))
    comparison = Comparison(id="c", created=0.0, runs=[plain, best])

    found = recommend(comparison)

    assert found is not None and found.run_id == "best"
    assert "no provable gain" not in summary(found)

    # with a floor above their ratio, the simpler one is as good
    comparison.noise_floor = 0.06
    found = recommend(comparison)
    assert found is not None and found.run_id == "plain"
    assert "which is not a provable gain" in summary(found)


def test_that_leaving_it_eager_is_an_answer(make_run: RunMaker):
    runs = [
        make_run("slow", speedup=0.9),
        make_run("wrong", speedup=3.0, extra=[DIFFER], config=Config(mode="max-autotune")),
        make_run("off", graphs=0, config=Config(dynamic=True)),
    ]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and found.config is None and found.snippet == ""
    assert summary(found).startswith("Leave it eager")
    assert all(word in summary(found) for word in ("Slower", "wrong", "captured no graph"))


def test_that_what_is_not_settled_is_not_given_up(make_run: RunMaker):
    noisy, alike = make_run("noisy", speedup=1.0, noise=0.8, blocks=20), make_run("alike", speedup=1.0)

    words = [recommend(Comparison(id="c", created=0.0, runs=[run])) for run in (noisy, alike)]

    assert words[0] is not None and summary(words[0]).startswith("No answer yet.")
    assert "longer measurement" in summary(words[0])
    assert words[1] is not None and "longer measurement" not in summary(words[1])


def test_that_a_recommendation_carries_its_caveats(make_run: RunMaker):
    extra = [
        e.GraphBreak(kind="item", file="m.py", line=3),
        e.Memory(side="eager", allocated_peak_bytes=1000),
        e.Memory(side="compiled", allocated_peak_bytes=2000),
        e.CudaGraph(state="skipped", reason="mutated inputs"),
    ]

    found = recommend(Comparison(id="c", created=0.0, runs=[make_run(extra=extra)]))

    assert found is not None
    text = " ".join(found.caveats)
    assert "1 graph break" in text and "Peak memory" in text and "mutated inputs" in text


def test_that_unrest_of_the_machine_stands_beside_the_number(make_run: RunMaker):
    busy = e.Warning(code="busy_machine", message="The machine was busy with other work: load 9.0 on 2 cores.")
    run = make_run(extra=[busy])

    verdict, found = judge(run), recommend(Comparison(id="c", created=0.0, runs=[run]))

    assert verdict is not None and "Warning: The machine was busy" in " ".join(verdict.reasons)
    assert found is not None and "Warning: The machine was busy" in " ".join(found.caveats)


def test_that_another_precision_is_another_question(make_run: RunMaker):
    half = Workload(script="model.py", precision="bf16")
    runs = [make_run("a", speedup=1.2), make_run("b", speedup=1.3, seed=1), make_run("c", speedup=4.0, workload=half)]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and found.run_id == "b"
    assert "inference in fp32" in summary(found)


def test_that_a_long_list_of_losers_is_counted_and_not_recited(make_run: RunMaker):
    runs = [make_run(str(i), speedup=0.9, seed=i, starts=("cold",)) for i in range(5)]

    found = recommend(Comparison(id="c", created=0.0, runs=runs))

    assert found is not None and "of 5 configurations" in summary(found) and "5 slower" in summary(found)


def test_that_a_recommendation_says_what_a_long_job_saves(make_run: RunMaker):
    found = recommend(Comparison(id="c", created=0.0, runs=[make_run(speedup=2.0)]))

    assert found is not None and "of 10 h in eager it saves 4 h 57 min to 5 h 3 min" in summary(found)


def test_that_what_a_long_job_saves_is_as_uncertain_as_the_speedup():
    wide = saving_text(Interval(value=7.4, low=1.005, high=54.6), 33.6)

    assert wide == "; of 10 h in eager it saves 2 min 26 s to 9 h 48 min"
    assert saving_text(Interval(value=2.0, low=1.0, high=4.0), 30.0).endswith("at most 7 h 30 min")
    assert saving_text(Interval(value=1.0, low=0.999, high=1.001), 40.0) == ""


def test_that_a_ratio_of_ratios_is_less_certain_than_either():
    one, base = Interval(value=2.0, low=1.9, high=2.1), Interval(value=1.6, low=1.55, high=1.65)

    found = relative(one, base)

    assert found.value == pytest.approx(1.25)
    assert found.half_width > max(one.half_width, base.half_width)
    assert found.half_width < one.half_width + base.half_width
