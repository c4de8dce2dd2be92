"""Two things of one make: the state of one brought to that of the other, and what both have in common."""

from __future__ import annotations

import collections
import contextlib
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from compilescope.worker import reach
from compilescope.worker.reach import ATOMS, Path

Follows = Callable[[type], bool]

_PLAIN = (str, int, float, bytes, bool, tuple, type(None))
_NUMBERS = (bool, int, float, complex)
# larger whole numbers are addresses, handles and hashes
_MOST = 2**40
_MISSING = object()


@dataclass(kw_only=True)
class Likeness:
    """What was done to make two things alike, by path: `copied`, `forms` (tensors that cannot be made equal), and
    `others` (what differs and was left)."""

    copied: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def synchronise(source: Any, target: Any, follows: Follows | None = None) -> Likeness:
    """Bring the state of `target` to that of `source`: tensors, arrays, numbers, random generators."""
    found = Likeness()
    seen: set[tuple[int, int]] = set()
    kept: list[Any] = []
    todo: collections.deque[tuple[Path, Any, Any]] = collections.deque([((), source, target)])
    while todo and len(seen) < reach.MOST_OBJECTS:
        path, one, two = todo.popleft()
        if one is two or (id(one), id(two)) in seen:
            continue
        seen.add((id(one), id(two)))
        kept.append((one, two))
        if _is_settled(path, one, two, found):
            continue
        for key, mine, theirs in _aligned(path, one, two, follows, found):
            where = (*path, key)
            if not isinstance(mine, ATOMS):
                todo.append((where, mine, theirs))
            elif not _same_atom(mine, theirs):
                is_copied = isinstance(mine, _NUMBERS) and type(mine) is type(theirs) and _write(two, key, mine)
                (found.copied if is_copied else found.others).append(reach.words(where))
    return found


def _is_settled(path: Path, one: Any, two: Any, found: Likeness) -> bool:
    """Whether there is nothing more to do for these two: values were copied, or they are of different kinds."""
    name = reach.words(path)
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        if form(one) != form(two):
            found.forms.append(name)
        elif not reach.same_values(one, two):
            (found.copied if _copy_values(one, two) else found.forms).append(name)
        return True
    if type(one).__qualname__ != type(two).__qualname__:
        found.others.append(name)
        return True
    if reach.is_array(one):
        if one.shape != two.shape or one.dtype != two.dtype or one.dtype.hasobject:
            found.others.append(name)
        elif one.tobytes() != two.tobytes():
            try:
                two[...] = one
                found.copied.append(name)
            except ValueError:  # one that cannot be written
                found.others.append(name)
        return True
    if (state := reach.random_state(one)) is not None:
        reach.set_random_state(two, state)
        return True
    return False


def _aligned(
    path: Path, one: Any, two: Any, follows: Follows | None, found: Likeness
) -> Iterator[tuple[Any, Any, Any]]:
    """Parts of both that go together: by key, or in their order where keys are objects."""
    mine, theirs = reach.parts(one, follows), reach.parts(two, follows)
    if isinstance(one, (set, frozenset)):
        # their order means nothing
        mine = [row for row in mine if row[0] != "<item>"]
    named = {key: value for key, value in theirs if isinstance(key, _PLAIN)}
    rest = [value for key, value in theirs if not isinstance(key, _PLAIN)]
    odd = [(key, value) for key, value in mine if not isinstance(key, _PLAIN)]
    is_whole = len(mine) == len(theirs)
    for key, value in mine:
        if not isinstance(key, _PLAIN) or reach.is_passed_over(key):
            continue
        other = named.get(key, _MISSING)
        if other is _MISSING:
            is_whole = False
        else:
            yield key, value, other
    if len(odd) == len(rest):
        for (key, value), other in zip(odd, rest, strict=True):
            yield f"<{type(key).__name__}>", value, other
    if not is_whole:
        found.others.append(reach.words(path))


def _same_atom(one: Any, two: Any) -> bool:
    if one is two or type(one).__module__ == "types":
        return True
    if isinstance(one, (types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.MethodDescriptorType)):
        return True
    if isinstance(one, property):
        return True
    with contextlib.suppress(Exception):
        return type(one) is type(two) and bool(one == two or (one != one and two != two))
    return False


def _write(holder: Any, key: Any, value: Any) -> bool:
    """Put a number where another one was; whether that can be done."""
    if isinstance(value, int) and abs(value) >= _MOST:
        return False
    try:
        if isinstance(holder, types.CellType):
            holder.cell_contents = value
        elif isinstance(holder, type):
            setattr(holder, key, value)
        elif isinstance(holder, (dict, list, collections.deque)) and not str(key).startswith(("~", "<")):
            holder[key] = value
        elif isinstance(key, str) and key.startswith("~"):
            object.__setattr__(holder, key[1:], value)
        else:
            return False
    except Exception:  # whatever a class of the script's refuses
        return False
    return True


def form(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What must be the same before values can be copied."""
    inside = reach.inner_tensors(tensor)
    if not any(part is tensor for part in inside):
        return (type(tensor).__qualname__, tensor.requires_grad, *(form(part) for part in inside))
    try:
        stride = tensor.stride() if tensor.layout is torch.strided else None
        return tuple(tensor.shape), stride, tensor.layout, tensor.dtype, tensor.device, tensor.requires_grad
    except Exception:  # one without a shape yet, or of a class that refuses
        return (type(tensor).__qualname__, tensor.dtype, tensor.requires_grad)


def _copy_values(source: torch.Tensor, target: torch.Tensor) -> bool:
    with torch.inference_mode():
        for one, two in zip(reach.inner_tensors(source), reach.inner_tensors(target), strict=True):
            try:
                two.detach().copy_(one.detach())
            except Exception:
                # an expanded tensor takes no writes, its memory does
                with contextlib.suppress(Exception):
                    two.untyped_storage().copy_(one.untyped_storage())
    return reach.same_values(source, target)


def common(one: Any, two: Any, follows: Follows | None = None) -> Iterator[str]:
    """The tensors (by their memory) and modules that can be reached from both."""
    mine = [obj for _, obj in reach.walk(one, follows) if isinstance(obj, (torch.Tensor, nn.Module))]
    identities = {id(obj) for obj in mine}
    storages = {key for obj in mine for key in _storages(obj)}
    for path, obj in reach.walk(two, follows):
        if isinstance(obj, (torch.Tensor, nn.Module)) and (id(obj) in identities or storages & _storages(obj)):
            yield reach.words(path)


def _storages(obj: torch.Tensor | nn.Module) -> set[tuple[str, int]]:
    if isinstance(obj, nn.Module):
        return set()
    return {key for part in reach.inner_tensors(obj) if (key := reach.storage_key(part)) is not None}
