"""What else may move the numbers: the GPU's clock, heat and other work, and the load of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import torch

from compilescope.domain.events import Noise, Warning
from compilescope.domain.statistics import median
from compilescope.worker.environment import attempt
from compilescope.worker.nvml import Card, card_of

BUSY_SHARE = 0.5
# by how much the clocks of two sides may differ, as a share; a card's steps are of 15 MHz, which is below 1 %
MOST_WANDERING = 0.03


def look(device: torch.device) -> Noise:
    """The machine's state now; what cannot be known stays None."""
    load = attempt(lambda: os.getloadavg()[0], None)
    card = attempt(lambda: card_of(device), None)
    return Noise(load_average=load) if card is None else attempt(lambda: _gpu(card, load), Noise(load_average=load))


def _gpu(card: Card, load: float | None) -> Noise:
    clock, temperature = card.clock_mhz(), card.temperature_c()
    return Noise(
        clock_mhz=None if clock is None else float(clock),
        temperature_c=None if temperature is None else float(temperature),
        throttle=card.throttle(),
        processes=card.other_processes(),
        load_average=load,
    )


def doubts(before: Noise, after: Noise) -> Iterator[Warning]:
    """What the reader of the numbers should know about the machine while it was timed."""
    if after.throttle:
        yield Warning(
            code="gpu_throttled",
            message=f"The GPU was held back while it was timed: {', '.join(after.throttle)}.",
            hint="Let it cool down, or lock its clock, and measure again.",
        )
    if (others := max(before.processes or 0, after.processes or 0)) > 0:
        yield Warning(
            code="gpu_shared",
            message=f"{others} other process{'es' if others > 1 else ''} used the GPU while it was timed.",
            hint="Stop them, or choose another device.",
        )
    cores = os.cpu_count() or 1
    # this process itself keeps its threads busy, so only the load before the timing is others' work
    if before.load_average is not None and before.load_average > cores * (1 + BUSY_SHARE):
        yield Warning(
            code="busy_machine",
            message=f"The machine was busy with other work: load {before.load_average:.1f} on {cores} cores.",
            hint="Times vary more than they would on a quiet machine; measure again when it is quiet.",
        )


def wandering(eager_mhz: Sequence[int], compiled_mhz: Sequence[int]) -> Iterator[Warning]:
    """Of the clocks beside the blocks of each side, whether they were the same."""
    if not eager_mhz or not compiled_mhz:
        return
    eager, compiled = median(eager_mhz), median(compiled_mhz)
    if abs(compiled / eager - 1) > MOST_WANDERING:
        yield Warning(
            code="clock_wanders",
            message=f"The GPU ran at {eager:.0f} MHz for eager and at {compiled:.0f} MHz for the compiled model.",
            hint="Part of the difference is the card's clock, not the code. Lock it (nvidia-smi --lock-gpu-clocks) to "
            "compare the code alone.",
        )
