"""Tensors as plain numbers: a piece at a time, in rows, and how large they and their differences are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

PIECE = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Norm:
    """Root mean square and largest of some values."""

    rms: float = 0.0
    peak: float = 0.0

    def of(self, size: float) -> Norm:
        """As shares of a size."""
        return Norm(rms=share(self.rms, size), peak=share(self.peak, size))


def norm(value: torch.Tensor, exact: torch.Tensor | None = None) -> Norm:
    """Of what lies between two tensors, or of one, over the elements that are finite."""
    total, peak = 0.0, 0.0
    # one buffer for all pieces: fresh memory costs more than the arithmetic
    buffer = torch.empty(min(PIECE, value.numel()), dtype=torch.float64, device=value.device)
    for part, *rest in pieces(value, *(() if exact is None else (exact,))):
        gap = buffer[: part.numel()].copy_(part)
        if rest:
            gap.sub_(rest[0])
        largest = float(gap.abs_().max())
        if not math.isfinite(largest):
            gap = gap[gap.isfinite()]
            largest = float(gap.max()) if gap.numel() else 0.0
        total += float(gap.dot(gap))
        peak = max(peak, largest)
    return Norm(rms=math.sqrt(total / max(value.numel(), 1)), peak=peak)


def size_of_all(values: Iterable[torch.Tensor]) -> float:
    """The root mean square of the numbers of several tensors."""
    rows = [(norm(value).rms, value.numel()) for value in map(as_real, values)]
    return math.sqrt(sum(rms**2 * count for rms, count in rows) / max(sum(count for _, count in rows), 1))


def most(norms: Iterable[Norm]) -> Norm:
    rows = [Norm(), *norms]
    return Norm(rms=max(row.rms for row in rows), peak=max(row.peak for row in rows))


def share(value: float, whole: float) -> float:
    return value / whole if whole > 0 else 0.0 if value == 0 else math.inf


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as ordinary real numbers: of a sparse one those it holds, of a nested one those of all its
    parts, of a complex one both parts."""
    tensor = tensor.detach()
    if tensor.is_nested:
        tensor = torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def in_rows(value: torch.Tensor) -> torch.Tensor:
    """The vectors along the last axis; of a vector, its elements."""
    value = as_real(value)
    return value.reshape(-1, value.shape[-1] if value.dim() > 1 else 1)


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same tensors a piece at a time, so that comparing costs little memory beside them."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), PIECE):
        yield tuple(tensor[start : start + PIECE] for tensor in flat)
