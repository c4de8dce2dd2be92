"""Comparisons as a worker would tell them, event by event, for tests that need a full one without compiling."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload

SCRIPT = '''"""A small encoder with a branch on its data."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.step = 0

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.step += 1
        hidden = nn.functional.gelu(self.up(tokens))
        if hidden.abs().mean() > 0.5:
            hidden = hidden * 0.5
        length = mask.sum(dim=1).max().item()
        print("length", length)
        return self.down(hidden)[:, :length]


def get_inputs():
    return [torch.randn(32, 128, 512), torch.ones(32, 128, dtype=torch.bool)]
'''

BREAKS = (
    ("GB0170", "Data-dependent branching", "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`)", 17,
     ("Use `torch.cond` to express dynamic control flow.", "Move the branch out of forward.")),
    ("GB0124", "Unsupported Tensor.item() call with capture_scalar_outputs=False",
     "Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False.", 19,
     ("Set `torch._dynamo.config.capture_scalar_outputs = True`.",)),
    ("GB0059", "Failed to trace builtin operator", "Dynamo does not know how to trace builtin operator `print`", 20,
     ("Avoid calling `print` in forward, or wrap it in `torch._dynamo.config.reorderable_logging_functions`.",)),
    ("GB0147", "torch.* op returned non-Tensor", "torch.* ops that return a non-Tensor stay out of the graph.", 21,
     ()),
    (None, "Attempted to call function marked as skipped",
     "Module: a_module_with_a_very_long_name.and_another_one.that_goes_on.and_on, qualname: function_of_theirs", 22,
     ("Remove the call, or apply `torch.compiler.allow_in_graph` where the function is trusted.",)),
)  # fmt: skip

PHASES = (
    ("_compile.compile_inner", "dynamo"),
    ("bytecode_tracing", "dynamo"),
    ("build_guards", "guards"),
    ("create_aot_dispatcher_function", "aot"),
    ("compile_fx.<locals>.fw_compiler_base", "inductor"),
    ("GraphLowering.run", "inductor"),
    ("Scheduler.codegen", "codegen"),
    ("async_compile.wait", "kernels"),
)

Shape = tuple[int, ...]


def eight_configs() -> list[Config]:
    return [
        Config(mode="default"),
        Config(mode="reduce-overhead"),
        Config(mode="max-autotune"),
        Config(mode="default", dynamic=True),
        Config(mode="default", dynamic=False, fullgraph=True),
        Config(mode="max-autotune", dynamic=False),
        Config(backend="aot_eager"),
        Config(
            options={
                "epilogue_fusion": True,
                "triton.cudagraphs": False,
                "max_autotune_gemm_backends": "ATEN,TRITON",
            }
        ),
    ]


def comparison(
    configs: Sequence[Config] | None = None,
    *,
    script: str = "encoder_with_branch.py",
    speedups: Sequence[float] = (1.31, 1.84, 1.86, 1.12, 0.0, 1.83, 0.93, 1.001),
    samples: int = 120,
    breaks: int = 3,
    phases: int = 24,
    device: str = "NVIDIA H200",
) -> Comparison:
    """A comparison of every kind of verdict; a speedup of 0 is a run that failed."""
    chosen = list(configs) if configs is not None else eight_configs()
    runs = []
    for number, config in enumerate(chosen):
        speedup = speedups[number % len(speedups)]
        workload = Workload(script=script, device="cuda" if "H200" in device else "cpu")
        run = Run(f"run{number:04}", config=config, workload=workload)
        run.apply_all(
            run_events(config, speedup, samples=samples, breaks=breaks, phases=phases, device=device, seed=number)
        )
        runs.append(run)
    return Comparison(id="c0ffee00", created=1_796_000_000.0, runs=runs)


def run_events(
    config: Config,
    speedup: float,
    *,
    samples: int = 120,
    breaks: int = 3,
    phases: int = 24,
    device: str = "NVIDIA H200",
    seed: int = 0,
    script: str = "encoder_with_branch.py",
) -> Iterator[e.Event]:
    """The events of one run, from its first hello to its end."""
    rng = random.Random(seed)
    if not speedup:
        yield from _failed(script, device)
        return
    for start in ("cold", "warm"):
        versions = {"torch": "2.11.0+cu130", "python": "3.12.3"}
        yield e.Hello(start=start, time=1_796_000_000.0, cache_was_empty=start == "cold", **versions)
        yield _environment(device)
        yield _workload(device)
        yield e.FirstCall(at=1.0, side="eager", duration_s=0.21)
        yield from _compile_story(config, start, breaks, phases, script, rng)
        yield from _timing(speedup, samples // 2, device, rng)
        yield e.Stage(at=25.0, name="done", state="end", duration_s=0.0)
    yield e.Ended(at=26.0, outcome="finished", exit_code=0)


def _environment(device: str) -> e.Environment:
    is_gpu = "H200" in device
    return e.Environment(
        at=0.5,
        torch="2.11.0+cu130",
        python="3.12.3",
        triton="3.6.0" if is_gpu else None,
        device=device if is_gpu else None,
        device_capability="9.0" if is_gpu else None,
        driver="580.65" if is_gpu else None,
        cuda="13.0" if is_gpu else None,
        cpu="AMD EPYC 9654 96-Core Processor",
        os="Linux 6.8",
        compiler="g++ 12.2.0",
        threads=16,
    )


def _workload(device: str) -> e.WorkloadReady:
    return e.WorkloadReady(
        at=0.9,
        entries=(e.Entry(name="Model", kind="model class", line=7),),
        entry="Model",
        phase="inference",
        precision="bf16",
        device="cuda:0" if "H200" in device else "cpu",
        inputs=(
            e.Input(name="tokens", shape=(32, 128, 512), dtype="float32", device="cuda:0"),
            e.Input(name="mask", shape=(32, 128), dtype="bool", device="cuda:0"),
        ),
        copies="loaded_twice",
        parameters=2_099_712,
        parameter_bytes=8_398_848,
    )


def _compile_story(
    config: Config, start: str, breaks: int, phases: int, script: str, rng: random.Random
) -> Iterator[e.Event]:
    scale = 1.0 if start == "cold" else 0.18
    scale *= 6.0 if config.mode == "max-autotune" else 1.0
    began = at = 1.5
    for number in range(phases):
        name, group = PHASES[number % len(PHASES)]
        length = scale * rng.uniform(0.05, 0.9)
        yield e.Phase(at=at, name=name, group=group, compile_id=f"{number // 8}/0", thread=1)
        at += length
        yield e.Phase(at=at, name=name, group=group, state="end", duration_s=length, thread=1)
    for number in range(breaks + 1):
        place = {"file": script, "line": 14 + number, "function": "forward"}
        yield e.Compile(at=at, compile_id=f"{number}/0", trigger="first call", **place)
        yield e.Compile(at=at, compile_id=f"{number}/0", state="captured", graphs=1, ops=7 + number, **place)
        yield e.Compile(at=at, compile_id=f"{number}/0", state="end", guards=21, duration_s=at - began, **place)
        state, saved_s = ("miss", None) if start == "cold" else ("hit", 1.2)
        yield e.Cache(at=at, cache="fx_graph", state=state, key=f"f{number:031x}", saved_s=saved_s)
        yield e.Cache(at=at, cache="aot_autograd", state="bypass", reason="Unsupported custom autograd function")
    for number, (code, kind, reason, line, hints) in enumerate(BREAKS[:breaks]):
        yield e.GraphBreak(
            at=at, compile_id=f"{number}/0", file=script, line=line, function="forward", id=code, kind=kind,
            reason=reason, explanation=reason + " The graph ends here, and Python goes on.", hints=hints,
            stack=(e.Place(file=script, line=line, function="forward"),), in_loop=False,
        )  # fmt: skip
    yield e.Recompile(
        at=at, compile_id="0/1", file=script, line=14, function="forward", guard="self.step == 1",
        reason="self.step == 1 was expected, 2 was found", source="self.step", expected="1", actual="2",
    )  # fmt: skip
    if config.mode in ("reduce-overhead", "max-autotune"):
        yield e.CudaGraph(at=at, state="recorded", file=script, line=14, function="forward")
        if config.dynamic is False:
            yield e.CudaGraph(at=at, state="skipped", reason="mutated inputs (1 instances)", file=script, line=15)
    for number in range(5):
        yield e.Kernel(at=at, name=f"triton_poi_fused_gelu_mul_{number}", kind="triton", launches=1)
    yield e.FirstCall(at=at, side="compiled", duration_s=at - began, capture_s=0.02)
    yield e.Numerics(
        at=at, subject="outputs", verdict="differ" if config.backend == "aot_eager" else "match",
        backend=config.backend, max_abs_error=0.31 if config.backend == "aot_eager" else 2.4e-4, reference_ratio=1.1,
        detail="checked three times against eager and a float64 reference",
    )  # fmt: skip
    yield e.Memory(at=at, side="eager", allocated_peak_bytes=412_000_000, reserved_peak_bytes=500_000_000)
    yield e.Memory(at=at, side="compiled", allocated_peak_bytes=398_000_000, reserved_peak_bytes=520_000_000)


def _timing(speedup: float, blocks: int, device: str, rng: random.Random) -> Iterator[e.Event]:
    clock = "cuda_event" if "H200" in device else "wall"
    eager = 1.24e-3 * rng.uniform(0.995, 1.005)
    for block in range(0, blocks, 20):
        count = min(20, blocks - block)
        for side, centre in (("eager", eager), ("compiled", eager / speedup)):
            values = tuple(centre * _jitter(rng) for _ in range(count))
            at = 10 + block * 0.1
            yield e.Samples(at=at, side=side, block=block, clock=clock, seconds=values, wall_s=values)
            latencies = tuple(value * 1.15 + 1.2e-5 for value in values)
            yield e.Samples(at=at, side=side, block=block, measure="latency", clock="wall", seconds=latencies)
    yield e.Measured(at=24.0, stop="interval" if abs(speedup - 1) > 0.05 else "budget")
    if clock == "cuda_event":
        yield e.GpuBusy(at=24.5, side="eager", seconds=eager * 0.55, launches=11)
        yield e.GpuBusy(at=24.5, side="compiled", seconds=eager / speedup * 0.8, launches=5)


def _jitter(rng: random.Random) -> float:
    """A block's time relative to the fastest: a skew to the right, and now and then something in the way."""
    return 1 + abs(rng.gauss(0, 0.012)) + (0.08 if rng.random() < 0.02 else 0)


def _failed(script: str, device: str) -> Iterator[e.Event]:
    yield e.Hello(start="cold", time=1_796_000_000.0, torch="2.11.0+cu130", python="3.12.3")
    yield _environment(device)
    yield _workload(device)
    yield e.FirstCall(at=1.0, side="eager", duration_s=0.21)
    error = e.RunError(
        stage="compile",
        type="torch._dynamo.exc.Unsupported",
        message="Data-dependent branching\n"
        "  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`)",
        hint="Turn fullgraph off, or use torch.cond.",
        traceback="Traceback (most recent call last):\n"
        + '  File "torch/_dynamo/symbolic_convert.py", line 711, in step\n    self.dispatch(x)\n' * 20
        + f'  File "{script}", line 17, in forward\n    if hidden.abs().mean() > 0.5:\n',
        file=script,
        line=17,
    )
    yield e.Failure(at=3.0, error=error)
    yield e.Ended(at=3.1, outcome="failed", error=error, exit_code=1)
