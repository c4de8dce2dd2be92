"""When compiling pays off: a number only where all that it comes from carries one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from compilescope.domain import events as e
from compilescope.domain.breakeven import BreakEven, break_even, break_even_text
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval, Pairs
from compilescope.domain.verdict import Verdict, judge
from compilescope.domain.workload import Workload

SURE = Interval(value=3e-3, low=3e-3, high=3e-3)
SPEEDUP = Interval(value=1.5, low=1.5, high=1.5)


def evens(eager: Interval = SURE, speedup: Interval = SPEEDUP, first_call_s: float = 8.0) -> BreakEven:
    found = break_even(first_call_s, eager, speedup)
    assert found is not None
    return found


def judged(run: Run) -> Verdict:
    found = judge(run)
    assert found is not None
    return found


def test_that_a_first_call_timed_once_leaves_a_fifth_open() -> None:
    found = evens()

    # 8 s less the call itself, at 1 ms saved a call
    assert found.calls == pytest.approx(7998)
    assert found.calls_low == pytest.approx(8000 / 1.2, rel=1e-3)
    assert found.calls_high == pytest.approx(8000 * 1.2, rel=1e-3)
    assert found.is_known and found.seconds == pytest.approx(24, rel=1e-3)


def test_that_the_spread_of_eager_and_of_the_speedup_add_to_it() -> None:
    loose_eager = evens(eager=Interval(value=3e-3, low=2.5e-3, high=3.6e-3))
    loose_speedup = evens(speedup=Interval(value=1.5, low=1.4, high=1.6))

    for found in (loose_eager, loose_speedup):
        assert found.calls_low < evens().calls_low and found.calls_high > evens().calls_high
    assert math.log(loose_eager.calls_high / loose_eager.calls) == pytest.approx(math.sqrt(2) * math.log(1.2), rel=0.01)


def test_that_there_is_none_where_nothing_is_shown_to_be_saved() -> None:
    assert break_even(8.0, SURE, Interval(value=1.1, low=0.99, high=1.2)) is None
    assert break_even(None, SURE, SPEEDUP) is None and break_even(8.0, None, SPEEDUP) is None


def test_that_a_range_of_more_than_a_factor_of_two_is_not_known() -> None:
    found = evens(speedup=Interval(value=1.05, low=1.02, high=1.08))

    assert not found.is_known
    assert break_even_text(found) == "not known: between 35\u202f000 and 140\u202f000 calls"


def test_that_an_unknown_break_even_has_its_bounds_and_no_number(make_run: Callable[..., Run]) -> None:
    found = judged(make_run(interval=(1.05, 1.02, 1.08)))

    assert found.kind == "faster" and found.cold_break_even is None
    assert any("pays off somewhere between" in reason for reason in found.reasons)


def test_that_eager_that_differs_between_processes_widens_it() -> None:
    def told(warm_scale: float) -> Verdict:
        run = Run("r", config=Config(), workload=Workload(script="model.py"))
        for start, scale in (("cold", 1.0), ("warm", warm_scale)):
            run.apply_all([e.Hello(start=start, cache_was_empty=start == "cold")])
            run.apply(e.Compile(compile_id="0/0", state="end", graphs=1, ops=3))
            run.apply(e.FirstCall(side="compiled", duration_s=8.0))
            for side, seconds in (("eager", 3e-3 * scale), ("compiled", 2e-3 * scale)):
                run.apply(e.Samples(side=side, clock="wall", seconds=(seconds,) * 30))
        run.apply(e.Ended())
        return judged(run)

    calm, restless = told(1.0), told(1.8)
    assert calm.cold_break_even is not None
    assert restless.kind == "faster" and restless.cold_break_even is None


def test_that_the_model_s_own_part_is_told_beside_what_any_model_pays(make_run: Callable[..., Run]) -> None:
    # the fake's first calls end at second 0
    header = e.FirstUse(at=-0.5, name="C++ header", duration_s=6.0)
    found = judged(make_run(extra=[header]))

    cold, own = found.break_evens["cold"], found.break_evens["own"]
    assert cold.calls == pytest.approx(8000, rel=0.05) and own.calls == pytest.approx(2000, rel=0.05)
    assert "the model's own part of the first call after 2\u202f000 calls" in found.pays_off
    assert "own" not in judged(make_run()).break_evens


def test_that_repeated_measurements_of_the_same_have_intervals_that_overlap(
    noisy_process: Callable[..., Pairs],
) -> None:
    """Ten runs on a shared machine whose speed and compile time wander from run to run and process to process."""
    for seed in range(6):
        rng = random.Random(seed)
        found = []
        for _ in range(10):
            run = Run("r", config=Config(), workload=Workload(script="model.py"))
            level = rng.gauss(0, 0.03)
            for start in ("cold", "warm"):
                pairs = noisy_process(rng, ratio=1.4, common=0.03, differential=0.01)
                run.apply_all([e.Hello(start=start, cache_was_empty=start == "cold")])
                run.apply(e.Compile(compile_id="0/0", state="end", graphs=1, ops=3))
                run.apply(e.FirstCall(side="compiled", duration_s=8.0 * math.exp(level + rng.gauss(0, 0.1))))
                for side, seconds in (("eager", pairs.eager), ("compiled", pairs.compiled)):
                    told = tuple(value * math.exp(level) for value in seconds)
                    run.apply(e.Samples(side=side, clock="wall", seconds=told))
            run.apply(e.Ended())
            found.append(judged(run).cold_break_even)
        known = [even for even in found if even is not None]
        assert len(known) >= 8
        apart = sum(
            one.calls_low > other.calls_high or other.calls_low > one.calls_high
            for one, other in itertools.combinations(known, 2)
        )
        assert apart <= 5
