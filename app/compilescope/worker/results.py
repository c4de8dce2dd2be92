"""What a call gave, in memory of its own, and how far two of these are apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.inputs import leaves, mapped


def held(value: Any) -> list[tuple[str, Any]]:
    """The parts by path, copied, since the next call may write over them."""
    rows: list[tuple[str, Any]] = []
    for path, leaf in leaves(value, ""):
        if isinstance(leaf, (torch.Tensor, *reach.ATOMS)):
            rows.append((path, leaf))
        else:
            rows.append((path, type(leaf).__qualname__))
            rows += [(path + reach.words(inner), tensor) for inner, tensor in reach.tensors(leaf)]
    own: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor.detach().clone()  # noqa: E731
    return [(path, mapped(leaf, own)) for path, leaf in rows]


def distance(one: list[tuple[str, Any]], two: list[tuple[str, Any]]) -> float:
    """The largest difference between values of both; 0 for the same bits, infinite for another make."""
    if [path for path, _ in one] != [path for path, _ in two]:
        return math.inf
    return max((_apart(mine, theirs) for (_, mine), (_, theirs) in zip(one, two, strict=True)), default=0.0)


def _apart(one: Any, two: Any) -> float:
    if not (isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)):
        return 0.0 if type(one) is type(two) and (one == two or one != one) else math.inf
    if reach.same_values(one, two):
        return 0.0
    try:
        gap = (one.double() - two.double()).abs().max().item()
    except Exception:  # of another shape, or of a class that refuses
        return math.inf
    return float(gap) if gap == gap and gap > 0 else math.inf
