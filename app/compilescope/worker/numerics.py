"""Compares values: structure, dtype, shape, NaN positions, and closeness by dtype. Large tensors go in pieces."""

from __future__ import annotations

import cmath
import inspect
import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from compilescope.worker.inputs import leaves
from compilescope.worker.reach import inner_tensors

PIECE = 1 << 22
# as torch.testing.assert_close: relative, absolute
_TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
_COARSE = (1.6e-2, 1e-2)
# values that are compared as they are
_PLAIN = (str, bytes, type(None), torch.dtype, torch.device)
# how far objects within objects are followed, and how many parts there may be
DEPTH, MOST_PARTS = 4, 10_000
# the share of whole numbers that ties may decide in a coarse type
FEW_FLIPS = 0.05


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How two values compare. `reason` is empty where they are close; `is_rounding` where only closeness failed.

    `flipped`: the share of whole numbers that differ, of the part with the most, `flip_path`; ties may decide indices.
    `unseen`: a part that could not be looked into, with its type.
    """

    equal: bool = True
    reason: str = ""
    is_rounding: bool = False
    flipped: float = 0.0
    flip_path: str = ""
    max_abs_error: float | None = None
    path: str = ""
    unseen: str = ""

    @property
    def close(self) -> bool:
        return not self.reason

    @property
    def is_fault(self) -> bool:
        """What neither rounding nor a tie explains."""
        return bool(self.reason) and not self.is_rounding and not self.flipped


def compare(expected: Any, actual: Any, name: str, scale: float | None = None) -> Difference:
    """Compare two structures part by part; the first fault that is no rounding wins, then the largest error.

    `scale`: the size of the values to which an absolute tolerance belongs; by default, that of each tensor.
    """
    try:
        return _compared(expected, actual, name, scale)
    except Exception as error:  # classes of the script's and of any library; what was timed must not be lost by them
        return Difference(equal=False, unseen=f"{name} ({type(error).__name__}: {error})"[:200])


def _compared(expected: Any, actual: Any, name: str, scale: float | None) -> Difference:
    if type(expected).__name__ != type(actual).__name__:
        return Difference(
            equal=False, reason=f"{name} is a {type(actual).__name__} instead of a {type(expected).__name__}", path=name
        )
    odd = {path for path, _ in leaves(expected, name)} ^ {path for path, _ in leaves(actual, name)}
    if odd:
        return Difference(equal=False, reason=f"{min(odd)} is in one of the two only", path=min(odd))
    mine, theirs = dict(parts(expected, name)), dict(parts(actual, name))
    rows = [_leaf(path, value, theirs[path], scale) for path, value in mine.items() if path in theirs]
    # what an object keeps for itself may be there on one side only, such as a value that it has worked out once
    rows += [Difference(unseen=f"{path} (in one of the two only)") for path in sorted(mine.keys() ^ theirs.keys())[:1]]
    return _worst(rows)


def _worst(rows: list[Difference]) -> Difference:
    errors = [row.max_abs_error for row in rows if row.max_abs_error is not None]
    largest = max(errors, default=None)
    hard = next((row for row in rows if row.is_fault), None)
    soft = max((row for row in rows if row.is_rounding), key=lambda row: row.max_abs_error or 0.0, default=None)
    flip = max((row for row in rows if row.flipped), key=lambda row: row.flipped, default=None)
    chosen = hard or soft or flip or Difference()
    return Difference(
        equal=all(row.equal for row in rows),
        reason=chosen.reason,
        is_rounding=chosen.is_rounding,
        flipped=flip.flipped if flip and not hard else 0.0,
        flip_path=flip.path if flip and not hard else "",
        max_abs_error=largest,
        path=chosen.path,
        unseen=next((row.unseen for row in rows if row.unseen), ""),
    )


def _leaf(path: str, expected: Any, actual: Any, scale: float | None) -> Difference:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _tensors(path, expected.detach(), actual.detach(), scale)
    if isinstance(expected, torch.Tensor) or isinstance(actual, torch.Tensor):
        return Difference(equal=False, reason=f"{path} is a tensor in one of the two only", path=path)
    if isinstance(expected, (int, float, complex)) and isinstance(actual, (int, float, complex)):
        return _numbers(path, expected, actual)
    if _is_same(expected, actual):
        return Difference()
    if type(expected) is not type(actual):
        what = f"a {type(actual).__name__} instead of a {type(expected).__name__}"
        return Difference(equal=False, reason=f"{path} is {what}", path=path)
    if isinstance(expected, _PLAIN):
        return Difference(equal=False, reason=f"{path} is {actual!r} instead of {expected!r}", path=path)
    return Difference(unseen=f"{path} ({type(expected).__name__})")


def _numbers(path: str, expected: complex, actual: complex) -> Difference:
    same = expected == actual or (cmath.isnan(expected) and cmath.isnan(actual))
    is_exact = isinstance(expected, int) and isinstance(actual, int)
    close = same or (not is_exact and cmath.isclose(expected, actual, rel_tol=1.3e-6, abs_tol=1e-5))
    reason = "" if close else f"{path} is {actual!r} instead of {expected!r}"
    error = None if is_exact else 0.0 if same else abs(expected - actual)
    is_rounding = not close and not is_exact and cmath.isfinite(expected) and cmath.isfinite(actual)
    return Difference(equal=same, reason=reason, is_rounding=is_rounding, path=path, max_abs_error=error)


def _is_same(expected: Any, actual: Any) -> bool:
    """Whether two objects call themselves equal, or are things that compute and no results."""
    if all(inspect.isroutine(value) or isinstance(value, (type, nn.Module)) for value in (expected, actual)):
        return True
    try:
        return (expected == actual) is True
    except Exception:  # whatever a class of the script's makes of it
        return False


def parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """`leaves`, and of an object of another class (a distribution, a cache) the tensors among its attributes.

    Its other attributes may count calls or tell the time, and are left alone; without a tensor it is a part itself.
    """
    for where, leaf in leaves(value, path):
        inside = list(itertools.islice(_tensors_in(leaf, where, DEPTH, set()), MOST_PARTS))
        for place, part in inside or [(where, _as_tensor(leaf))]:
            yield from _plain_parts(place, part)


def _plain_parts(path: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Of a tensor that keeps its values in others (jagged, distributed) those others: some refuse all arithmetic."""
    inside = inner_tensors(part) if isinstance(part, torch.Tensor) else [part]
    if len(inside) == 1 and inside[0] is part:
        yield path, part
    else:
        yield from ((f"{path}.{index}", tensor) for index, tensor in enumerate(inside))


def _tensors_in(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Each object once; a module only where it is a result itself, as some caches are. What holds several things and
    is not known, such as a set, comes as it is."""
    for where, leaf in leaves(list(value) if isinstance(value, deque) else value, path):
        found = _as_tensor(leaf)
        if isinstance(found, torch.Tensor):
            yield where, found
        elif depth and id(leaf) not in seen and _holds_values(leaf, is_result=depth == DEPTH):
            seen.add(id(leaf))
            for name, item in vars(leaf).items():
                yield from _tensors_in(item, f"{where}.{name}", depth - 1, seen)
        elif depth < DEPTH and _is_unknown_holder(leaf):
            yield where, leaf


def _holds_values(value: Any, *, is_result: bool) -> bool:
    if isinstance(value, (type, ModuleType)) or inspect.isroutine(value) or not hasattr(value, "__dict__"):
        return False
    return is_result or not isinstance(value, nn.Module)


def _is_unknown_holder(value: Any) -> bool:
    has_slots = any(getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
    is_plain = isinstance(value, (*_PLAIN, int, float, complex, type, nn.Module)) or inspect.isroutine(value)
    return not is_plain and (has_slots or (hasattr(value, "__iter__") and hasattr(value, "__len__") and len(value) > 0))


def _as_tensor(value: Any) -> Any:
    """An array as a tensor; NumPy need not be there."""
    if not hasattr(value, "__array_interface__") or isinstance(value, torch.Tensor):
        return value
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return value


def _tensors(path: str, expected: torch.Tensor, actual: torch.Tensor, scale: float | None) -> Difference:
    for word, one, two in (
        ("shape", _shape(expected), _shape(actual)),
        ("dtype", expected.dtype, actual.dtype),
        ("device", expected.device, actual.device),
        ("layout", expected.layout, actual.layout),
    ):
        if one != two:
            return Difference(equal=False, reason=f"{path} has {word} {two} instead of {one}", path=path)
    if expected.layout is torch.sparse_coo and not torch.equal(*(t.coalesce().indices() for t in (expected, actual))):
        return Difference(equal=False, reason=f"{path} has other non-zero elements", path=path)
    expected, actual = as_real(expected), as_real(actual)
    if expected.shape != actual.shape:
        return Difference(equal=False, reason=f"{path} has other non-zero elements", path=path)
    return _values(path, expected, actual, scale)


def _shape(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a nested tensor, those of its parts."""
    return tuple(tuple(part.shape) for part in tensor.unbind()) if tensor.is_nested else tuple(tensor.shape)


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


def _values(path: str, expected: torch.Tensor, actual: torch.Tensor, scale: float | None) -> Difference:
    equal, faults, worst, is_float = True, 0, 0.0, expected.is_floating_point()
    for one, two in pieces(expected, actual):
        if torch.equal(one, two):
            continue
        if not is_float:
            equal, faults = False, faults + int((one != two).sum())
            continue
        relative, absolute = _TOLERANCES.get(one.dtype, _COARSE)
        scale = _size(expected) if scale is None else scale
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
        faults += int((gap > one.abs().mul_(relative).add_(absolute * (min(scale, 1.0) or 1.0))).sum())
    if not is_float:
        reason = f"{faults} of {expected.numel()} whole numbers of {path} differ" if faults else ""
        return Difference(equal=equal, reason=reason, flipped=faults / expected.numel() if faults else 0.0, path=path)
    reason = f"{faults} of {expected.numel()} elements of {path} differ, by up to {worst:.3g}" if faults else ""
    return Difference(equal=equal, reason=reason, is_rounding=bool(faults), max_abs_error=worst, path=path)


def _size(values: torch.Tensor) -> float:
    """The root mean square of what is finite; small values are no less wrong than large ones."""
    total = sum(float(part.double().nan_to_num(0.0, 0.0, 0.0).square().sum()) for (part,) in pieces(values))
    return math.sqrt(total / max(values.numel(), 1))


def _all_finite(*tensors: torch.Tensor) -> bool:
    """By the extremes: one pass without a copy, where a mask would take several."""
    return all(math.isfinite(float(edge)) for tensor in tensors for edge in tensor.aminmax())


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """The same tensors a piece at a time, so that comparing costs little memory beside them."""
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), PIECE):
        yield tuple(tensor[start : start + PIECE] for tensor in flat)
