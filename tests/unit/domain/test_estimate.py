"""Forecasts: what an earlier run took, or a plain rule, and never more exact than that."""

from __future__ import annotations

import pytest

from compilescope.domain.config import Config
from compilescope.domain.estimate import Earlier, estimate, rough, total_s
from compilescope.domain.matrix import Row
from compilescope.domain.workload import Workload


def row(mode: str = "default", **workload: object) -> Row:
    return Row(config=Config(mode=mode), workload=Workload(script="m.py", **workload), label=mode)  # type: ignore[arg-type]


def earlier(mode: str = "default", *, whole_s: float = 40.0, timed_s: float = 10.0, **workload: object) -> Earlier:
    return Earlier(
        config=Config(mode=mode),
        workload=Workload(script="m.py", **workload),  # type: ignore[arg-type]
        whole_s=whole_s,
        timed_s=timed_s,
        budget_s=10.0,
    )


def test_that_a_run_is_expected_to_take_what_the_same_took_before() -> None:
    found = estimate(row(), 10.0, [earlier(whole_s=33.0), earlier(whole_s=99.0)])

    assert (found.seconds, found.basis) == (33.0, "as before")


@pytest.mark.parametrize(("timed_s", "budget_s", "expected"), [(10.0, 30.0, 60.0), (4.0, 30.0, 40.0), (4.0, 2.0, 38.0)])
def test_that_another_budget_counts_where_the_timing_used_its_own_up(
    timed_s: float, budget_s: float, expected: float
) -> None:
    found = estimate(row(), budget_s, [earlier(whole_s=40.0, timed_s=timed_s)])

    assert found.seconds == expected


def test_that_the_same_mode_in_another_precision_is_a_similar_run() -> None:
    found = estimate(row(precision="bf16"), 10.0, [earlier(whole_s=33.0)])

    assert (found.seconds, found.basis) == (33.0, "after a similar run")


@pytest.mark.parametrize("other", [earlier("max-autotune"), earlier(phase="training"), earlier(device="cuda:0")])
def test_that_another_mode_phase_or_kind_of_device_says_nothing(other: Earlier) -> None:
    assert estimate(row(device="cpu"), 10.0, [other]).basis == "by rule"


def test_that_by_rule_autotuning_takes_longer() -> None:
    assert estimate(row("max-autotune"), 10.0, []).seconds > estimate(row(), 10.0, []).seconds


def test_that_several_cards_share_the_time() -> None:
    assert total_s([30.0, 20.0, 20.0]) == 70.0
    assert total_s([30.0, 20.0, 20.0], lanes=2) == 40.0


@pytest.mark.parametrize(("seconds", "text"), [(3, "10 s"), (44, "40 s"), (130, "2 min"), (9000, "2.5 h")])
def test_that_a_forecast_is_no_more_exact_than_it_is(seconds: float, text: str) -> None:
    assert rough(seconds) == text
