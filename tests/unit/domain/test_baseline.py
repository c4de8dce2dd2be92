"""The guard against regressions: what it must say, and what it must not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from fakes.comparisons import comparison

from compilescope.domain.baseline import (
    HELD,
    INCONCLUSIVE,
    WORSE,
    baseline_json,
    baseline_sentences,
    checked_baseline,
    outcomes,
    regressions,
)
from compilescope.domain.config import Config
from compilescope.domain.errors import UsageError
from compilescope.domain.pairing import differences
from compilescope.domain.results import comparison_json

Results = dict[str, Any]


@pytest.fixture(scope="module")
def measured() -> Results:
    """A comparison of two configurations, one with CUDA graphs."""
    configs = [Config(mode="default"), Config(mode="reduce-overhead")]
    return comparison_json(comparison(configs, speedups=(1.3, 1.8), samples=60))


@pytest.fixture
def results(measured: Results) -> Results:
    return copy.deepcopy(measured)


@pytest.fixture
def baseline(measured: Results) -> Results:
    return copy.deepcopy(measured)


def with_speedup(run: Results, value: float, half: float) -> None:
    run["timing"]["speedup"] = {"value": value, "low": value - half, "high": value + half, "confidence": 0.95}
    run["timing"]["compiled_ms"]["median"] = run["timing"]["eager_ms"]["median"] / value


def test_that_a_comparison_holds_against_itself(results: Results, baseline: Results) -> None:
    assert regressions(results, baseline) == []
    assert differences(results, baseline) == []


def test_that_a_measurement_repeated_with_other_noise_holds() -> None:
    configs = [Config(mode=mode) for mode in ("default", "reduce-overhead", "max-autotune")]
    one = comparison_json(comparison(configs, speedups=(1.3, 1.8, 0.9), samples=60))
    two = comparison_json(comparison(configs[::-1], speedups=(0.9, 1.8, 1.3), samples=60))

    assert regressions(one, two) == []
    assert regressions(two, one) == []


def test_that_a_break_at_a_new_cause_is_told_with_its_place(results: Results, baseline: Results) -> None:
    baseline["runs"][0]["graph_breaks"].pop(0)

    (sentence,) = regressions(results, baseline)

    assert sentence.startswith("default: new graph break at encoder_with_branch.py:17")


def test_that_a_break_that_only_moved_to_another_line_or_folder_is_none(results: Results, baseline: Results) -> None:
    for row in results["runs"][0]["graph_breaks"]:
        row["line"] += 12
        row["file"] = "/another/checkout/" + row["file"]

    assert regressions(results, baseline) == []


def test_that_a_second_break_of_a_known_cause_is_new(results: Results, baseline: Results) -> None:
    rows = results["runs"][0]["graph_breaks"]
    rows.insert(0, rows[0] | {"line": 99})

    (sentence,) = regressions(results, baseline)

    assert "encoder_with_branch.py:99" in sentence


def test_that_a_new_recompile_is_told(results: Results, baseline: Results) -> None:
    baseline["runs"][1]["recompiles"] = []

    (sentence,) = regressions(results, baseline)

    assert sentence.startswith("reduce-overhead: new recompile of forward")


def test_that_more_recompiles_of_the_same_guard_are_told(results: Results, baseline: Results) -> None:
    results["runs"][0]["recompiles"][0]["count"] = 7

    (sentence,) = regressions(results, baseline)

    assert "recompiled 7 times, 1 in the baseline" in sentence


def test_that_a_recompile_with_other_numbers_in_its_guard_is_known(results: Results, baseline: Results) -> None:
    for side, size in ((results, 17), (baseline, 8)):
        side["runs"][0]["recompiles"][0] |= {"source": None, "guard": f"size mismatch at index 0: expected {size}"}

    assert regressions(results, baseline) == []


def test_that_a_lost_cuda_graph_is_told_with_its_reason(results: Results, baseline: Results) -> None:
    results["runs"][1]["cudagraphs"] = {"captured": False, "skips": [{"reason": "mutated inputs (1 instances)"}]}

    (sentence,) = regressions(results, baseline)

    assert sentence == "reduce-overhead: CUDA graphs are lost: mutated inputs (1 instances)."


def test_that_cuda_graphs_of_which_the_same_torch_says_nothing_any_more_are_lost(
    results: Results, baseline: Results
) -> None:
    results["runs"][1]["cudagraphs"] = {"captured": None, "skips": []}

    assert regressions(results, baseline) == ["reduce-overhead: CUDA graphs are lost."]

    # another one may not tell, and where nothing was captured nothing could be
    baseline["environment"]["torch"] = "2.6.0"
    assert regressions(results, baseline) == []


def test_that_wrong_results_are_told(results: Results, baseline: Results) -> None:
    results["runs"][0]["numerics"] |= {"verdict": "differ", "max_abs_error": 0.25}

    assert regressions(results, baseline) == ["default: results differ from eager by up to 0.25."]


def test_that_a_slowdown_beyond_both_intervals_is_told(results: Results, baseline: Results) -> None:
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)

    (sentence,) = regressions(results, baseline)

    assert sentence == ("default: the speedup over eager fell from 1.30× (1.290 to 1.310) to 1.20× (1.190 to 1.210).")


@pytest.mark.parametrize(("now", "before"), [((1.27, 0.03), (1.30, 0.03)), ((1.20, 0.2), (1.30, 0.01))])
def test_that_a_slowdown_within_either_interval_is_not_told(
    results: Results, baseline: Results, now: tuple[float, float], before: tuple[float, float]
) -> None:
    with_speedup(results["runs"][0], *now)
    with_speedup(baseline["runs"][0], *before)

    assert regressions(results, baseline) == []


def test_that_a_sure_slowdown_below_the_noise_floor_is_not_told(results: Results, baseline: Results) -> None:
    with_speedup(results["runs"][0], 1.296, 0.001)
    with_speedup(baseline["runs"][0], 1.300, 0.001)

    assert regressions(results, baseline) == []


def test_that_a_faster_eager_is_no_slowdown(results: Results, baseline: Results) -> None:
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)
    same = baseline["runs"][0]["timing"]["compiled_ms"]["median"]
    results["runs"][0]["timing"]["compiled_ms"]["median"] = same

    assert regressions(results, baseline) == []


def test_that_a_slowdown_on_another_machine_is_judged_by_its_ratio(results: Results, baseline: Results) -> None:
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)
    results["environment"]["device"] = "NVIDIA B300"
    results["runs"][0]["timing"]["compiled_ms"]["median"] *= 0.5

    assert len(regressions(results, baseline)) == 1
    assert "The device differs: NVIDIA B300 now, NVIDIA H200 in the baseline." in differences(results, baseline)


def test_that_a_run_that_fails_now_is_told_once(results: Results, baseline: Results) -> None:
    results["runs"][0] |= {"outcome": "failed", "error": {"message": "No kernel\nimage"}, "graph_breaks": []}

    assert regressions(results, baseline) == ["default: failed, and finished in the baseline: No kernel."]


def test_that_nothing_compiled_is_told(results: Results, baseline: Results) -> None:
    results["runs"][0]["verdict"]["kind"] = "not_compiled"

    assert regressions(results, baseline) == ["default: nothing is compiled any more."]


def test_that_runs_the_baseline_lacks_are_named_and_not_judged(results: Results, baseline: Results) -> None:
    baseline["runs"] = baseline["runs"][:1]

    assert regressions(results, baseline) == []
    assert differences(results, baseline) == [
        "The baseline has no such run as reduce-overhead; nothing was compared for it."
    ]


def test_that_other_input_sizes_are_another_run(results: Results, baseline: Results) -> None:
    results["workload"]["inputs"][0]["shape"] = [1, 1, 512]
    results["runs"][0]["graph_breaks"] = []

    assert regressions(results, baseline) == []


@pytest.mark.parametrize("key", ["train_mode", "grad_mode", "threads"])
def test_that_another_way_to_run_the_model_is_another_run(results: Results, baseline: Results, key: str) -> None:
    baseline["workload"][key] = "other"
    results["runs"][0]["graph_breaks"] = []

    assert len(differences(results, baseline)) == 1


def test_that_a_real_slowdown_of_a_tenth_is_caught(results: Results, baseline: Results) -> None:
    # intervals of ± 2 % on both sides, and of ± 5 %, which overlap end to end
    for share in (0.02, 0.05):
        with_speedup(baseline["runs"][0], 1.3, share * 1.3)
        with_speedup(results["runs"][0], 0.9 * 1.3, share * 0.9 * 1.3)

        row = outcomes(results, baseline)[0]

        assert row.outcome == WORSE
        assert row.change and row.change.value == pytest.approx(0.9) and row.change.high < 1


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ((4.0, 0.32, 13.6), (9.0, 8.9, 9.1)),
        ((1.0, 0.88, 1.12), (1.0, 0.99, 1.01)),
        ((1.0, 0.99, 1.01), (2.0, 0.5, 9.0)),
    ],
)
def test_that_what_is_too_wide_to_exclude_a_loss_is_inconclusive(
    results: Results, baseline: Results, now: tuple[float, ...], before: tuple[float, ...]
) -> None:
    for side, speedup in ((results, now), (baseline, before)):
        side["runs"][0]["timing"]["speedup"] = dict(zip(("value", "low", "high"), speedup, strict=True))

    found = baseline_json(results, baseline, "main.json")

    assert found["outcome"] == INCONCLUSIVE and found["runs"][1]["outcome"] == HELD
    said = " ".join(baseline_sentences(found))
    assert "INCONCLUSIVE (1 held, 1 inconclusive)" in said and "to exclude a loss of 10" in said
    assert "Nothing has become worse" not in said
    assert regressions(results, baseline) == []


def test_that_a_run_without_a_speedup_on_one_side_is_inconclusive(results: Results, baseline: Results) -> None:
    results["runs"][0]["timing"]["speedup"] = None

    (row, _) = outcomes(results, baseline)

    assert row.outcome == INCONCLUSIVE and row.reasons == ("there is no speedup now.",)
    assert outcomes(baseline, results)[0].reasons == ("there is no speedup in the baseline.",)


def test_that_what_had_no_speed_to_lose_is_held(results: Results, baseline: Results) -> None:
    for side in (results, baseline):
        side["runs"][0] |= {"outcome": "failed", "error": {"message": "No kernel"}, "timing": {}}

    assert [row.outcome for row in outcomes(results, baseline)] == [HELD, HELD]


def test_that_a_faster_eager_or_machine_leaves_the_speed_open(results: Results, baseline: Results) -> None:
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)
    results["runs"][0]["timing"]["compiled_ms"]["median"] = baseline["runs"][0]["timing"]["compiled_ms"]["median"]

    row = outcomes(results, baseline)[0]

    assert row.outcome == INCONCLUSIVE and "a compiled call takes no longer" in row.reasons[0]


@pytest.mark.parametrize("key", ["queued", "restored"])
def test_that_runs_that_were_timed_in_another_way_are_not_compared(
    results: Results, baseline: Results, key: str
) -> None:
    for side, value in ((results, True), (baseline, False)):
        for run in side["runs"]:
            run["timing"][key] = value

    assert outcomes(results, baseline) == []
    assert len(differences(results, baseline)) == 2
    found = baseline_json(results, baseline, "main.json")
    assert found["outcome"] == WORSE and "Nothing could be compared with main.json" in baseline_sentences(found)[0]


def with_flush(side: Results, value: bool | None) -> None:
    for run in side["runs"]:
        run["timing"]["l2_flush"] = value


def test_that_a_flushed_cache_is_no_slowdown_beside_one_that_was_not(results: Results, baseline: Results) -> None:
    with_flush(results, False)
    with_flush(baseline, True)
    with_speedup(results["runs"][0], 1.6, 0.01)
    with_speedup(baseline["runs"][0], 2.0, 0.01)

    assert regressions(results, baseline) == []
    assert outcomes(results, baseline) == []
    assert differences(results, baseline) == [
        "The L2 cache between calls differs: left as it is now, flushed in the baseline.",
        "The baseline has no such run as default, reduce-overhead; nothing was compared for it.",
    ]


def test_that_a_run_that_was_not_timed_is_compared_whatever_the_flush(results: Results, baseline: Results) -> None:
    with_flush(results, None)
    with_flush(baseline, True)
    results["runs"][0] |= {"outcome": "failed", "error": {"message": "No kernel"}, "graph_breaks": []}

    assert regressions(results, baseline) == ["default: failed, and finished in the baseline: No kernel."]


def test_that_a_script_with_other_arguments_is_another_run(results: Results, baseline: Results) -> None:
    results["workload"]["arguments"] = ["--size", "a b"]
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)

    assert regressions(results, baseline) == []
    assert differences(results, baseline)[0] == (
        "The script's arguments differ: --size 'a b' now, none in the baseline."
    )


def test_that_a_file_from_before_arguments_were_told_is_still_compared(results: Results, baseline: Results) -> None:
    results["workload"]["arguments"] = ["small"]
    del baseline["workload"]["arguments"]
    with_speedup(results["runs"][0], 1.2, 0.01)
    with_speedup(baseline["runs"][0], 1.3, 0.01)

    assert len(regressions(results, baseline)) == 1
    assert differences(results, baseline) == []


DAMAGE: list[dict[str, Any]] = [
    {"runs": [{}]},
    {"runs": [1]},
    {"runs": [{"config": "default"}]},
    {"runs": [{"config": {}, "outcome": "finished", "timing": [1]}]},
    {"runs": [{"config": {}, "outcome": "finished", "graph_breaks": [1]}]},
    {"runs": [{"config": {}, "outcome": "finished", "recompiles": [{"count": "x"}]}]},
    {"runs": [{"config": {}, "outcome": "finished", "cudagraphs": [1]}]},
    {"runs": [], "environment": "torch"},
    {"runs": [], "noise_floor": "x"},
    {"runs": [{"config": {}}], "workload": {"inputs": [1]}},
    {"runs": [{"config": {}}], "workload": {"arguments": [1]}},
    {"runs": [{"config": {}, "timing": {"l2_flush": "x"}}]},
]


@pytest.mark.parametrize("value", DAMAGE, ids=str)
def test_that_a_damaged_baseline_is_refused_before_anything_is_measured(value: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"old\.json is damaged"):
        checked_baseline({"schema": 1} | value, "old.json")


@pytest.mark.parametrize("value", [None, [], {}, {"schema": 1}, {"schema": 2, "runs": []}])
def test_that_another_file_is_no_baseline(value: object) -> None:
    with pytest.raises(UsageError, match=r"old\.json"):
        checked_baseline(value, "old.json")
