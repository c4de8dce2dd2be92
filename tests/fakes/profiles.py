"""What the profiler told of a call: on a GPU by hand, with kernels as an encoder has them, and on a CPU as recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compilescope.domain import events as e

RECORDED = Path(__file__).resolve().parents[1] / "transcripts" / "profiles" / "cpu_training_step.jsonl"

GEMM = e.KernelTime(
    name="sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
    seconds=4e-4,
    launches=24,
    operator="aten::addmm",
    flops=2.97e11,
    bytes=4e8,
    dtype="bf16",
)
GELU = e.KernelTime(
    name="void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(int)::{lambda()#2}>(int)",
    seconds=2e-4,
    launches=6,
    operator="aten::gelu",
    bytes=7.2e8,
)
NORM = e.KernelTime(
    name="void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)",
    seconds=1e-4,
    launches=12,
    operator="aten::native_layer_norm",
    bytes=1e8,
)
FUSED = e.KernelTime(name="triton_poi_fused_addmm_gelu_view_3", kind="triton", seconds=1e-4, launches=6, bytes=3.6e8)


def profile(side: str, kernels: Sequence[e.KernelTime], *, launches: float) -> e.Profile:
    """Of one side on a GPU."""
    seconds = sum(kernel.seconds for kernel in kernels)
    return e.Profile(
        side=side,
        clock="device",
        calls=20,
        active_s=seconds,
        seconds=seconds,
        launches=launches,
        names=len(kernels),
        kernels=tuple(kernels),
        flops={"bf16": 2.97e11},
    )


def on_gpu() -> list[e.Event]:
    """Eager 700 µs of kernels a call, compiled 500 µs."""
    eager = profile("eager", (GEMM, GELU, NORM), launches=180)
    compiled = profile("compiled", (GEMM, FUSED), launches=30)
    busy = [e.GpuBusy(side=row.side, seconds=row.seconds, launches=row.launches) for row in (eager, compiled)]
    return [*busy, eager, compiled]


def on_cpu() -> list[e.Event]:
    """A training step of a convolution, a layer norm and a linear layer, recorded on a busy machine."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := e.decode(line))]
