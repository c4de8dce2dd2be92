"""The figures of a run: right where they are known, None where they are not."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

import pytest

from compilescope.domain import events as e
from compilescope.domain import verdict
from compilescope.domain.comparison import Comparison, recommend
from compilescope.domain.config import Config
from compilescope.domain.measures import ShapeMeasures, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval
from compilescope.domain.verdict import WANDERED, judge
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]


def test_that_nothing_is_known_of_a_run_that_has_not_begun():
    found = measure(Run("r", config=Config(), workload=Workload(script="m.py")))

    unknown = (found.clock, found.eager, found.speedup, found.cold_first_call_s, found.eager_peak_bytes)
    assert unknown == (None,) * 5
    assert found.launch_bound is None and found.processes_disagree is None and found.stopped_by is None


def test_that_on_a_calm_machine_the_speedup_is_the_ratio_of_the_shown_medians(make_run: RunMaker):
    found = measure(make_run(speedup=1.5))

    assert found.eager and found.compiled and found.speedup
    assert found.speedup.value == pytest.approx(found.eager.median / found.compiled.median, rel=0.01)
    assert found.speedup.contains(1.5)
    assert found.eager.samples == found.compiled.samples == 120
    assert found.eager.p05 < found.eager.median < found.eager.p95


def test_that_medians_that_do_not_give_the_speedup_are_explained():
    run = Run("r", config=Config(), workload=Workload(script="model.py"))
    # the machine falls to half its speed between the two blocks of the middle pair
    for start in ("cold", "warm"):
        run.apply_all([e.Hello(start=start), e.WorkloadReady(device="cpu")])
        run.apply(e.Compile(compile_id="0/0", state="end", graphs=1, ops=3))
        for side, seconds in (("eager", [3e-3] * 30 + [6e-3] * 29), ("compiled", [2e-3] * 29 + [4e-3] * 30)):
            run.apply(e.Samples(side=side, measure="back_to_back", clock="wall", seconds=tuple(seconds)))
    run.apply(e.Ended())

    found = judge(run)

    assert found is not None and found.kind == "faster"
    assert any(WANDERED.strip() in reason for reason in found.reasons)


def test_that_figures_are_the_same_object_until_the_run_changes(make_run: RunMaker):
    run = make_run(ended=None)
    first = measure(run)

    assert measure(run) is first

    run.apply(e.Ended())
    assert measure(run) is not first


def test_that_a_run_that_goes_on_has_an_interval_already(make_run: RunMaker):
    found = measure(make_run(ended=None, starts=("cold",)))

    assert found.speedup is not None and found.speedup.contains(1.5)
    assert found.processes_disagree is None


def test_that_first_calls_and_break_even_are_those_of_their_process(make_run: RunMaker):
    run = make_run(eager_s=3e-3, speedup=1.5)
    found, judged = measure(run), judge(run)

    assert (found.eager_first_call_s, found.cold_first_call_s, found.warm_first_call_s) == (0.05, 8.0, 2.0)
    assert judged and judged.cold_break_even and judged.warm_break_even
    # 8 s less one compiled call, at 1 ms saved a call
    assert judged.cold_break_even.calls == pytest.approx(8000, rel=0.05)
    assert judged.cold_break_even.seconds == pytest.approx(24, rel=0.05)
    assert judged.warm_break_even.calls == pytest.approx(2000, rel=0.05)
    assert judged.cold_break_even.calls_low < judged.cold_break_even.calls < judged.cold_break_even.calls_high


def test_that_a_first_call_is_told_in_eager_calls_where_both_were_timed(make_run: RunMaker):
    assert measure(make_run(eager_s=4e-3)).first_call_in_eager_calls == pytest.approx(2000, rel=0.01)
    assert measure(make_run(blocks=0)).first_call_in_eager_calls is None


def test_that_a_training_step_counts_as_the_first_call(make_run: RunMaker):
    step = e.FirstCall(side="compiled", direction="step", duration_s=12.0)

    assert measure(make_run(extra=[step])).cold_first_call_s == 12.0


def test_that_blocks_of_one_side_only_do_not_count(make_run: RunMaker):
    run = make_run(extra=[e.Samples(side="eager", block=1000, seconds=(9.0,))], starts=("cold",))

    found = measure(run)

    assert found.speedup is not None and found.speedup.contains(1.5)


def test_that_only_an_interval_in_every_process_counts_as_one(make_run: RunMaker):
    assert measure(make_run()).stopped_by == "interval"
    assert measure(make_run(extra=[e.Measured(stop="budget")])).stopped_by == "budget"


def test_that_latency_is_kept_apart_from_back_to_back(make_run: RunMaker):
    latency = e.Samples(side="eager", measure="latency", seconds=(0.5, 0.6, 0.7))

    found = measure(make_run(extra=[latency]))

    assert found.eager_latency and found.eager_latency.median == pytest.approx(0.6)
    assert found.eager and found.eager.median < 0.01
    assert found.compiled_latency is None


def test_that_busy_time_tells_launch_bound_on_a_gpu_only(make_run: RunMaker):
    busy = e.GpuBusy(side="compiled", seconds=0.5e-3, launches=40)

    on_gpu = measure(make_run(device="cuda:0", extra=[busy]))
    full = measure(make_run(device="cuda:0", extra=[e.GpuBusy(side="compiled", seconds=1.95e-3)]))

    assert on_gpu.compiled_busy_share == pytest.approx(0.25, rel=0.05)
    assert on_gpu.launch_bound is True and on_gpu.compiled_launches == 40
    assert full.launch_bound is False
    assert measure(make_run(device="cuda:0")).launch_bound is None
    assert measure(make_run(extra=[busy])).launch_bound is None


def test_that_a_gpu_which_copies_memory_is_not_launch_bound(make_run: RunMaker):
    busy = e.GpuBusy(side="compiled", seconds=0.5e-3, copies_s=1.4e-3, launches=40)

    found = measure(make_run(device="cuda:0", extra=[busy]))

    assert found.compiled_busy_share == pytest.approx(0.25, rel=0.05)
    assert found.launch_bound is False


def test_that_busy_time_is_no_share_of_calls_that_find_the_cache_flushed(make_run: RunMaker):
    extra = [e.GpuBusy(side="compiled", seconds=0.5e-3), e.Measured(stop="budget", l2_flush=True)]

    found = measure(make_run(device="cuda:0", extra=extra))

    assert found.compiled_gpu_busy_s == 0.5e-3
    assert found.compiled_busy_share is None and found.launch_bound is None


def test_that_kernels_that_took_longer_than_the_timed_call_are_no_share_of_it(make_run: RunMaker):
    found = measure(make_run(device="cuda:0", extra=[e.GpuBusy(side="compiled", seconds=0.5)]))

    assert found.compiled_gpu_busy_s == 0.5
    assert found.compiled_busy_share is None and found.launch_bound is None


def test_that_busy_time_after_a_sweep_is_a_share_of_the_size_that_was_profiled(make_run: RunMaker):
    sweep: list[e.Event] = [
        e.Samples(side=side, shape=1, block=100, clock="cuda_event", seconds=(seconds,) * 20)
        for side, seconds in (("eager", 4e-4), ("compiled", 1e-4))
    ]
    sweep += [e.GpuBusy(side="compiled", seconds=0.9e-4)]
    workload = Workload(script="m.py", inputs={"x": [[64, 16], [8, 16]]})

    found = measure(make_run(device="cuda:0", extra=sweep, workload=workload))

    assert found.compiled_busy_share == pytest.approx(0.9)
    assert found.launch_bound is False


def test_that_resident_memory_is_the_process_s_and_no_side_s(make_run: RunMaker):
    extra = [
        e.Memory(side="eager", when="steady", allocated_peak_bytes=100, rss_bytes=900),
        e.Memory(side="compiled", when="steady", rss_bytes=800),
        e.Memory(side="compiled", when="first_call", allocated_peak_bytes=400),
    ]

    found = measure(make_run(extra=extra))

    assert (found.eager_peak_bytes, found.compiled_peak_bytes, found.compile_peak_bytes) == (100, None, 400)
    assert found.process_rss_bytes == 900


def test_that_a_sweep_has_a_row_a_size(make_run: RunMaker):
    sweep: list[e.Event] = [
        e.Samples(side=side, shape=1, block=100, seconds=(seconds,) * 20)
        for side, seconds in (("eager", 4e-3), ("compiled", 1e-3))
    ]

    sweep += [e.Measured(at=5.0), e.Recompile(at=6.0, dimension=0), e.Measured(shape=1, at=9.0)]
    sweep += [e.FirstCall(side="compiled", shape=1, duration_s=3.5)]
    workload = Workload(script="m.py", inputs={"x": [[8, 16], [32, 16]], "y": [[4]]})

    found = measure(make_run(extra=sweep, workload=workload))

    assert [row.shape for row in found.shapes] == [0, 1]
    assert [row.inputs for row in found.shapes] == [{"x": [8, 16], "y": [4]}, {"x": [32, 16], "y": [4]}]
    assert [row.recompiles for row in found.shapes] == [0, 1]
    assert found.shapes[1].first_call_s == 3.5 != found.cold_first_call_s
    assert found.shapes[1].speedup and found.shapes[1].speedup.value == pytest.approx(4.0)
    assert measure(make_run()).shapes == ()


def test_that_a_sweep_s_verdict_names_its_sizes_and_where_eager_is_faster(make_run: RunMaker):
    sweep: list[e.Event] = [
        e.Samples(side=side, shape=1, block=100, seconds=(seconds,) * 20)
        for side, seconds in (("eager", 1e-3), ("compiled", 2e-3))
    ]
    workload = Workload(script="m.py", inputs={"x": [[64, 16], [8, 16]]})

    run = make_run(extra=sweep, workload=workload, speedup=2.0)

    found = judge(run)
    assert found is not None and found.kind == "faster"
    assert found.summary.endswith(" at x 64 × 16; at other sizes 0.500×.")
    assert any(reason.startswith("Slower than eager at x 8 × 16 (0.500×") for reason in found.reasons)
    recommendation = recommend(Comparison(id="c", created=0.0, runs=[run]))
    assert recommendation is not None and "Slower than eager at x 8 × 16" in " ".join(recommendation.caveats)


def test_that_a_range_over_sizes_is_told_of_settled_intervals_only(make_run: RunMaker, monkeypatch: pytest.MonkeyPatch):
    run = make_run(speedup=2.0)
    told = {1: (1.034, 0.94, 1.14), 2: (1.81, 0.2, 18.4), 3: (1.5, 1.45, 1.55), 4: (1.9, 1.8, 2.0)}

    def summary_with(*sizes: int) -> str:
        shapes = tuple(
            ShapeMeasures(
                shape=size, inputs={"x": [size]}, first_call_s=None, recompiles=None, eager=None, compiled=None,
                speedup=Interval(value=row[0], low=row[1], high=row[2]) if (row := told.get(size)) else None,
            )
            for size in (0, *sizes)
        )  # fmt: skip
        monkeypatch.setattr(verdict, "measure", lambda run: dataclasses.replace(measure(run), shapes=shapes))
        found = judge(run)
        assert found is not None
        return found.summary

    assert summary_with(1, 2).endswith(" at x 0; 2 sizes are too noisy to tell.")
    assert summary_with(1, 3, 4).endswith(" at x 0; at 2 of 3 other sizes 1.50× to 1.90×; 1 size is too noisy to tell.")
    assert summary_with(3, 4).endswith(" at x 0; at other sizes 1.50× to 1.90×.")


def test_that_calls_whose_mean_tells_another_speedup_are_explained(make_run: RunMaker):
    # every fourth compiled call takes five times as long, which no median shows
    calls = {"eager": [3e-3] * 400, "compiled": [1.5e-3, 1.5e-3, 1.5e-3, 7.5e-3] * 100}
    latencies = [e.Samples(side=side, measure="latency", clock="wall", seconds=tuple(s)) for side, s in calls.items()]

    run = make_run(eager_s=3e-3, speedup=2.0, extra=latencies)

    assert measure(run).speedup_of_means == pytest.approx(1.0, rel=0.01)
    found = judge(run)
    assert found is not None and any("By the mean of single calls" in reason for reason in found.reasons)
    alike = judge(make_run(eager_s=3e-3, speedup=2.0))
    assert alike is not None and not any("By the mean" in reason for reason in alike.reasons)


def test_that_one_difference_outweighs_matches_and_names_the_first_stage(make_run: RunMaker):
    rows = [
        e.Numerics(backend="inductor", verdict="differ", max_abs_error=0.5, detail="Call 2."),
        e.Numerics(backend="eager", verdict="match"),
        e.Numerics(backend="aot_eager", verdict="differ", max_abs_error=0.5),
    ]

    found = measure(make_run(extra=rows)).numerics

    assert (found.verdict, found.backend, found.max_abs_error) == ("differ", "aot_eager", 0.5)


def test_that_a_size_of_a_sweep_that_differs_is_named(make_run: RunMaker):
    rows = [
        e.Numerics(backend="inductor", verdict="match"),
        e.Numerics(backend="inductor", verdict="differ", max_abs_error=0.5, detail="One differs.", shape=1),
    ]
    run = make_run(extra=rows)
    run.workload = dataclasses.replace(run.workload, inputs={"x": [[8, 6], [4, 6]], "mask": [[8]]})

    assert measure(run).numerics.detail == "With x = 4×6, mask = 8: One differs."


def test_that_rows_of_other_backends_do_not_make_a_run_incorrect(make_run: RunMaker):
    found = measure(make_run(extra=[e.Numerics(backend="aot_eager", verdict="differ")])).numerics

    assert found.verdict == "match" and found.backend is None


def test_that_zero_and_negative_times_are_no_samples(make_run: RunMaker):
    extra = [e.Samples(side=side, block=500, seconds=(0.0, -1.0)) for side in ("eager", "compiled")]

    found = measure(make_run(extra=extra))

    assert found.eager and found.eager.samples == 120


def timed_run(*processes: list[float]) -> Run:
    """A run whose processes told these seconds of single compiled calls, and blocks that are like each other's."""
    run = Run("r", config=Config(), workload=Workload(script="model.py"))
    for start, seconds in zip(("cold", "warm"), processes, strict=True):
        run.apply_all([e.Hello(start=start), e.Compile(compile_id="0/0", state="end", graphs=1, ops=3)])
        for side in ("eager", "compiled"):
            run.apply(e.Samples(side=side, clock="wall", seconds=(2e-3,) * 30))
        run.apply(e.Samples(side="compiled", measure="latency", clock="wall", seconds=tuple(seconds)))
    run.apply(e.Ended())
    return run


def test_that_a_median_lies_between_its_percentiles_however_unlike_the_processes_are():
    rng = random.Random(7)
    for _ in range(300):
        cold, warm = (
            [
                rng.choice((1e-3, 0.5)) * math.exp(rng.gauss(0, rng.choice((0.0, 0.5))))
                for _ in range(rng.randint(1, 90))
            ]
            for _ in range(2)
        )

        found = measure(timed_run(cold, warm)).compiled_latency

        assert found and found.p05 <= found.median <= found.p95
        assert min(cold + warm) <= found.p05 and found.p95 <= max(cold + warm)
        assert found.samples == len(cold) + len(warm)


def test_that_processes_weigh_the_same_and_are_both_told_where_they_differ():
    # 10 calls of a slow process beside 200 of a fast one
    run = timed_run([22e-3] * 10, [1.7e-3] * 200)
    found, judged = measure(run).compiled_latency, judge(run)

    assert found and found.p05 == 1.7e-3 and found.p95 == 22e-3
    assert found.processes == (("cold", 22e-3), ("warm", 1.7e-3))
    assert judged and any("compiled latency 22.0 ms cold, 1.70 ms warm" in reason for reason in judged.reasons)
    calm = judge(timed_run([1.7e-3] * 10, [1.75e-3] * 200))
    assert calm and not any("medians differ" in reason for reason in calm.reasons)
