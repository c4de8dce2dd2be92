"""The interval of a speedup, held against simulations and against series recorded on a real machine."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import variance

import pytest

from compilescope.domain import resampling, statistics
from compilescope.domain.resampling import log_ratio_variance, ratio_interval
from compilescope.domain.statistics import (
    Interval,
    Pairs,
    difference,
    disagree,
    expected_half_width,
    is_settled,
    quick_interval,
)

SERIES = {"cuda_event": "series_h200.json", "wall": "series_cpu.json"}
BESIDE_ITSELF = {"cuda_event": ("mlp", "pointwise"), "wall": ("products",)}
# of log ratios between processes of these functions
SPREAD = {"cuda_event": 0.0005, "wall": 0.003}
HERE = Path(__file__).parent
RECORDED = {clock: json.loads((HERE / name).read_text())["series"] for clock, name in SERIES.items()}


def test_that_median_and_quantile_are_the_textbook_ones():
    values = [4.0, 1.0, 3.0, 2.0]

    assert statistics.median(values) == 2.5
    assert statistics.median([5.0, 1.0, 9.0]) == 5.0
    assert statistics.quantile(values, 0.0) == 1.0
    assert statistics.quantile(values, 0.5) == 2.5
    assert statistics.quantile(values, 1.0) == 4.0
    assert statistics.quantile([7.0], 0.95) == 7.0


def test_that_the_estimate_is_the_ratio_of_the_medians():
    pairs = [Pairs(eager=[2.0] * 20, compiled=[1.0] * 20), Pairs(eager=[8.0] * 20, compiled=[2.0] * 20)]

    found = ratio_interval(pairs)

    assert found is not None
    assert found.value == pytest.approx(8**0.5)


def test_that_few_pairs_give_no_interval():
    assert ratio_interval([]) is None
    assert ratio_interval([Pairs(eager=[1.0], compiled=[1.0]), Pairs(eager=[1.0], compiled=[1.0])]) is None
    assert quick_interval(Pairs(eager=[1.0, 1.0], compiled=[1.0, 1.0])) is None


def test_that_a_clear_gain_shows_with_two_calls_a_process():
    pairs = [Pairs(eager=[2.0, 2.02], compiled=[1.0, 1.01]), Pairs(eager=[2.01, 2.0], compiled=[0.99, 1.0])]

    assert difference(ratio_interval(pairs)) == "faster"


def test_that_the_same_seed_gives_the_same_interval(noisy_process: Callable[..., Pairs]):
    pairs = [noisy_process(random.Random(start)) for start in (1, 2)]

    assert ratio_interval(pairs, seed=3) == ratio_interval(pairs, seed=3)


def test_that_identical_values_do_not_divide_by_zero():
    pairs = [Pairs(eager=[1.0] * 30, compiled=[1.0] * 30)] * 2

    found = ratio_interval(pairs)

    assert found is not None
    assert found.contains(1.0)
    assert difference(found) is None


def test_that_an_interval_spans_processes_that_contradict_each_other(noisy_process: Callable[..., Pairs]):
    rng = random.Random(4)
    pairs = [noisy_process(rng, ratio=1.10, noise=0.002), noisy_process(rng, ratio=0.95, noise=0.002)]

    found = ratio_interval(pairs)

    assert disagree(pairs)
    assert found is not None
    assert found.low < 0.955 and found.high > 1.095
    assert difference(found) is None


def test_that_a_speed_of_the_machine_that_both_sides_share_leaves_the_interval_as_it_is(
    noisy_process: Callable[..., Pairs],
):
    slow, fast = ([noisy_process(random.Random(i), ratio=1.4, common=0.0) for i in (8, 9)] for _ in range(2))
    fast[1] = Pairs(eager=[x / 1.5 for x in fast[1].eager], compiled=[x / 1.5 for x in fast[1].compiled])

    found, other = ratio_interval(slow), ratio_interval(fast)

    assert found is not None and other is not None
    assert found.half_width == pytest.approx(other.half_width, rel=1e-6)


def test_that_one_process_alone_is_less_certain_than_two_that_agree(noisy_process: Callable[..., Pairs]):
    one, two = (noisy_process(random.Random(start)) for start in (5, 6))

    alone, both = ratio_interval([one]), ratio_interval([one, two])

    assert alone is not None and both is not None
    assert alone.half_width > both.half_width


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.92, 1.09, True), (0.995, 1.19, False), (1.0, 1.11, False), (0.85, 1.0, False), (0.7, 1.4, False)],
)
def test_that_nothing_differs_only_where_both_ends_lie_near_1(low: float, high: float, expected: bool):
    assert is_settled(Interval(value=math.sqrt(low * high), low=low, high=high)) is expected


def test_that_a_difference_below_the_noise_floor_is_none():
    assert difference(Interval(value=1.004, low=1.003, high=1.005)) is None
    assert difference(Interval(value=1.02, low=0.99, high=1.05)) is None
    assert difference(Interval(value=1.02, low=1.01, high=1.03)) == "faster"
    assert difference(Interval(value=0.98, low=0.97, high=0.99)) == "slower"
    assert difference(Interval(value=1.02, low=1.01, high=1.03), noise_floor=0.03) is None
    assert difference(None) is None


def test_that_a_function_beside_itself_is_called_different_at_most_twice_in_a_hundred(
    noisy_process: Callable[..., Pairs],
):
    rng = random.Random(11)

    called = [difference(_measured(noisy_process, rng, noise=0.015, differential=0.001)) for _ in range(100)]

    assert sum(found is not None for found in called) <= 2


def test_that_a_slowdown_of_two_percent_is_called_in_95_of_a_hundred(noisy_process: Callable[..., Pairs]):
    rng = random.Random(12)

    called = [
        difference(_measured(noisy_process, rng, ratio=1 / 1.02, noise=0.012, differential=0.001)) for _ in range(100)
    ]

    assert called.count("slower") >= 95
    assert called.count("faster") == 0


@pytest.mark.parametrize(
    ("noise", "differential", "common"),
    [
        (0.01, 0.0, 0.015),
        (0.01, 0.005, 0.015),
        (0.02, 0.01, 0.015),
        (0.005, 0.005, 0.015),
        (0.01, 0.005, 0.3),
    ],
)
def test_that_the_interval_holds_the_true_speedup(
    noisy_process: Callable[..., Pairs], noise: float, differential: float, common: float
):
    rng = random.Random(13)

    intervals = [
        _measured(noisy_process, rng, ratio=1.4, noise=noise, differential=differential, common=common)
        for _ in range(40)
    ]

    assert sum(found.contains(1.4) for found in intervals) >= 34


@pytest.mark.parametrize("clock", RECORDED)
def test_that_a_recorded_function_beside_itself_is_not_called_different(clock: str):
    rng = random.Random(14)

    called = [difference(_resampled(clock, rng)) for _ in range(100)]

    assert sum(found is not None for found in called) <= 2


@pytest.mark.parametrize(("clock", "least"), [("cuda_event", 95), ("wall", 85)])
def test_that_two_percent_are_found_in_resampled_recordings(clock: str, least: int):
    rng = random.Random(15)

    called = [difference(_resampled(clock, rng, slowdown=1.02)) for _ in range(100)]

    assert called.count("slower") >= least


def test_that_recorded_comparisons_of_a_launch_bound_model_hold_their_common_median():
    series = [_recorded(row["compiled"], "cuda_event") for row in RECORDED["cuda_event"]["launches"]]

    intervals = [ratio_interval(both) for both in zip(series[::2], series[1::2], strict=True)]

    common = statistics.median([found.value for found in intervals if found])
    held = [found is not None and found.contains(common) for found in intervals]
    assert sum(held) >= 0.9 * len(held)


def test_that_recorded_pairs_of_processes_agree_on_one_speedup():
    series = [row["compiled"] for row in RECORDED["cuda_event"]["mlp"]]
    ratios = [statistics.median(eager) / statistics.median(compiled) for eager, compiled in series]
    common = statistics.geometric_mean(ratios)

    intervals = [
        ratio_interval([_recorded(row, "cuda_event") for row in (one, two)])
        for i, one in enumerate(series)
        for two in series[i + 1 :]
    ]

    assert all(found is not None and found.contains(common) for found in intervals)


def test_that_the_quick_interval_covers_within_a_process(noisy_process: Callable[..., Pairs]):
    rng = random.Random(16)

    intervals = [quick_interval(pairs) for pairs in (noisy_process(rng, ratio=1.2) for _ in range(100))]

    assert sum(found is not None and found.contains(1.2) for found in intervals) >= 90


def test_that_one_process_foretells_the_whole_interval(noisy_process: Callable[..., Pairs]):
    rng = random.Random(17)
    shares = []
    for _ in range(20):
        one, two = (noisy_process(rng, ratio=1.3) for _ in range(2))
        whole = ratio_interval([one, two], resamples=100)
        expected = expected_half_width(one)
        assert whole is not None and expected is not None
        shares.append(whole.half_width / expected)

    assert 0.7 < statistics.median(shares) < 1.7


def _measured(noisy_process: Callable[..., Pairs], rng: random.Random, **options: float) -> Interval:
    found = ratio_interval([noisy_process(rng, **options) for _ in range(2)], resamples=100)
    assert found is not None
    return found


def _recorded(row: Sequence[Sequence[float]], clock: str) -> Pairs:
    return Pairs(eager=row[0], compiled=row[1], clock=clock)


def _resampled(clock: str, rng: random.Random, slowdown: float = 1.0) -> Interval | None:
    """Two processes drawn from the recordings of a function beside itself, each as long as it was and made of runs of
    five neighbouring pairs. Their own ratio, which holds the noise of the recording, gives way to a spread between
    processes as it was seen."""
    drawn = []
    for row in rng.sample(RECORDED[clock][rng.choice(BESIDE_ITSELF[clock])], 2):
        eager, other = row["same"]
        own = math.exp(_recorded(row["same"], clock).log_ratio + rng.gauss(0, SPREAD[clock]))
        starts = [rng.randrange(len(eager) - 5) for _ in range(len(eager) // 5)]
        drawn.append(
            Pairs(
                eager=[value for start in starts for value in eager[start : start + 5]],
                compiled=[own * slowdown * value for start in starts for value in other[start : start + 5]],
                clock=clock,
            )
        )
    return ratio_interval(drawn, resamples=100)


def test_that_calm_processes_on_a_gpu_are_trusted_further_than_on_a_cpu(noisy_process: Callable[..., Pairs]):
    pairs = [noisy_process(random.Random(start), noise=0.001) for start in (24, 25)]

    def half_width(clock: str) -> float:
        found = ratio_interval([dataclasses.replace(process, clock=clock) for process in pairs])
        assert found is not None
        return found.half_width

    assert half_width("wall") > 1.3 * half_width("cuda_event")
    assert half_width("of another version") == half_width("wall")


def test_that_scatter_widens_the_interval_of_unlike_sides_and_not_of_equal_ones(noisy_process: Callable[..., Pairs]):
    def half_width(ratio: float, noise: float) -> float:
        rng = random.Random(23)
        return _measured(noisy_process, rng, ratio=ratio, noise=noise, blocks=1000, memory=0.0).half_width

    # with a thousand blocks the standard error is small, and yet processes may differ
    assert half_width(1.5, 0.05) > 2 * half_width(1.0, 0.05)
    assert half_width(1.5, 0.001) == pytest.approx(half_width(1.0, 0.001), rel=0.1)


@pytest.mark.parametrize("size", [10, 61, 250])
def test_that_the_bootstrap_in_arrays_spreads_as_one_written_out_does(size: int, noisy_process: Callable[..., Pairs]):
    pairs = noisy_process(random.Random(size), blocks=size)
    run = max(1, round(size ** (1 / 3)))
    rng = random.Random(18)
    written_out = []
    for _ in range(2000):
        starts = [rng.randrange(size - run + 1) for _ in range(-(-size // run))]
        drawn = [both for start in starts for both in pairs.neighbours[start : start + run]]
        written_out.append(statistics.median(value for both in drawn for value in both))

    found = log_ratio_variance(pairs, random.Random(19), 2000)

    assert found == pytest.approx(variance(written_out), rel=0.15)


def test_that_a_long_series_is_drawn_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch):
    rng = random.Random(20)
    eager, compiled = ([rng.uniform(1.0, 1.1) for _ in range(50)] for _ in range(2))
    pairs = Pairs(eager=eager, compiled=compiled)
    at_once = log_ratio_variance(pairs, random.Random(21), 40)

    monkeypatch.setattr(resampling, "MOST_VALUES", 300)

    assert log_ratio_variance(pairs, random.Random(21), 40) == pytest.approx(at_once)


def test_that_a_machine_whose_speed_wanders_changes_the_medians_and_not_the_ratio():
    # the machine falls to half its speed between the two blocks of the middle pair
    pairs = Pairs(eager=[3e-3] * 60 + [6e-3] * 59, compiled=[2e-3] * 59 + [4e-3] * 60)

    found = ratio_interval([pairs, pairs])

    assert statistics.median(pairs.eager) / statistics.median(pairs.compiled) == pytest.approx(0.75)
    assert found is not None
    assert found.value == pytest.approx(1.5)
    assert found.half_width < 0.01


def test_that_each_compiled_block_is_compared_with_the_eager_blocks_around_it():
    pairs = Pairs(eager=[1.0, 2.0, 4.0], compiled=[1.0, 1.0, 1.0])

    assert [math.exp(ratio) for both in pairs.neighbours for ratio in both] == pytest.approx([1, 2, 2, 4, 4, 4])
    assert pairs.log_ratio == pytest.approx(math.log(2) * 1.5)


def test_that_an_interval_without_a_spread_shows_no_difference():
    for value in (1.0, 0.9, 1.5):
        assert statistics.difference(Interval(value=value, low=value, high=value)) is None
