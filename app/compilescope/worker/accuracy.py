"""How far results err, against a reference in a wider type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker.allowance import Allowance
from compilescope.worker.norms import as_real, in_rows, is_float, most, norm, share, size_of_all
from compilescope.worker.numerics import parts

OWN_SPREADS = 3


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Root mean square errors of one part against the reference.

    `excess`: error over what is allowed, at most 1 is right; it looks at the whole and at the worst element.
    `eager_share`: eager's error as a share of the values. `is_of_eager`: whether the reference is eager itself, for
    want of a wider type.
    """

    path: str
    eager: float
    compiled: float
    excess: float
    eager_share: float = 0.0
    is_of_eager: bool = False

    @property
    def passes(self) -> bool:
        return self.excess <= 1

    @property
    def ratio(self) -> float | None:
        return self.compiled / self.eager if self.eager > 0 and not self.is_of_eager else None


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
        if is_float(value) and (_is_reference(truth.get(path), value) or not _is_equal(value, others[-1].get(path)))
    }
    if not floats or not all(_is_reference(truth.get(path), value) for path, value in floats.items()):
        return None
    scale = size_of_all(truth[path] for path in floats) if common else None
    found = [_part(path, truth[path], [other.get(path) for other in others], limits, scale) for path in floats]
    known = [row for row in found if row is not None]
    return max(known, key=lambda row: row.excess) if len(known) == len(found) else None


def _some(value: Any, chosen: torch.Tensor | None) -> Any:
    if chosen is None or not isinstance(value, torch.Tensor):
        return value
    rows = in_rows(value)
    return rows[chosen.to(rows.device)] if len(rows) == len(chosen) else value


def numbers_in(value: Any) -> dict[str, Any]:
    """The parts by path, Python's own numbers as tensors."""
    return {
        path: torch.tensor(part, dtype=torch.complex128 if isinstance(part, complex) else torch.float64)
        if isinstance(part, (float, complex))
        else part
        for path, part in parts(value, "")
    }


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
    size = scale if scale is not None else norm(tensors[0]).rms
    errors = [norm(tensor, tensors[0]) for tensor in tensors[1:]]
    eager, compiled, spread = most(errors[:-1]), errors[-1], most(norm(one, tensors[1]) for one in tensors[2:-1])
    factor = limits.factor_for(tensors[0].numel())
    whole = factor * eager.rms + OWN_SPREADS * spread.rms + limits.floor * size
    single = max(factor, limits.PEAK) * eager.peak + OWN_SPREADS * spread.peak + limits.PEAK * limits.floor * size
    return Accuracy(
        path=path,
        eager=errors[0].rms,
        compiled=compiled.rms,
        excess=max(share(compiled.rms, whole), share(compiled.peak, single)),
        eager_share=share(errors[0].rms, size),
    )
