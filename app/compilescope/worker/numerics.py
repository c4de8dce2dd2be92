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
    if expected.layout is not torch.strided:
        expected, actual = _plain(expected), _plain(actual)
        if expected.shape != actual.shape:
            return Difference(equal=False, reason=f"{path} has other non-zero elements", path=path)
    if expected.is_quantized:
        expected, actual = expected.dequantize(), actual.dequantize()
    if expected.is_complex():
        expected, actual = torch.view_as_real(expected.resolve_conj()), torch.view_as_real(actual.resolve_conj())
    return _values(path, expected, actual)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.coalesce().values() if tensor.layout is torch.sparse_coo else tensor.to_dense()


def _values(path: str, expected: torch.Tensor, actual: torch.Tensor) -> Difference:
    equal, faults, worst = True, 0, 0.0
    for one, two in pieces(expected, actual):
        if torch.equal(one, two):
            continue
        if not one.is_floating_point():
            return Difference(equal=False, reason=f"{path} has other whole numbers", path=path)
        if not torch.equal(one.isnan(), two.isnan()):
            return Difference(equal=False, reason=f"{path} is NaN at other places", path=path)
        finite = one.isfinite()
        if not torch.equal(finite, two.isfinite()) or not torch.equal(one[one.isinf()], two[two.isinf()]):
            return Difference(equal=False, reason=f"{path} is infinite at other places", path=path)
        relative, absolute = _TOLERANCES.get(one.dtype, _COARSE)
        wide = torch.float64 if one.dtype is torch.float64 else torch.float32
        one, two = one[finite].to(wide), two[finite].to(wide)
        if not one.numel() or torch.equal(one, two):
            continue
        equal = False
        gap = (one - two).abs()
        worst = max(worst, float(gap.max()))
        faults += int((gap > absolute + relative * one.abs()).sum())
    reason = f"{faults} of {expected.numel()} elements of {path} differ, by up to {worst:.3g}" if faults else ""
    return Difference(equal=equal, reason=reason, is_rounding=bool(faults), max_abs_error=worst, path=path)


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same tensors a piece at a time, so that comparing costs little memory beside them."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), PIECE):
        yield tuple(tensor[start : start + PIECE] for tensor in flat)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Root mean square errors against an fp64 reference."""

    eager: float
    compiled: float
    floor: float
    factor: float

    @property
    def passes(self) -> bool:
        return self.compiled <= self.factor * self.eager + self.floor

    @property
    def ratio(self) -> float | None:
        return self.compiled / self.eager if self.eager > 0 else None


def accuracy(reference: Any, eager: Any, compiled: Any, *, is_half: bool) -> Accuracy | None:
    """The two sides' errors against a reference of double precision, over the worst part; None where it has no such."""
    truth, mine, theirs = (dict(leaves(value, "")) for value in (reference, eager, compiled))
    rows = []
    for path, exact in truth.items():
        one, two = mine.get(path), theirs.get(path)
        if not (isinstance(exact, torch.Tensor) and isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)):
            continue
        if not one.is_floating_point() or exact.shape != one.shape or exact.dtype is not torch.float64:
            continue
        half = is_half or one.dtype in (torch.float16, torch.bfloat16)
        rows.append(_errors(exact.detach(), one.detach(), two.detach(), is_half=half))
    return max(rows, key=lambda row: row.compiled - row.factor * row.eager - row.floor, default=None)


def _errors(exact: torch.Tensor, one: torch.Tensor, two: torch.Tensor, *, is_half: bool) -> Accuracy:
    sums = [0.0, 0.0, 0.0]
    for part, eager, compiled in pieces(exact, one, two):
        good = part.isfinite() & eager.isfinite() & compiled.isfinite()
        part, eager, compiled = part[good], eager[good].double(), compiled[good].double()
        sums[0] += float((eager - part).square().sum())
        sums[1] += float((compiled - part).square().sum())
        sums[2] += float(part.square().sum())
    count = max(exact.numel(), 1)
    return Accuracy(
        eager=math.sqrt(sums[0] / count),
        compiled=math.sqrt(sums[1] / count),
        floor=(1e-3 if is_half else 1e-4) * math.sqrt(sums[2] / count),
        factor=3.0 if is_half else 2.0,
    )


def relative_error(expected: Any, actual: Any) -> float | None:
    """Root mean square of the difference over that of the values, of the worst part; None where nothing compares."""
    mine, theirs = dict(leaves(expected, "")), dict(leaves(actual, ""))
    shares = []
    for path, one in mine.items():
        two = theirs.get(path)
        if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor) and one.is_floating_point():
            shares.append(_share(one.detach(), two.detach()))
    return max(shares, default=None)


def _share(one: torch.Tensor, two: torch.Tensor) -> float:
    gap = size = 0.0
    for left, right in pieces(one, two):
        good = left.isfinite() & right.isfinite()
        left, right = left[good].double(), right[good].double()
        gap += float((left - right).square().sum())
        size += float(left.square().sum())
    return math.sqrt(gap / size) if size else 0.0 if not gap else math.inf
