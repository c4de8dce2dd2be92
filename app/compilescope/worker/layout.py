"""What equal values may still differ in: strides, and which tensors share memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from compilescope.worker.inputs import leaves
from compilescope.worker.reach import storage_key


def differences(expected: dict[str, Any], actual: dict[str, Any]) -> Iterator[str]:
    """One sentence a kind: the first tensor whose strides are others, and the first that shares other memory."""
    mine, theirs = _tensors(expected), _tensors(actual)
    for path, one in mine.items():
        two = theirs.get(path)
        if two is not None and one.shape == two.shape and _strides(one) != _strides(two):
            yield f"{path} has strides {tuple(two.stride())} instead of {tuple(one.stride())}."
            break
    shared, other = _sharing(mine), _sharing(theirs)
    for path, first in shared.items():
        if path in other and other[path] != first:
            yield f"{path} {_words(path, other[path])} in the compiled model, and {_words(path, first)} in eager."
            break


def _tensors(tree: dict[str, Any]) -> dict[str, torch.Tensor]:
    parts = (part for name, value in tree.items() for part in leaves(value, name))
    return {path: leaf for path, leaf in parts if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided}


def _strides(tensor: torch.Tensor) -> list[int]:
    """Those that matter: along an axis of one element there is nothing to step over."""
    if not tensor.numel():
        return []
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _sharing(tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """For each tensor, the first one that lies in the same memory; itself where it is the first."""
    first: dict[object, str] = {}
    found = {}
    for path, tensor in tensors.items():
        address = storage_key(tensor)
        found[path] = first.setdefault(address, path) if address else path
    return found


def _words(path: str, first: str) -> str:
    return "has memory of its own" if first == path else f"shares memory with {first}"
