"""Timing: what a block holds, when it counts, and how it compares with a plain loop."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from compilescope.domain.events import Event, Measured, Samples, Void, Warning
from compilescope.worker.blocks import Timed
from compilescope.worker.clocks import FlushedEventClock, WallClock, clock_for
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer, undisturbed

PLAN = Plan(budget_s=0.1, interval=0.01)
RECIPE = Recipe(
    training=False, precision="fp32", device=torch.device("cpu"), loss=mean_square, optimizer=torch.optim.AdamW
)


def spin(seconds: float) -> Callable[[], None]:
    """A call that takes so long, whatever the machine does."""

    def call() -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    return call


def timed(
    eager: Callable[..., Any], compiled: Callable[..., Any], plan: Plan, compiles: Callable[[], int] = lambda: 0
) -> list[Event]:
    events: list[Event] = []
    calls = {"eager": eager, "compiled": compiled}
    sides = [(Side(name, nn.Module(), call, RECIPE), Inputs()) for name, call in calls.items()]
    Timer(sides, events.append, compiles).run(plan)
    return events


def back_to_back(events: list[Event], side: str) -> list[float]:
    return measured(events, side, "back_to_back")


def measured(events: list[Event], side: str, measure: str) -> list[float]:
    return [
        seconds
        for row in events
        if isinstance(row, Samples) and row.side == side and row.measure == measure
        for seconds in row.seconds
    ]


def test_that_each_block_is_long_enough_and_both_sides_have_the_same_number() -> None:
    events = timed(spin(1e-3), spin(2e-3), Plan(budget_s=0.6, interval=0.0))

    rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
    # a block is worth its median call, which on a busy machine is less than the mean
    assert all(n >= 5 and t * n >= 0.004 for row in rows for t, n in zip(row.seconds, row.calls, strict=True))
    assert len(back_to_back(events, "eager")) == len(back_to_back(events, "compiled")) >= 3
    assert min(back_to_back(events, "compiled")) >= 2e-3


def test_that_a_narrow_interval_ends_the_timing_before_its_budget() -> None:
    began = time.perf_counter()

    events = timed(spin(1e-3), spin(1e-3), Plan(budget_s=30, interval=0.2))

    assert next(row for row in events if isinstance(row, Measured)).stop == "interval"
    assert time.perf_counter() - began < 20


def test_that_blocks_in_which_something_compiled_are_void_and_told() -> None:
    compiles = iter(range(1_000_000))

    events = timed(spin(1e-3), spin(1e-3), Plan(budget_s=30, interval=0.01), compiles=lambda: next(compiles))

    assert any(isinstance(row, Void) and "compiled again" in row.reason for row in events)
    assert [row.code for row in events if isinstance(row, Warning)] == ["recompiles_while_timed"]


def test_that_a_model_which_settles_after_some_recompiles_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.worker.timing.VOID_S", 10.0)
    compiles = iter([*range(40), *[40] * 1_000_000])

    def seen() -> int:
        return next(compiles)

    events = timed(spin(1e-3), spin(1e-3), Plan(budget_s=2.0, interval=0.0), compiles=seen)

    assert len([row for row in events if isinstance(row, Void)]) >= 8
    assert not [row for row in events if isinstance(row, Warning)]
    assert len(back_to_back(events, "compiled")) > len([row for row in events if isinstance(row, Void)]) / 2


def test_that_blocks_with_a_loss_that_is_not_finite_are_void_and_not_told_as_recompiles() -> None:
    events: list[Event] = []
    sides = [(Side(name, nn.Module(), spin(1e-3), RECIPE), Inputs()) for name in ("eager", "compiled")]
    sides[1][0].last_loss = torch.tensor(float("nan"))

    Timer(sides, events.append, lambda: 0).run(Plan(budget_s=3.0, interval=0.01))

    assert {row.side for row in events if isinstance(row, Void)} == {"compiled"}
    assert [row.code for row in events if isinstance(row, Warning)] == ["no_step_counts"]


def test_that_calls_which_the_blocks_tell_one_by_one_are_the_latencies() -> None:
    took = iter([1e-3, 3e-3] * 1_000_000)

    events = timed(lambda: spin(next(took))(), spin(1e-3), Plan(budget_s=0.6, interval=0.0))

    # nothing is run a second time for them, and they show what a block's mean hides
    slow = [seconds for seconds in measured(events, "eager", "latency") if seconds > 2.5e-3]
    assert 0.3 < len(slow) / len(measured(events, "eager", "latency")) < 0.7
    assert [row.measure for row in events if isinstance(row, Samples)][-1] == "latency"
    calls = sum(n for row in events if isinstance(row, Samples) and row.side == "eager" for n in row.calls)
    assert len(measured(events, "eager", "latency")) == calls


def test_that_the_latencies_which_are_kept_are_a_fair_choice_of_all() -> None:
    kept, rng = Timed(side=Side("eager", nn.Module(), spin(0.0), RECIPE), call=spin(0.0)), random.Random(1)

    for first in range(0, 20_000, 50):
        kept.keep([float(first + i) for i in range(50)], rng)

    assert len(kept.latencies) == 2000
    assert sum(value >= 10_000 for value in kept.latencies) == pytest.approx(1000, abs=100)


def test_that_a_side_which_grows_faster_while_it_is_timed_keeps_its_latencies() -> None:
    # the first calls are those of the calibration, which finds them long enough to be told one by one
    made = iter(range(1_000_000))

    def faster_later() -> None:
        spin(2e-4 if next(made) < 500 else 4e-5)()

    events = timed(faster_later, spin(1e-3), Plan(budget_s=0.6, interval=0.0))

    assert min(measured(events, "eager", "latency")) < 1e-4
    calls = sum(n for row in events if isinstance(row, Samples) and row.side == "eager" for n in row.calls)
    assert len(measured(events, "eager", "latency")) == min(calls, 2000)


def test_that_calls_of_void_blocks_are_no_latencies() -> None:
    events: list[Event] = []
    sides = [(Side(name, nn.Module(), spin(1e-3), RECIPE), Inputs()) for name in ("eager", "compiled")]
    sides[1][0].last_loss = torch.tensor(float("nan"))

    Timer(sides, events.append, lambda: 0).run(Plan(budget_s=0.3, interval=0.01))

    assert not measured(events, "eager", "latency") and not measured(events, "compiled", "latency")


def test_that_short_calls_are_waited_for_in_a_pass_of_their_own() -> None:
    events = timed(spin(2e-5), spin(2e-5), Plan(budget_s=0.6, interval=0.0))

    order = [row.measure for row in events if isinstance(row, Samples)]
    assert set(order[: order.index("latency")]) == {"back_to_back"}
    assert set(order[order.index("latency") :]) == {"latency"}
    assert min(measured(events, "eager", "latency")) >= 2e-5


def test_that_slow_first_calls_after_the_other_side_do_not_decide_a_block() -> None:
    now, took = [0.0], iter([6e-3, 4e-3, 3e-3, 3e-3, 3e-3])

    def call() -> None:
        now[0] += next(took)

    block = WallClock(lambda: now[0]).time(call, 5, lambda: None, each=True)

    assert block.seconds == pytest.approx(3e-3)
    assert block.wall_s == pytest.approx(3.8e-3)
    assert block.each_s == pytest.approx([6e-3, 4e-3, 3e-3, 3e-3, 3e-3])


def test_that_no_garbage_is_collected_while_timing() -> None:
    seen: list[bool] = []

    timed(lambda: seen.append(gc.isenabled()), spin(1e-3), Plan(budget_s=0.1, interval=0.01))

    assert seen and not any(seen)
    assert gc.isenabled()


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> FlushedEventClock:
    """The clock of a CUDA device whose time stands still, but for a write over the cache, which takes 7 ms."""
    now = [0.0]

    class FakeEvent:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = now[0]

        def elapsed_time(self, end: FakeEvent) -> float:
            return (end.at - self.at) * 1e3

    def take(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=4096))
    clock = FlushedEventClock(torch.device("cpu"))
    # at least what do_bench writes
    assert clock._buffer.nbytes == 256 * 2**20
    monkeypatch.setattr(clock, "_buffer", SimpleNamespace(zero_=lambda: take(7e-3), take=take))
    return clock


def test_that_writing_over_the_l2_cache_is_no_part_of_the_time(flushed: FlushedEventClock) -> None:
    take: Any = flushed._buffer.take

    block = flushed.time(lambda: take(2e-3), calls=5, synchronize=lambda: None)

    assert (block.seconds, block.calls) == (pytest.approx(2e-3), 5)


def test_that_a_nearly_full_card_is_flushed_with_what_its_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    make = torch.empty

    def almost_full(size: int, **options: Any) -> torch.Tensor:
        if size * 4 > 8192:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return make(size, **options)

    monkeypatch.setattr(torch, "empty", almost_full)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=4096))

    assert FlushedEventClock(torch.device("cpu"))._buffer.nbytes == 4096


def test_that_a_flushed_block_is_worth_the_median_of_its_calls(flushed: FlushedEventClock) -> None:
    take: Any = flushed._buffer.take
    # the first calls after a rest are slower, and the clock falls one step in the middle
    took = iter([9e-3, 2e-3, 2e-3, 2e-3, 2.1e-3, 2.1e-3])

    block = flushed.time(lambda: take(next(took)), calls=6, synchronize=lambda: None)

    assert block.seconds == pytest.approx(2.05e-3)


def test_that_a_flush_is_told_and_no_wall_clock_with_it(flushed: FlushedEventClock) -> None:
    take: Any = flushed._buffer.take
    events: list[Event] = []
    sides = [(Side(name, nn.Module(), lambda: take(2e-3), RECIPE), Inputs()) for name in ("eager", "compiled")]

    Timer(sides, events.append, lambda: 0, clock=flushed).run(PLAN)

    # its wall clock would have the writes in it, and say nothing of the calls
    rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
    assert {(row.clock, row.wall_s) for row in rows} == {("cuda_event", ())}
    assert [row.l2_flush for row in events if isinstance(row, Measured)] == [True]


def test_that_the_cpu_has_no_l2_cache_to_flush() -> None:
    assert isinstance(clock_for(torch.device("cpu"), l2_flush=True), WallClock)
    assert [row.l2_flush for row in timed(spin(1e-3), spin(1e-3), PLAN) if isinstance(row, Measured)] == [None]


def test_that_the_collector_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError), undisturbed():
        raise ValueError

    assert gc.isenabled()
