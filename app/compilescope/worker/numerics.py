"""Compares values: structure, dtype, shape, NaN positions, and closeness by dtype. Large tensors go in pieces."""

from __future__ import annotations

import cmath
import dataclasses
import inspect
import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import nn

from compilescope.worker.inputs import leaves
from compilescope.worker.norms import Norm, as_real, is_float, most, norm, pieces, size_of_all
from compilescope.worker.reach import inner_tensors

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


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How two values compare. `reason` is empty where they are close; `is_rounding` where only closeness failed.

    `gap`: how far apart the numbers are, as shares of the values, of the worst part; infinite where the two have
    another form. `flipped`: the share of whole numbers that differ, of the part with the most; ties may decide indices.
    `unseen`: a part that could not be looked into.
    """

    equal: bool = True
    reason: str = ""
    is_rounding: bool = False
    flipped: float = 0.0
    max_abs_error: float | None = None
    gap: Norm = field(default_factory=Norm)
    unseen: str = ""

    @property
    def close(self) -> bool:
        return not self.reason

    @property
    def is_fault(self) -> bool:
        """What neither rounding nor a tie explains."""
        return bool(self.reason) and not self.is_rounding and not self.flipped

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is: its kind, and how much of it. Rounding counts as a share of the values, since what is
        rounding to a large one is an error to a small one."""
        if self.close:
            return 0, self.max_abs_error or (0.0 if self.equal else 1e-300)
        if self.is_fault:
            return 3, 0.0
        return (2, max(self.gap.peak, self.flipped)) if self.is_rounding else (1, self.flipped)


def compare(expected: Any, actual: Any, name: str, *, common: bool = False) -> Difference:
    """Compare two structures part by part; the first fault that is no rounding wins, then the largest error.

    `common`: parts err by the size of all together, as gradients do: one that is nearly zero is the sum of some that
    are not.
    """
    try:
        return _compared(expected, actual, name, common=common)
    except Exception as error:  # classes of the script's and of any library; what was timed must not be lost by them
        return Difference(equal=False, unseen=f"{name} ({type(error).__name__}: {error})"[:200])


def _compared(expected: Any, actual: Any, name: str, *, common: bool) -> Difference:
    if type(expected).__name__ != type(actual).__name__:
        return _other_form(f"{name} is a {type(actual).__name__} instead of a {type(expected).__name__}")
    odd = {path for path, _ in leaves(expected, name)} ^ {path for path, _ in leaves(actual, name)}
    if odd:
        return _other_form(f"{min(odd)} is in one of the two only")
    mine, theirs = dict(parts(expected, name)), dict(parts(actual, name))
    least = size_of_all(filter(is_float, mine.values())) if common else 0.0
    rows = [_leaf(path, value, theirs[path], least) for path, value in mine.items() if path in theirs]
    # what an object keeps for itself may be there on one side only, such as a value that it has worked out once
    rows += [Difference(unseen=f"{path} (in one of the two only)") for path in sorted(mine.keys() ^ theirs.keys())[:1]]
    return worst(rows)


def worst(rows: list[Difference]) -> Difference:
    """That of all parts together."""
    chosen = max(rows, key=lambda row: (row.rank[0], row.max_abs_error or row.flipped), default=Difference())
    return dataclasses.replace(
        chosen,
        equal=all(row.equal for row in rows),
        flipped=0.0 if chosen.is_fault else max((row.flipped for row in rows), default=0.0),
        max_abs_error=max((row.max_abs_error for row in rows if row.max_abs_error is not None), default=None),
        gap=most(row.gap for row in rows),
        unseen=next((row.unseen for row in rows if row.unseen), ""),
    )


def _fault(reason: str) -> Difference:
    return Difference(equal=False, reason=reason)


def _other_form(reason: str) -> Difference:
    return Difference(equal=False, reason=reason, gap=Norm(rms=math.inf, peak=math.inf))


def _leaf(path: str, expected: Any, actual: Any, least: float) -> Difference:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _tensors(path, expected.detach(), actual.detach(), least)
    if isinstance(expected, torch.Tensor) or isinstance(actual, torch.Tensor):
        return _other_form(f"{path} is a tensor in one of the two only")
    if isinstance(expected, (int, float, complex)) and isinstance(actual, (int, float, complex)):
        return _numbers(path, expected, actual)
    if _is_same(expected, actual):
        return Difference()
    if type(expected) is not type(actual):
        return _other_form(f"{path} is a {type(actual).__name__} instead of a {type(expected).__name__}")
    if isinstance(expected, _PLAIN):
        return _fault(f"{path} is {actual!r} instead of {expected!r}")
    return Difference(unseen=f"{path} ({type(expected).__name__})")


def _numbers(path: str, expected: complex, actual: complex) -> Difference:
    is_exact = isinstance(expected, int) and isinstance(actual, int)
    if expected == actual or (cmath.isnan(expected) and cmath.isnan(actual)):
        return Difference(max_abs_error=None if is_exact else 0.0)
    reason = f"{path} is {actual!r} instead of {expected!r}"
    if is_exact or not (cmath.isfinite(expected) and cmath.isfinite(actual)):
        return _fault(reason)
    error = abs(expected - actual)
    apart = Difference(equal=False, max_abs_error=error, gap=Norm(rms=error, peak=error).of(abs(expected)))
    is_close = cmath.isclose(expected, actual, rel_tol=1.3e-6, abs_tol=1e-5)
    return apart if is_close else dataclasses.replace(apart, reason=reason, is_rounding=True)


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


def _tensors(path: str, expected: torch.Tensor, actual: torch.Tensor, least: float) -> Difference:
    for word, one, two in (
        ("shape", _shape(expected), _shape(actual)),
        ("dtype", expected.dtype, actual.dtype),
        ("device", expected.device, actual.device),
        ("layout", expected.layout, actual.layout),
    ):
        if one != two:
            return _other_form(f"{path} has {word} {two} instead of {one}")
    is_sparse = expected.layout is torch.sparse_coo
    is_moved = is_sparse and not torch.equal(*(tensor.coalesce().indices() for tensor in (expected, actual)))
    expected, actual = as_real(expected), as_real(actual)
    if is_moved or expected.shape != actual.shape:
        return _other_form(f"{path} has other non-zero elements")
    if torch.equal(expected, actual):
        return Difference(max_abs_error=0.0 if is_float(expected) else None)
    return (_floats if is_float(expected) else _whole)(path, expected, actual, least)


def _shape(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a nested tensor, those of its parts."""
    return tuple(tuple(part.shape) for part in tensor.unbind()) if tensor.is_nested else tuple(tensor.shape)


def _whole(path: str, expected: torch.Tensor, actual: torch.Tensor, _least: float) -> Difference:
    faults, count = sum(int((one != two).sum()) for one, two in pieces(expected, actual)), expected.numel()
    reason = f"{faults} of {count} whole numbers of {path} differ"
    return Difference(equal=False, reason=reason, flipped=faults / count)


def _floats(path: str, expected: torch.Tensor, actual: torch.Tensor, least: float) -> Difference:
    size, apart = norm(expected).rms, norm(actual, expected)
    found = Difference(equal=not apart.peak, max_abs_error=apart.peak, gap=apart.of(max(size, least)))
    relative, absolute = _TOLERANCES.get(expected.dtype, _COARSE)
    # small values are no less wrong than large ones
    absolute *= min(least or size, 1.0) or 1.0
    wide = torch.float64 if expected.dtype is torch.float64 else torch.float32
    faults = 0
    for one, two in pieces(expected, actual):
        one, two = one.to(wide), two.to(wide)
        if not _all_finite(one, two):
            if not torch.equal(one.isnan(), two.isnan()):
                return Difference(equal=False, reason=f"{path} is NaN at other places", gap=found.gap)
            if not torch.equal(one.isfinite(), two.isfinite()) or not torch.equal(one[one.isinf()], two[two.isinf()]):
                return Difference(equal=False, reason=f"{path} is infinite at other places", gap=found.gap)
        faults += int(((one - two).abs_() > one.abs().mul_(relative).add_(absolute)).sum())
    if not faults:
        return found
    reason = f"{faults} of {expected.numel()} elements of {path} differ, by up to {apart.peak:.3g}"
    return dataclasses.replace(found, reason=reason, is_rounding=True)


def _all_finite(*tensors: torch.Tensor) -> bool:
    """By the extremes: one pass without a copy, where a mask would take several."""
    return all(math.isfinite(float(edge)) for tensor in tensors for edge in tensor.aminmax())
