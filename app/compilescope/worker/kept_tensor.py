"""One tensor as it was: whether it is another now, and its form, memory and values put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.changes import Change
from compilescope.worker.reach import Path


class KeptTensor:
    """One tensor that had these values: a copy of them, or, where `copied` is not, its version and a fingerprint."""

    def __init__(self, path: Path, tensor: torch.Tensor, *, copied: bool, on_host: bool) -> None:
        self.path = path
        self.tensor = tensor
        self._form = form(tensor)
        # holds the memory itself: a tensor that gets other memory can have this one back
        self._alias = _alias(tensor)
        self._version = _version(tensor)
        self.copy = _copy(tensor, on_host=on_host) if copied else None
        self._print = None if self.copy is not None else fingerprint(tensor)

    @property
    def bytes(self) -> int:
        return _size(self.copy) if self.copy is not None else 0

    def watched(self) -> tuple[Path, torch.Tensor, object]:
        return self.path, self.tensor, self._form

    def change(self) -> Change | None:
        same_form = form(self.tensor) == self._form
        if same_form and not self._has_other_values():
            return None
        restore = None
        size = 0
        if self.copy is not None:
            restore, size = self._restore(same_form=same_form)
        return Change(path=self.path, restore=restore, tensor=self.tensor, bytes=size, places=(self.path,))

    def _has_other_values(self) -> bool:
        if self.copy is not None:
            return not reach.same_values(self.tensor.detach().to(self.copy.device), self.copy)
        # writes through `.data`, by NumPy or by a kernel of one's own raise no version
        return _version(self.tensor) != self._version or fingerprint(self.tensor) != self._print

    def _restore(self, *, same_form: bool) -> tuple[Callable[[], None], int]:
        tensor, old = self.tensor, self.copy
        assert old is not None
        if not same_form:
            alias = self._alias
            return (lambda: _replace(tensor, alias, old)), _size(old)
        where = _box(tensor.detach(), old) if old.device == tensor.device else None
        if where is None:
            return (lambda: _write(tensor, old)), _size(old)
        # a cache of many megabytes changes in a few rows
        target, part = tensor.detach()[where], old[where].clone()
        return (lambda: _write(target, part)), _size(part)


def form(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What makes a tensor another one although it is the same object."""
    stride = tensor.stride() if tensor.layout is torch.strided and not tensor.is_nested else None
    shape = None if tensor.is_nested else tuple(tensor.shape)
    return shape, stride, _storage_id(tensor), tensor.dtype, tensor.requires_grad


def _storage_id(tensor: torch.Tensor) -> int | None:
    """Of the storage, not of its address, which changes where it grows."""
    try:
        return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else None
    except Exception:  # wrapper subclasses have no storage of their own
        return None


def _alias(tensor: torch.Tensor) -> torch.Tensor | None:
    try:
        return tensor.detach()
    except Exception:  # whatever a tensor class refuses
        return None


def fingerprint(tensor: torch.Tensor) -> object:
    """Two sums over the bytes, without a copy; None where a tensor has no plain memory."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or not tensor.numel():
        return None
    try:
        flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
        # bytes as 64-bit numbers where they fit: summing narrow ones into wide ones is a hundred times slower
        if flat.numel() % 8 == 0 and flat.storage_offset() % 8 == 0:
            flat = flat.view(torch.int64)
        some = flat[:: max(1, flat.numel() // 4096)].to(torch.int64)
        weights = torch.arange(1, some.numel() + 1, device=some.device)
        return int(flat.sum()), int((some * weights).sum())
    except Exception:  # whatever a tensor class refuses
        return None


def _version(tensor: torch.Tensor) -> int:
    try:
        return int(tensor._version)
    except Exception:  # inference tensors count none
        return -1


def _copy(tensor: torch.Tensor, *, on_host: bool) -> torch.Tensor | None:
    try:
        with torch.no_grad():
            twin = tensor.detach()
            if on_host and twin.device.type != "cpu":
                return twin.to("cpu", copy=True)
            # strides are part of the form: a clone may have others where memory overlaps or has gaps
            return twin.clone(memory_format=torch.preserve_format)
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception:  # whatever a tensor class refuses
        return None


def _size(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.numel() * tensor.element_size())
    except Exception:  # whatever a tensor class refuses
        return 0


def _write(tensor: torch.Tensor, old: torch.Tensor) -> None:
    tensor.detach().copy_(old)


def _replace(tensor: torch.Tensor, alias: torch.Tensor | None, old: torch.Tensor) -> None:
    """Give a tensor its old form and memory back, with the values that it had."""
    with torch.inference_mode(mode=False):
        twin = old.to(tensor.device, copy=True) if alias is None else alias
    try:
        tensor.data = twin
    except RuntimeError:
        tensor.set_(twin)  # type: ignore[call-overload]
    _write(tensor, old)


def _box(now: torch.Tensor, old: torch.Tensor) -> tuple[slice, ...] | None:
    """The ranges along each axis that hold all that differs; None for the whole, or where that cannot be told."""
    if now.layout is not torch.strided or now.is_nested or now.is_quantized or not now.dim() or not now.numel():
        return None
    try:
        different = (now != old) | ((now != now) != (old != old))
        if different.is_complex():
            return None
        ranges = []
        for axis in range(different.dim()):
            others = [other for other in range(different.dim()) if other != axis]
            hits = (different.any(dim=others) if others else different).nonzero()
            if not len(hits):
                return None
            ranges.append(slice(int(hits[0]), int(hits[-1]) + 1))
        return tuple(ranges)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
