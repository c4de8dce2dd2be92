"""Compares values: structure, dtype, shape, NaN positions, and closeness by dtype. Large tensors go in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker.inputs import leaves

PIECE = 1 << 22
# as torch.testing.assert_close: relative, absolute
_TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
_COARSE = (1.6e-2, 1e-2)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How two values compare. `reason` is empty where they are close; `is_rounding` where only closeness failed."""

    equal: bool = True
    reason: str = ""
    is_rounding: bool = False
    max_abs_error: float | None = None
    path: str = ""

    @property
    def close(self) -> bool:
        return not self.reason


def compare(expected: Any, actual: Any, name: str) -> Difference:
    """Compare two structures part by part; the first fault that is no rounding wins, then the largest error."""
    mine, theirs = dict(leaves(expected, name)), dict(leaves(actual, name))
    if type(expected).__name__ != type(actual).__name__:
        return Difference(
            equal=False, reason=f"{name} is a {type(actual).__name__} instead of a {type(expected).__name__}", path=name
        )
    if mine.keys() != theirs.keys():
        odd = sorted(mine.keys() ^ theirs.keys())[0]
        return Difference(equal=False, reason=f"{odd} is in one of the two only", path=odd)
    rows = [_leaf(path, value, theirs[path]) for path, value in mine.items()]
    return _worst(rows)


def _worst(rows: list[Difference]) -> Difference:
    errors = [row.max_abs_error for row in rows if row.max_abs_error is not None]
    largest = max(errors, default=None)
    hard = next((row for row in rows if row.reason and not row.is_rounding), None)
    soft = max((row for row in rows if row.reason), key=lambda row: row.max_abs_error or 0.0, default=None)
    chosen = hard or soft or Difference()
    return Difference(
        equal=all(row.equal for row in rows),
        reason=chosen.reason,
        is_rounding=chosen.is_rounding,
        max_abs_error=largest,
        path=chosen.path,
    )


def _leaf(path: str, expected: Any, actual: Any) -> Difference:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _tensors(path, expected.detach(), actual.detach())
    if isinstance(expected, torch.Tensor) or isinstance(actual, torch.Tensor):
        return Difference(equal=False, reason=f"{path} is a tensor in one of the two only", path=path)
    if isinstance(expected, float) and isinstance(actual, float):
        same = expected == actual or (math.isnan(expected) and math.isnan(actual))
        close = same or math.isclose(expected, actual, rel_tol=1.3e-6, abs_tol=1e-5)
        reason = "" if close else f"{path} is {actual!r} instead of {expected!r}"
        return Difference(equal=same, reason=reason, path=path, max_abs_error=abs(expected - actual))
    if isinstance(expected, (bool, int, str, bytes, type(None))) and expected != actual:
        return Difference(equal=False, reason=f"{path} is {actual!r} instead of {expected!r}", path=path)
    return Difference()


def _tensors(path: str, expected: torch.Tensor, actual: torch.Tensor) -> Difference:
    for word, one, two in (
        ("shape", tuple(expected.shape), tuple(actual.shape)),
        ("dtype", expected.dtype, actual.dtype),
        ("device", expected.device, actual.device),
        ("layout", expected.layout, actual.layout),
    ):
        if one != two:
            return Difference(equal=False, reason=f"{path} has {word} {two} instead of {one}", path=path)
    expected, actual = as_real(expected), as_real(actual)
    if expected.shape != actual.shape:
        return Difference(equal=False, reason=f"{path} has other non-zero elements", path=path)
    return _values(path, expected, actual)


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as ordinary real numbers: of a sparse one those it holds, of a complex one both parts."""
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _values(path: str, expected: torch.Tensor, actual: torch.Tensor) -> Difference:
    equal, faults, worst = True, 0, 0.0
    for one, two in pieces(expected, actual):
        if torch.equal(one, two):
            continue
        if not one.is_floating_point():
            return Difference(equal=False, reason=f"{path} has other whole numbers", path=path)
        relative, absolute = _TOLERANCES.get(one.dtype, _COARSE)
        wide = torch.float64 if one.dtype is torch.float64 else torch.float32
        one, two = one.to(wide), two.to(wide)
        if not _all_finite(one, two):
            finite = one.isfinite()
            if not torch.equal(one.isnan(), two.isnan()):
                return Difference(equal=False, reason=f"{path} is NaN at other places", path=path)
            if not torch.equal(finite, two.isfinite()) or not torch.equal(one[one.isinf()], two[two.isinf()]):
                return Difference(equal=False, reason=f"{path} is infinite at other places", path=path)
            one, two = one[finite], two[finite]
            if not one.numel() or torch.equal(one, two):
                continue
        equal = False
        gap = (one - two).abs_()
        worst = max(worst, float(gap.max()))
        faults += int((gap > one.abs().mul_(relative).add_(absolute)).sum())
    reason = f"{faults} of {expected.numel()} elements of {path} differ, by up to {worst:.3g}" if faults else ""
    return Difference(equal=equal, reason=reason, is_rounding=bool(faults), max_abs_error=worst, path=path)


def _all_finite(*tensors: torch.Tensor) -> bool:
    """By the extremes: one pass without a copy, where a mask would take several."""
    return all(math.isfinite(float(edge)) for tensor in tensors for edge in tensor.aminmax())


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same tensors a piece at a time, so that comparing costs little memory beside them."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), PIECE):
        yield tuple(tensor[start : start + PIECE] for tensor in flat)
