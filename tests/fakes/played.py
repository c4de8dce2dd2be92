"""Comparisons of every kind that a run can come to, played event by event, for tests that hold outputs together."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

from fakes.comparisons import comparison
from fakes.profiles import on_gpu
from fakes.stories import recorded_run, transcript

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.savedtraces import read_saved
from compilescope.domain.workload import Workload

PLACE = {"file": "/x/model.py", "line": 7, "function": "forward"}
BREAK = e.GraphBreak(id="GB0124", kind="item", reason="Tensor.item()", file="/x/model.py", line=9, function="forward")
RECOMPILE = e.Recompile(guard="self.step == 1", source="self.step", expected="1", actual="2", **PLACE)
SKIPPED = e.CudaGraph(state="skipped", reason="mutated inputs (1 instances)", **PLACE)
FINISHED = e.Ended(outcome="finished")


def process_events(
    start: str,
    *,
    eager_s: float = 3e-3,
    speedup: float = 1.5,
    device: str = "cpu",
    graphs: int = 1,
    blocks: int = 60,
    seed: int = 0,
    noise: float = 0.01,
    cache_was_empty: bool | None = True,
) -> list[e.Event]:
    """What one process tells that compiles, checks and measures without trouble.

    `cache_was_empty`: of the cold one; None with the user's own cache.
    """
    rng = random.Random(f"{start}{seed}")
    clock = "cuda_event" if device.startswith("cuda") else "wall"
    capability = "9.0" if device.startswith("cuda") else None
    stream: list[e.Event] = [
        e.Hello(start=start, torch="2.13.0", python="3.11.4", cache_was_empty=cache_was_empty and start == "cold"),
        e.Environment(torch="2.13.0", python="3.11.4", device_capability=capability, cpu="Test CPU", os="Linux"),
        e.WorkloadReady(
            entry="Model",
            phase="inference",
            precision="fp32",
            device=device,
            inputs=(e.Input(name="x", shape=(8, 16), dtype="float32", device=device),),
            float32_matmul_precision="highest",
        ),
        e.FirstCall(side="eager", duration_s=0.05),
        e.Compile(compile_id="0/0", state="begin", file="model.py", line=7, function="forward"),
        e.Compile(compile_id="0/0", state="end", graphs=graphs, ops=5 * graphs, duration_s=1.5),
        e.FirstCall(side="compiled", duration_s=8.0 if start == "cold" else 2.0),
        e.Numerics(subject="outputs", backend="inductor", verdict="match", max_abs_error=2e-7),
    ]
    for block in range(0, blocks, 10):
        for side, per_call in (("eager", eager_s), ("compiled", eager_s / speedup)):
            seconds = tuple(per_call * math.exp(rng.gauss(0, noise)) for _ in range(min(10, blocks - block)))
            stream.append(e.Samples(side=side, block=block, clock=clock, seconds=seconds))
    return [*stream, e.Measured(stop="interval")]


def run(
    run_id: str = "run",
    *,
    config: Config | None = None,
    workload: Workload | None = None,
    extra: Iterable[e.Event] = (),
    ended: e.Ended | None = FINISHED,
    starts: Sequence[str] = ("cold", "warm"),
    **options: object,
) -> Run:
    """A finished run of two processes; `extra` events come last in the cold one, `ended` None leaves it going on."""
    found = Run(run_id, config=config or Config(), workload=workload or Workload(script="model.py"))
    for start in starts:
        found.apply_all(process_events(start, **options))  # type: ignore[arg-type]
        if start == starts[0]:
            found.apply_all(extra)
    return found if ended is None else found.apply_all([ended])


def cut_short(stage: str, outcome: str = "failed", *, config: Config | None = None) -> Run:
    """A run that told its first events and ended in a stage of its first process."""
    found = Run("run", config=config or Config(), workload=Workload(script="model.py"))
    if stage != "start":
        told = process_events("cold")
        at = {"load": 2, "eager": 3, "compile": 5, "check": 7, "warm_up": 8, "measure": 10, "profile": len(told)}
        found.apply_all(told[: at[stage]])
        found.apply(e.Stage(name=stage))
    error = e.RunError(stage=stage, type="ValueError", message="It went wrong.\nMore.", file="/x/model.py", line=8)
    error = None if outcome in ("stopped", "crashed") else error
    return found.apply_all([e.Ended(outcome=outcome, error=error, signal="SIGSEGV" if outcome == "crashed" else None)])


def sweep() -> Run:
    sizes = {"x": [(8, 16), (4, 16)]}
    more = [
        e.Samples(side=side, shape=1, block=0, seconds=tuple(seconds * (1 + 0.01 * (i % 3)) for i in range(20)))
        for side, seconds in (("eager", 2e-3), ("compiled", 1e-3))
    ]
    return run(workload=Workload(script="model.py", inputs=sizes), extra=[RECOMPILE, *more, e.Measured(shape=1)])


def two_precisions() -> list[Run]:
    return [
        run(f"{precision}{mode}", config=Config(mode=mode), workload=Workload(script="model.py", precision=precision))
        for precision in ("fp32", "bf16")
        for mode in (None, "reduce-overhead")
    ]


def _gpu(run_id: str = "run", *, mode: str | None = None, extra: Iterable[e.Event] = (), **options: object) -> Run:
    peaks = [
        e.Memory(side="eager", allocated_peak_bytes=412_000_000),
        e.Memory(side="compiled", allocated_peak_bytes=398_000_000),
        e.Memory(side="compiled", when="first_call", allocated_peak_bytes=733_000_000, rss_bytes=2_100_000_000),
    ]
    latencies = [
        e.Samples(side=side, block=0, measure="latency", clock="wall", seconds=(seconds, 1.02 * seconds, 1.2 * seconds))
        for side, seconds in (("eager", 4e-3), ("compiled", 2.5e-3))
    ]
    workload = Workload(script="model.py", device="cuda")
    told = [*peaks, *latencies, *extra]
    return run(run_id, config=Config(mode=mode), workload=workload, device="cuda:0", extra=told, **options)


def _runs() -> dict[str, Sequence[Run]]:
    differ = e.Numerics(subject="outputs", backend="inductor", verdict="differ", max_abs_error=0.25)
    varies = e.Numerics(subject="outputs", verdict="nondeterministic", detail="Two calls of eager differ.")
    refused = e.Compile(compile_id="1/0", state="failed", file="/x/model.py", line=3, function="head", reason="Oops")
    other = {"file": "/x/other.py", "line": 3, "function": "helper"}
    return {
        "faster": [run()],
        "faster, with breaks": [run(speedup=1.3, extra=[BREAK, BREAK, RECOMPILE])],
        "breaks at several places": [run(extra=[BREAK, e.GraphBreak(kind="call", reason="skipped", **other)])],
        "much faster": [run(speedup=40.0, eager_s=2.0, blocks=20)],
        "microseconds": [run(eager_s=8e-6)],
        "slower": [run(speedup=0.8)],
        "tie": [run(speedup=1.0)],
        "too noisy": [run(noise=0.8, blocks=20, speedup=1.0)],
        "nothing timed": [run(blocks=0)],
        "incorrect": [run(extra=[differ])],
        "nondeterministic": [run(extra=[varies])],
        "no graph": [run(graphs=0)],
        "no graph, after an error": [run(graphs=0, extra=[refused])],
        "never entered": [run(extra=[e.Entered(calls=2, entries=0)])],
        "one function refused": [run(extra=[refused])],
        "recompile limit": [run(extra=[*[RECOMPILE] * 8, e.RecompileLimit(limit=8, **PLACE)])],
        "own cache": [run(cache_was_empty=None)],
        "one process": [run(starts=("cold",))],
        "void blocks": [run(extra=[e.Void(block=3, reason="A recompile."), e.Void(block=4, reason="A recompile.")])],
        **{
            f"failed, {stage}": [cut_short(stage)]
            for stage in ("start", "load", "eager", "compile", "check", "warm_up", "measure", "profile")
        },
        "fullgraph": [cut_short("compile", config=Config(fullgraph=True))],
        "crashed": [cut_short("compile", "crashed")],
        "timed out": [cut_short("measure", "timed_out")],
        "stopped": [cut_short("measure", "stopped")],
        "skipped": [Run("run", config=Config(), workload=Workload(script="model.py")).apply_all([_ended("stopped")])],
        "waiting": [Run("run", config=Config(), workload=Workload(script="model.py"))],
        "going on": [run(ended=None, starts=("cold",))],
        "sweep": [sweep()],
        "two precisions": two_precisions(),
        "training": [run(workload=Workload(script="model.py", phase="training"), extra=[BREAK])],
        "on a GPU": [_gpu(extra=on_gpu())],
        "CUDA graphs": [_gpu("run", mode="reduce-overhead", extra=[e.CudaGraph(state="recorded", **PLACE)])],
        "CUDA graphs skipped": [_gpu("run", mode="reduce-overhead", extra=[SKIPPED])],
        "CUDA graphs, some skipped": [
            _gpu("run", mode="reduce-overhead", extra=[e.CudaGraph(state="recorded", **PLACE), SKIPPED])
        ],
        "CUDA graphs on a CPU": [run(config=Config(mode="reduce-overhead"))],
        "recorded": [recorded_run("graph_break_and_recompile")],
        "recorded, autotuned": [recorded_run("mlp_max_autotune", "mlp_default_warm", mode="max-autotune")],
        "recorded, CUDA graphs": [recorded_run("mlp_reduce_overhead", mode="reduce-overhead")],
        "recorded, not compiled": [recorded_run("lstm_not_compiled")],
        "nothing": [],
    }


def _ended(outcome: str) -> e.Ended:
    return e.Ended(outcome=outcome)


def played() -> dict[str, Comparison]:
    """Comparisons by what they show."""
    found = {name: Comparison(id="played", created=1_795_953_600.0, runs=list(runs)) for name, runs in _runs().items()}
    found["eight configurations"] = comparison(samples=40)
    found["calibrated"] = Comparison(id="played", created=1_795_953_600.0, runs=[run(speedup=1.03)], noise_floor=0.04)
    for name in ("graph_break_and_recompile", "lstm_not_compiled", "fullgraph_error", "cudagraph_skip_mutated_input"):
        runs = read_saved(transcript(name)).runs
        found[f"trace {name}"] = Comparison(id="played", created=1_795_953_600.0, runs=list(runs))
    return found
