"""What a workload asks of torch as a whole: device, precision, threads; and the sizes that it sweeps."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from compilescope.domain.events import Warning
from compilescope.domain.workload import Measurement, Workload
from compilescope.worker.environment import attempt
from compilescope.worker.errors import WorkerError


def apply(workload: Workload) -> None:
    """Set what holds for the whole process. The script comes later and may set it otherwise."""
    if workload.threads is not None:
        if workload.threads < 1:
            raise WorkerError(f"{workload.threads} threads cannot work.", hint="Choose one or more.")
        torch.set_num_threads(workload.threads)
    if workload.precision == "tf32":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True


def doubts(workload: Workload, measurement: Measurement, device: torch.device) -> Iterator[Warning]:
    """What was asked for and means nothing on this device."""
    if device.type != "cpu":
        return
    if workload.precision == "tf32":
        yield Warning(
            code="tf32_on_cpu",
            message="TF32 is a format of NVIDIA GPUs: on the CPU this is fp32.",
            hint="Choose a CUDA device, or bf16.",
        )
    if measurement.l2_flush:
        yield Warning(
            code="l2_flush_on_cpu",
            message="The L2 cache was not flushed: on a CPU calls are timed back to back, with nothing between them.",
            hint="Choose a CUDA device, or leave the flush out.",
        )


def own_precision(workload: Workload, model: nn.Module) -> Iterator[Warning]:
    """What "fp32" does not say of a model whose weights are something else."""
    weights = (parameter.dtype for parameter in model.parameters() if parameter.is_floating_point())
    own = sorted({str(dtype).removeprefix("torch.") for dtype in weights if dtype != torch.float32})
    if own and workload.precision in ("fp32", "tf32"):
        yield Warning(
            code="own_precision",
            message=f"The script makes weights in {' and '.join(own)}, and they are left so: {workload.precision} "
            "adds no autocast and changes no type.",
            hint="Read the figures as those of the script's own types.",
        )


def choose_device(name: str | None) -> torch.device:
    """The device of that name, made the current one; without a name, the first CUDA device or else the CPU."""
    if name is None:
        return torch.device("cuda:0" if attempt(torch.cuda.is_available, False) else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise WorkerError(f"There is no device {name}.", hint="Choose cpu, or cuda, cuda:1 ….") from None
    if device.type not in ("cpu", "cuda"):
        # its calls return before their work is done, and nothing here waits for it
        raise WorkerError(f"Calls on {name} cannot be timed here.", hint="Choose cpu, or cuda, cuda:1 ….")
    if device.type == "cuda":
        count = torch.cuda.device_count() if attempt(torch.cuda.is_available, False) else 0
        if (device.index or 0) >= count:
            raise WorkerError(f"This machine has no device {name}.", hint="Choose another device; cpu always works.")
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    return device


def sizes_of(workload: Workload) -> list[dict[str, list[int]]]:
    """The shapes to measure, first to last; inputs with fewer sizes keep their last."""
    chosen = {name: [list(size) for size in sizes] for name, sizes in (workload.inputs or {}).items() if sizes}
    count = max((len(sizes) for sizes in chosen.values()), default=1)
    return [{name: sizes[min(index, len(sizes) - 1)] for name, sizes in chosen.items()} for index in range(count)]
