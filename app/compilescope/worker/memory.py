"""Memory of one side alone: what its calls reach at most, without what the other side keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from compilescope.domain.events import Memory
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs, leaves
from compilescope.worker.models import storage_bytes
from compilescope.worker.steps import Side

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Watches one side. `foreign_bytes`: device memory that others hold meanwhile, which is left out."""

    side: Side
    when: str
    foreign_bytes: int = 0

    def over(self, work: Callable[[], T]) -> tuple[T, Memory]:
        """Run `work`, and tell the peak that it reached."""
        device = self.side.recipe.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
        else:
            _reset_resident_peak()
        result = work()
        self.side.synchronize()
        return result, self._peaks()

    def _peaks(self) -> Memory:
        device = self.side.recipe.device
        if device.type != "cuda":
            return Memory(side=self.side.name, when=self.when, rss_bytes=_resident_peak())
        # a replay allocates nothing, so that only the compiled side's steady state would lack what it works in
        has_graphs = self.side.name == "compiled" and self.when == "steady"
        in_graphs = kept_by_graphs(device) if has_graphs else 0
        return Memory(
            side=self.side.name,
            when=self.when,
            allocated_peak_bytes=max(torch.cuda.max_memory_allocated(device) + in_graphs - self.foreign_bytes, 0),
            reserved_peak_bytes=max(torch.cuda.max_memory_reserved(device) - self.foreign_bytes, 0),
            rss_bytes=_resident_peak(),
        )


def kept_by_graphs(device: torch.device) -> int:
    """Bytes that recorded CUDA graphs keep for their replays and that the allocator counts as free.

    From the segments of private pools, as torch._inductor.cudagraph_trees.get_cudagraph_segments finds them.
    """
    segments: list[dict[str, Any]] = attempt(lambda: torch.cuda.memory_snapshot(), [])  # type: ignore[no-untyped-call]
    return sum(
        row["total_size"] - row["allocated_size"]
        for row in segments
        if row["device"] == device.index and any(row.get("segment_pool_id", ()))
    )


def all_but(side: Side, *inputs: Inputs) -> int:
    """Device memory in use that is not this side's own: the other model, its inputs, its CUDA graphs' pools."""
    device = side.recipe.device
    if device.type != "cuda":
        return 0
    own = storage_bytes(side.held()) + sum(map(holding, inputs))
    return max(torch.cuda.memory_allocated(device) - own, 0)


def holding(inputs: Inputs) -> int:
    """Memory of one set of inputs."""
    return storage_bytes(leaf for _, leaf in leaves(inputs.tree, "") if isinstance(leaf, torch.Tensor))


def _reset_resident_peak() -> None:
    """Linux keeps the peak since the process began, unless it is told to start anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _resident_peak() -> int | None:
    try:
        match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None
