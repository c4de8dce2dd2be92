"""What was taken of a script, and what the reader should know of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from compilescope.domain.events import Warning, WorkloadReady
from compilescope.domain.workload import MEASURED, Job
from compilescope.worker import setting
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs
from compilescope.worker.models import storage_bytes
from compilescope.worker.pair import SHARED, Pair, Pairs


def told(job: Job, pairs: Pairs, pair: Pair, inputs: Inputs, device: torch.device, *, is_pair: bool) -> WorkloadReady:
    """`is_pair`: whether two models were made."""
    assert job.workload is not None
    model = pair.eager.model
    return WorkloadReady(
        entries=tuple(pairs.entries),
        entry=pairs.entry.name,
        phase=job.workload.phase,
        precision=job.workload.precision,
        device=str(device),
        inputs=pair.eager.source.describe(inputs),
        copies=pair.copies if is_pair else None,
        copies_reason=(pair.reason or None) if is_pair else None,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        parameter_bytes=storage_bytes(iter(model.parameters())),
        float32_matmul_precision=attempt(torch.get_float32_matmul_precision, None),
    )


def doubts(job: Job, pair: Pair, device: torch.device) -> Iterator[Warning]:
    assert job.workload is not None
    if pair.unwrapped:
        yield Warning(
            code="script_compiles",
            message=f"The script compiles {', '.join(pair.unwrapped[:4])} itself. "
            "Here that is undone, and the whole model is compiled.",
            hint="The numbers are those of torch.compile on the whole model.",
        )
    yield from setting.doubts(job.workload, job.measurement, device)
    yield from setting.own_precision(job.workload, pair.eager.model)
    if job.task in MEASURED and pair.copies == SHARED:
        yield Warning(
            code="shared_model",
            message="Eager and compiled share one model: "
            + (pair.reason or "it could be neither loaded twice nor copied."),
            hint="What a call changes is put back between the two.",
        )
