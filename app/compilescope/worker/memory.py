"""Memory of one side alone: what its calls reach at most, without what the other side keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

from compilescope.domain.events import Memory
from compilescope.worker.models import storage_bytes
from compilescope.worker.steps import Side

T = TypeVar("T")


def watch(side: Side, other: Side | None, when: str, work: Callable[[], T]) -> tuple[T, Memory]:
    """Run `work`, and tell the peak it reached."""
    device = side.recipe.device
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    else:
        _reset_resident_peak()
    result = work()
    side.synchronize()
    return result, _peaks(side, other, when)


def _peaks(side: Side, other: Side | None, when: str) -> Memory:
    device = side.recipe.device
    if device.type != "cuda":
        return Memory(side=side.name, when=when, rss_bytes=_resident_peak())
    foreign = 0 if other is None or other.model is side.model else storage_bytes(other.held())
    return Memory(
        side=side.name,
        when=when,
        allocated_peak_bytes=max(torch.cuda.max_memory_allocated(device) - foreign, 0),
        reserved_peak_bytes=max(torch.cuda.max_memory_reserved(device) - foreign, 0),
        rss_bytes=_resident_peak(),
    )


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
