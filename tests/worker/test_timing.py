"""Timing: what a block holds, when it counts, and how it compares with a plain loop."""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from compilescope.domain.events import Event, Measured, Samples, Void, Warning
from compilescope.worker import clocks
from compilescope.worker.blocks import Timed, undisturbed
from compilescope.worker.clocks import EventClock, FlushedEventClock, WallClock, clock_for
from compilescope.worker.inputs import Inputs
from compilescope.worker.state import State, Undo
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PLAN = Plan(budget_s=0.1, interval=0.01)
RECIPE = Recipe(
    training=False, precision="fp32", device=torch.device("cpu"), loss=mean_square, optimizer=torch.optim.AdamW
)


class Played:
    """A device with a queue: calls return once they are launched, and their work is done one after the other.

    Host and device have one clock, which stands still but for what is played. `rests`: how long the device had nothing
    to do before each piece of work; `most_ahead`: for how long it had work at the most.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = self.device = 0.0
        self.rests: list[float] = []
        self.most_ahead = 0.0
        played = self

        class PlayedEvent:
            def __init__(self, *, enable_timing: bool = False) -> None:  # noqa: ARG002 - of a played one
                self.at = 0.0

            def record(self) -> None:
                self.at = max(played.host, played.device)

            def synchronize(self) -> None:
                played.host = max(played.host, self.at)

            def elapsed_time(self, end: PlayedEvent) -> float:
                return (end.at - self.at) * 1e3

        monkeypatch.setattr(torch.cuda, "Event", PlayedEvent)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=4096))
        for module in ("timing", "clocks", "filling", "voids"):
            monkeypatch.setattr(f"compilescope.worker.{module}.perf_counter", self.read)

    def read(self) -> float:
        self.host += 1e-7
        return self.host

    def spin(self, seconds: float) -> Callable[[], None]:
        """A call that keeps the host so long."""

        def call() -> None:
            self.host += seconds

        return call

    def work(self, *, launch_s: float, work_s: float) -> None:
        self.host += launch_s
        self.rests.append(max(self.host - self.device, 0.0))
        self.device = max(self.host, self.device) + work_s
        self.most_ahead = max(self.most_ahead, self.device - self.host)

    def wait(self) -> None:
        self.host = max(self.host, self.device)

    def side(self, name: str, *, launch_s: float, work_s: float) -> tuple[Side, Inputs]:
        side = Side(name, nn.Module(), lambda: self.work(launch_s=launch_s, work_s=work_s), RECIPE)
        side.synchronize = self.wait  # type: ignore[method-assign]
        return side, Inputs()


def timed(
    played: Played,
    eager: Callable[..., Any],
    compiled: Callable[..., Any],
    plan: Plan,
    compiles: Callable[[], int] = lambda: 0,
) -> list[Event]:
    """On a processor."""
    events: list[Event] = []
    Timer(sides_of(eager, compiled), events.append, compiles, clock=WallClock(played.read)).run(plan)
    return events


def sides_of(eager: Callable[..., Any], compiled: Callable[..., Any]) -> list[tuple[Side, Inputs]]:
    calls = {"eager": eager, "compiled": compiled}
    return [(Side(name, nn.Module(), call, RECIPE), Inputs()) for name, call in calls.items()]


def back_to_back(events: list[Event], side: str) -> list[float]:
    return measured(events, side, "back_to_back")


def measured(events: list[Event], side: str, measure: str) -> list[float]:
    return [
        seconds
        for row in events
        if isinstance(row, Samples) and row.side == side and row.measure == measure
        for seconds in row.seconds
    ]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(monkeypatch)


def test_that_each_block_is_long_enough_and_both_sides_have_the_same_number(played: Played) -> None:
    events = timed(played, played.spin(1e-3), played.spin(2e-3), Plan(budget_s=0.6, interval=0.0))

    rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
    # a block is worth its median call, which on a busy machine is less than the mean
    assert all(n >= 5 and t * n >= 0.004 for row in rows for t, n in zip(row.seconds, row.calls, strict=True))
    assert len(back_to_back(events, "eager")) == len(back_to_back(events, "compiled")) >= 3
    assert min(back_to_back(events, "compiled")) >= 2e-3


def test_that_a_narrow_interval_ends_the_timing_before_its_budget(played: Played) -> None:
    events = timed(played, played.spin(1e-3), played.spin(1e-3), Plan(budget_s=30, interval=0.2))

    assert next(row for row in events if isinstance(row, Measured)).stop == "interval"
    assert played.host < 3


def test_that_blocks_in_which_something_compiled_are_void_and_told(played: Played) -> None:
    compiles = iter(range(1_000_000))

    events = timed(
        played, played.spin(1e-3), played.spin(1e-3), Plan(budget_s=30, interval=0.01), compiles=lambda: next(compiles)
    )

    assert any(isinstance(row, Void) and "compiled again" in row.reason for row in events)
    assert [row.code for row in events if isinstance(row, Warning)] == ["recompiles_while_timed"]


def test_that_a_model_which_settles_after_some_recompiles_is_timed(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilescope.worker.voids.VOID_S", 10.0)
    compiles = iter([*range(40), *[40] * 1_000_000])

    def seen() -> int:
        return next(compiles)

    events = timed(played, played.spin(1e-3), played.spin(1e-3), Plan(budget_s=2.0, interval=0.0), compiles=seen)

    assert len([row for row in events if isinstance(row, Void)]) >= 8
    assert not [row for row in events if isinstance(row, Warning)]
    assert len(back_to_back(events, "compiled")) > len([row for row in events if isinstance(row, Void)]) / 2


def test_that_blocks_with_a_loss_that_is_not_finite_are_void_and_not_told_as_recompiles(played: Played) -> None:
    events: list[Event] = []
    sides = [(Side(name, nn.Module(), played.spin(1e-3), RECIPE), Inputs()) for name in ("eager", "compiled")]
    sides[1][0].last_loss = torch.tensor(float("nan"))

    Timer(sides, events.append, lambda: 0, clock=WallClock(played.read)).run(Plan(budget_s=3.0, interval=0.01))

    assert {row.side for row in events if isinstance(row, Void)} == {"compiled"}
    assert [row.code for row in events if isinstance(row, Warning)] == ["no_step_counts"]


def test_that_calls_which_the_blocks_tell_one_by_one_are_the_latencies(played: Played) -> None:
    took = iter([1e-3, 3e-3] * 1_000_000)

    events = timed(played, lambda: played.spin(next(took))(), played.spin(1e-3), Plan(budget_s=0.6, interval=0.0))

    # nothing is run a second time for them, and they show what a block's mean hides
    slow = [seconds for seconds in measured(events, "eager", "latency") if seconds > 2.5e-3]
    assert 0.3 < len(slow) / len(measured(events, "eager", "latency")) < 0.7
    assert [row.measure for row in events if isinstance(row, Samples)][-1] == "latency"
    calls = sum(n for row in events if isinstance(row, Samples) and row.side == "eager" for n in row.calls)
    assert len(measured(events, "eager", "latency")) == calls


def test_that_the_latencies_which_are_kept_are_a_fair_choice_of_all(played: Played) -> None:
    kept, rng = (
        Timed(side=Side("eager", nn.Module(), played.spin(0.0), RECIPE), call=played.spin(0.0)),
        random.Random(1),
    )

    for first in range(0, 20_000, 50):
        kept.keep([float(first + i) for i in range(50)], rng)

    assert len(kept.latencies) == 2000
    assert sum(value >= 10_000 for value in kept.latencies) == pytest.approx(1000, abs=100)


def test_that_a_side_which_grows_faster_while_it_is_timed_keeps_its_latencies(played: Played) -> None:
    # the first calls are those of the calibration, which finds them long enough to be told one by one
    made = iter(range(1_000_000))

    def faster_later() -> None:
        played.spin(2e-4 if next(made) < 500 else 4e-5)()

    events = timed(played, faster_later, played.spin(1e-3), Plan(budget_s=0.6, interval=0.0))

    assert min(measured(events, "eager", "latency")) < 1e-4
    calls = sum(n for row in events if isinstance(row, Samples) and row.side == "eager" for n in row.calls)
    assert len(measured(events, "eager", "latency")) == min(calls, 2000)


def test_that_calls_of_void_blocks_are_no_latencies(played: Played) -> None:
    events: list[Event] = []
    sides = [(Side(name, nn.Module(), played.spin(1e-3), RECIPE), Inputs()) for name in ("eager", "compiled")]
    sides[1][0].last_loss = torch.tensor(float("nan"))

    Timer(sides, events.append, lambda: 0, clock=WallClock(played.read)).run(Plan(budget_s=0.3, interval=0.01))

    assert not measured(events, "eager", "latency") and not measured(events, "compiled", "latency")


def test_that_short_calls_are_waited_for_in_a_pass_of_their_own(played: Played) -> None:
    events = timed(played, played.spin(2e-5), played.spin(2e-5), Plan(budget_s=0.6, interval=0.0))

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


def test_that_no_garbage_is_collected_while_timing(played: Played) -> None:
    seen: list[bool] = []

    def call() -> None:
        seen.append(gc.isenabled())
        played.host += 1e-3

    timed(played, call, played.spin(1e-3), Plan(budget_s=0.1, interval=0.01))

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

        def synchronize(self) -> None:
            return

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


def test_that_the_cpu_has_no_l2_cache_to_flush(played: Played) -> None:
    assert isinstance(clock_for(torch.device("cpu"), l2_flush=True), WallClock)
    assert [
        row.l2_flush for row in timed(played, played.spin(1e-3), played.spin(1e-3), PLAN) if isinstance(row, Measured)
    ] == [None]


def test_that_the_collector_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError), undisturbed():
        raise ValueError

    assert gc.isenabled()


# --- calls that change their inputs -------------------------------------------------------------------------------


class Cache:
    """An input that grows with each call, on which the next call's time depends."""

    def __init__(self) -> None:
        self.rows: list[int] = [0]


def growing(played: Played, cache: Cache, seen: list[int]) -> Callable[[], None]:
    def call() -> None:
        seen.append(len(cache.rows))
        cache.rows.append(1)
        played.host += 1e-3

    return call


def undo_of(cache: Cache, call: Callable[[], None]) -> Undo:
    state = State({"inputs": {"cache": cache}})
    call()
    return Undo(state)


def restored(
    played: Played,
    eager: Callable[[], None],
    compiled: Callable[[], None],
    undos: dict[str, Undo],
    plan: Plan = PLAN,
) -> list[Event]:
    events: list[Event] = []
    clock = WallClock(played.read)
    Timer(sides_of(eager, compiled), events.append, lambda: 0, clock=clock, undos=undos).run(plan)
    return events


def test_that_every_call_sees_its_inputs_as_the_first_one_saw_them(played: Played) -> None:
    caches = [Cache(), Cache()]
    seen: list[list[int]] = [[], []]
    eager, compiled = (growing(played, cache, rows) for cache, rows in zip(caches, seen, strict=True))
    undos = {"eager": undo_of(caches[0], eager), "compiled": undo_of(caches[1], compiled)}

    events = restored(played, eager, compiled, undos)

    assert all(len(rows) > 10 and set(rows) == {1} for rows in seen)
    # and so does what comes after the timing
    assert [len(cache.rows) for cache in caches] == [1, 1]
    (measured_event,) = [row for row in events if isinstance(row, Measured)]
    assert measured_event.restored
    assert not [row for row in events if isinstance(row, (Void, Warning))]


def test_that_both_sides_are_timed_alone_where_one_changes_its_inputs(played: Played) -> None:
    cache, seen = Cache(), list[int]()
    call = growing(played, cache, seen)

    events = restored(played, played.spin(1e-3), call, {"compiled": undo_of(cache, call)})

    for side in ("eager", "compiled"):
        told = sum(n for row in events if isinstance(row, Samples) and row.side == side for n in row.calls)
        assert len(measured(events, side, "latency")) == told > 0


def test_that_calls_which_change_nothing_are_not_timed_one_by_one(played: Played) -> None:
    cache = Cache()

    events = restored(played, played.spin(2e-5), played.spin(2e-5), {"eager": undo_of(cache, lambda: None)})

    assert [row.restored for row in events if isinstance(row, Measured)] == [False]


def test_that_putting_back_is_no_part_of_the_time() -> None:
    now = [0.0]

    def take(seconds: float) -> None:
        now[0] += seconds

    # what a restore queued on a device is waited for before the clock starts, and the call before it stops
    waits = iter([4e-3, 1e-3] * 5)
    clock = WallClock(lambda: now[0])
    block = clock.time(lambda: take(2e-3), 5, lambda: take(next(waits)), restore=lambda: take(9e-3))

    assert block.each_s == pytest.approx([3e-3] * 5)
    assert (block.seconds, block.wall_s) == pytest.approx((3e-3, 3e-3))


def test_that_putting_back_for_long_makes_a_block_of_few_calls(played: Played) -> None:
    cache, seen = Cache(), list[int]()
    call = growing(played, cache, seen)
    undo = undo_of(cache, call)
    put_back = undo.put_back

    def slow() -> None:
        played.spin(0.06)()
        put_back()

    undo.put_back = slow  # type: ignore[method-assign]

    events = restored(played, played.spin(1e-3), call, {"compiled": undo}, Plan(budget_s=1.0, interval=0.0))

    counts = [n for row in events if isinstance(row, Samples) and row.side == "compiled" for n in row.calls]
    assert counts and max(counts) <= 5


def test_that_a_call_which_later_changes_more_than_the_first_one_is_told_and_not_timed(played: Played) -> None:
    cache, seen, made = Cache(), list[int](), iter(range(1_000_000))
    other = [0]

    def call() -> None:
        if next(made) > 100:
            other.append(0)
        growing(played, cache, seen)()

    state = State({"inputs": {"cache": cache, "other": other}})
    call()

    events = restored(played, played.spin(1e-3), call, {"compiled": Undo(state)}, Plan(budget_s=30, interval=0))

    assert {row.side for row in events if isinstance(row, Void)} == {"compiled"}
    assert [row.code for row in events if isinstance(row, Warning)] == ["inputs_not_put_back"]


# --- blocks that are queued on a device ----------------------------------------------------------------------------


FAST, SLOW = {"launch_s": 1e-5, "work_s": 1e-4}, {"launch_s": 1e-5, "work_s": 2e-4}
LAUNCH_BOUND = {"launch_s": 1e-4, "work_s": 5e-5}
SECOND = Plan(budget_s=1.0, interval=0.0)


def run_on(
    played: Played,
    clock: EventClock | FlushedEventClock,
    eager: dict[str, float],
    compiled: dict[str, float],
    **options: Any,
) -> list[Event]:
    events: list[Event] = []
    sides = [played.side("eager", **eager), played.side("compiled", **compiled)]
    Timer(sides, events.append, options.pop("compiles", lambda: 0), clock=clock, **options).run(SECOND)
    return events


def queued(events: list[Event]) -> bool | None:
    return next(row.queued for row in events if isinstance(row, Measured))


def test_that_a_device_does_not_rest_between_queued_blocks(played: Played) -> None:
    events = run_on(played, EventClock(), SLOW, FAST)

    assert queued(events)
    assert back_to_back(events, "eager") == pytest.approx([2e-4] * len(back_to_back(events, "eager")))
    assert back_to_back(events, "compiled") == pytest.approx([1e-4] * len(back_to_back(events, "compiled")))
    assert len(back_to_back(events, "eager")) == len(back_to_back(events, "compiled")) > 15
    # calibration and latencies wait for their calls; the calls of blocks are most of all
    assert sum(rest > 0 for rest in played.rests) < len(played.rests) / 2
    # three blocks of some 21 ms, with their lead
    assert played.most_ahead < 0.070


def test_that_a_device_rests_between_blocks_where_no_queue_is_asked_for(played: Played) -> None:
    events = run_on(played, EventClock(queues=False), SLOW, FAST)

    assert queued(events) is False
    assert played.most_ahead < 0.023
    assert all(row.wall_s for row in events if isinstance(row, Samples) and row.measure == "back_to_back")


@pytest.mark.parametrize("eager", [SLOW, LAUNCH_BOUND])
def test_that_launches_do_not_hide_behind_the_block_before(played: Played, eager: dict[str, float]) -> None:
    events = run_on(played, EventClock(), eager, LAUNCH_BOUND)

    # a loop of these calls waits for their launches
    assert queued(events) is False
    assert min(back_to_back(events, "compiled")) > 0.98e-4


def test_that_the_wall_clock_tells_nothing_of_a_queued_block(played: Played) -> None:
    events = run_on(played, EventClock(), FAST, FAST)

    assert not any(row.wall_s for row in events if isinstance(row, Samples))


def test_that_flushed_blocks_are_queued_as_well(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FlushedEventClock(torch.device("cpu"))
    monkeypatch.setattr(clock, "_buffer", SimpleNamespace(zero_=lambda: played.work(launch_s=1e-5, work_s=7e-5)))

    events = run_on(played, clock, SLOW, FAST)

    assert queued(events)
    assert back_to_back(events, "eager") == pytest.approx([2e-4] * len(back_to_back(events, "eager")))
    assert back_to_back(events, "compiled") == pytest.approx([1e-4] * len(back_to_back(events, "compiled")))


def test_that_a_block_which_compiled_is_void_although_it_is_read_late(played: Played) -> None:
    # asked before and after each block, eager's first: the third pair's compiled block
    asked = iter(range(1_000_000))

    events = run_on(played, EventClock(), SLOW, FAST, compiles=lambda: int(next(asked) >= 4 * 2 + 3))

    assert queued(events)
    assert [(row.block, row.side) for row in events if isinstance(row, Void)] == [(2, "compiled")]


def test_that_each_queued_block_has_its_own_loss(played: Played) -> None:
    events: list[Event] = []
    sides = [played.side(name, **FAST) for name in ("eager", "compiled")]
    # the eighth time is right after the compiled block of the second pair
    losses = iter([1.0] * 7 + [float("nan")] + [1.0] * 1_000_000)

    def compiles() -> int:
        sides[1][0].last_loss = torch.tensor(next(losses))
        return 0

    Timer(sides, events.append, compiles, clock=EventClock()).run(SECOND)

    assert queued(events)
    assert [(row.block, row.side) for row in events if isinstance(row, Void)] == [(1, "compiled")]


def test_that_steps_whose_scaler_has_to_be_asked_are_not_queued(played: Played) -> None:
    events: list[Event] = []
    sides = [played.side(name, **FAST) for name in ("eager", "compiled")]
    sides[1][0].scaler = SimpleNamespace(get_scale=lambda: 1.0)  # type: ignore[assignment]

    Timer(sides, events.append, lambda: 0, clock=EventClock()).run(SECOND)

    assert queued(events) is False


def test_that_long_calls_are_not_queued(played: Played) -> None:
    long = {"launch_s": 1e-5, "work_s": 0.3}

    assert queued(run_on(played, FlushedEventClock(torch.device("cpu")), long, long)) is False


def test_that_calls_on_a_device_are_timed_alone_after_what_was_put_back(played: Played) -> None:
    cache = Cache()

    def call() -> None:
        cache.rows.append(1)
        played.work(**FAST)

    undo = undo_of(cache, call)
    put_back = undo.put_back

    def copy_back() -> None:
        put_back()
        # behind it launches would hide
        played.work(launch_s=1e-5, work_s=5e-3)

    undo.put_back = copy_back  # type: ignore[method-assign]
    sides = [played.side(name, **FAST) for name in ("eager", "compiled")]
    sides[1][0].call = call
    events: list[Event] = []

    Timer(sides, events.append, lambda: 0, clock=EventClock(), undos={"compiled": undo}).run(SECOND)

    # the launch, and the work
    for side in ("eager", "compiled"):
        assert back_to_back(events, side) == pytest.approx([1.1e-4] * len(back_to_back(events, side)), rel=0.01)
    assert [(row.restored, row.queued) for row in events if isinstance(row, Measured)] == [(True, False)]


def test_that_a_choice_of_the_queue_reaches_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=4096))
    monkeypatch.setattr(clocks, "QUEUES", True)

    found = [clock_for(torch.device("cuda"), l2_flush=False, queue=queue).queues for queue in (None, True, False)]

    assert found == [True, True, False]
    assert not clock_for(torch.device("cpu"), l2_flush=False, queue=True).queues


# --- the card's clock ------------------------------------------------------------------------------------------------


class Card:
    """A GPU that says one clock after the other."""

    def __init__(self, *mhz: int | None) -> None:
        self._mhz = itertools.cycle(mhz)

    def clock_mhz(self) -> int | None:
        return next(self._mhz)


def with_card(played: Played, card: Card) -> list[Event]:
    return run_on(played, EventClock(), FAST, FAST, card=card)


def test_that_the_card_s_clock_stands_beside_each_block(played: Played) -> None:
    events = with_card(played, Card(1980, 1965))

    rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
    assert all(len(row.clock_mhz) == len(row.seconds) for row in rows)
    assert {mhz for row in rows if row.side == "compiled" for mhz in row.clock_mhz} == {1965}
    assert not [row for row in events if isinstance(row, Warning)]


def test_that_a_clock_which_differs_between_the_sides_is_told(played: Played) -> None:
    events = with_card(played, Card(1980, 1755))

    (warning,) = [row for row in events if isinstance(row, Warning)]
    assert warning.code == "clock_wanders"
    assert "1980 MHz" in warning.message and "1755 MHz" in warning.message


def test_that_no_clock_is_told_where_the_card_does_not_say_it(played: Played) -> None:
    events = with_card(played, Card(1980, None))

    rows = [row for row in events if isinstance(row, Samples)]
    assert not [row for row in rows if row.side == "compiled" and row.clock_mhz]
    assert not [row for row in events if isinstance(row, Warning)]
