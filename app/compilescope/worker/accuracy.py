"""How far results err, as norms: against a reference in double precision, or of two results from each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker.allowance import Allowance
from compilescope.worker.numerics import PIECE, as_real, parts, pieces

OWN_SPREADS = 3


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Root mean square errors of one part against the reference.

    `excess`: error over what is allowed, at most 1 is right; it looks at the whole and at the worst element.
    `eager_share`: eager's error as a share of the values.
    """

    path: str
    eager: float
    compiled: float
    excess: float
    eager_share: float = 0.0

    @property
    def passes(self) -> bool:
        return self.excess <= 1

    @property
    def ratio(self) -> float | None:
        return self.compiled / self.eager if self.eager > 0 else None


@dataclass(frozen=True, kw_only=True)
class Norm:
    """Root mean square and largest of some values."""

    rms: float = 0.0
    peak: float = 0.0


def accuracy(
    reference: Any,
    eagers: Sequence[Any],
    compiled: Any,
    limits: Allowance,
    *,
    common: bool = False,
    rows: Mapping[str, torch.Tensor] | None = None,
) -> Accuracy | None:
    """The errors of the part that is farthest beyond its limits; None where not every part has a reference.

    `eagers`: the same call made more than once, also with its numbers moved by a rounding, so that what eager varies by
    is allowed. `common`: one scale for all parts, as for gradients: one that is nearly zero errs by the size of the
    others. `rows`: of some parts, which rows count.
    """
    truth = numbers_in(reference)
    others = [numbers_in(value) for value in (*eagers, compiled)]
    if rows:
        truth, *others = [
            {path: _some(value, rows.get(path)) for path, value in row.items()} for row in (truth, *others)
        ]
    # a part that is the same on both sides needs no reference
    floats = {
        path: value
        for path, value in others[0].items()
        if _is_float(value) and (_is_reference(truth.get(path), value) or not _is_equal(value, others[-1].get(path)))
    }
    if not floats or not all(_is_reference(truth.get(path), value) for path, value in floats.items()):
        return None
    scale = _norm_of_all([truth[path] for path in floats]) if common else None
    found = [_part(path, truth[path], [other.get(path) for other in others], limits, scale) for path in floats]
    known = [row for row in found if row is not None]
    return max(known, key=lambda row: row.excess) if len(known) == len(found) else None


def _some(value: Any, chosen: torch.Tensor | None) -> Any:
    if chosen is None or not isinstance(value, torch.Tensor):
        return value
    rows = in_rows(value)
    return rows[chosen.to(rows.device)] if len(rows) == len(chosen) else value


def in_rows(value: torch.Tensor) -> torch.Tensor:
    """The vectors along the last axis; of a vector, its elements."""
    value = as_real(value)
    return value.reshape(-1, value.shape[-1] if value.dim() > 1 else 1)


def numbers_in(value: Any) -> dict[str, Any]:
    """The parts by path, Python's own numbers as tensors."""
    return {
        path: torch.tensor(part, dtype=torch.complex128 if isinstance(part, complex) else torch.float64)
        if isinstance(part, (float, complex))
        else part
        for path, part in parts(value, "")
    }


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _is_equal(one: torch.Tensor, two: Any) -> bool:
    return isinstance(two, torch.Tensor) and one.dtype == two.dtype and torch.equal(as_real(one), as_real(two))


def _is_reference(exact: Any, value: torch.Tensor) -> bool:
    return (
        isinstance(exact, torch.Tensor)
        and exact.shape == value.shape
        and (exact.dtype in (torch.float64, torch.complex128) or exact.itemsize > value.itemsize)
    )


def _part(path: str, exact: Any, values: Sequence[Any], limits: Allowance, scale: float | None) -> Accuracy | None:
    tensors = [as_real(value) for value in (exact, *values) if isinstance(value, torch.Tensor)]
    if len(tensors) != len(values) + 1 or len({tensor.shape for tensor in tensors}) > 1:
        return None
    size = scale if scale is not None else _gap(tensors[0]).rms
    errors = [_gap(tensor, tensors[0]) for tensor in tensors[1:]]
    eager, compiled = errors[:-1], errors[-1]
    spread = [_gap(one, tensors[1]) for one in tensors[2:-1]]
    factor = limits.factor_for(tensors[0].numel())
    whole = factor * _most(eager).rms + OWN_SPREADS * _most(spread).rms + limits.floor * size
    single = max(factor, limits.PEAK) * _most(eager).peak + OWN_SPREADS * _most(spread).peak
    single += limits.PEAK * limits.floor * size
    return Accuracy(
        path=path,
        eager=errors[0].rms,
        compiled=compiled.rms,
        excess=max(_share(compiled.rms, whole), _share(compiled.peak, single)),
        eager_share=_share(errors[0].rms, size),
    )


def apart(expected: Any, actual: Any, *, common: bool = False) -> Norm:
    """How far two results are apart, as shares of the values' root mean square, of the worst part."""
    mine, theirs = numbers_in(expected), numbers_in(actual)
    pairs = [(one, theirs.get(path)) for path, one in mine.items() if _is_float(one)]
    scale = _norm_of_all([one for one, _ in pairs]) if common else None
    found = [Norm()]
    for one, two in pairs:
        if isinstance(two, torch.Tensor):
            one, two = as_real(one), as_real(two)
            size = _gap(one).rms if scale is None else max(scale, _gap(one).rms)
            gap = _gap(two, one)
            found.append(Norm(rms=_share(gap.rms, size), peak=_share(gap.peak, size)))
    return _most(found)


def within(gap: Norm, limits: Allowance) -> bool:
    """Whether two results are no farther apart than the precision in force allows."""
    return gap.rms <= limits.share and gap.peak <= limits.PEAK * limits.share


def _gap(value: torch.Tensor, exact: torch.Tensor | None = None) -> Norm:
    """The norm of what lies between two tensors, or of one, over the elements that are finite."""
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


def size_of_all(value: Any) -> float:
    """The root mean square of all numbers with a fraction."""
    return _norm_of_all([part for part in numbers_in(value).values() if _is_float(part)])


def _norm_of_all(values: Sequence[torch.Tensor]) -> float:
    total = sum(_gap(as_real(value)).rms ** 2 * value.numel() for value in values)
    return math.sqrt(total / max(sum(value.numel() for value in values), 1))


def _most(norms: Sequence[Norm]) -> Norm:
    return Norm(
        rms=max((norm.rms for norm in norms), default=0.0), peak=max((norm.peak for norm in norms), default=0.0)
    )


def _share(value: float, whole: float) -> float:
    return value / whole if whole > 0 else 0.0 if value == 0 else math.inf
