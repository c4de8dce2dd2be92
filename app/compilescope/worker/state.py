"""The state that calls change: as it was at one moment, what of it differs now, and how to put it back.

Containers are kept by reference and item by item, tensors and arrays by a copy of their values. Nothing is copied of a
tensor that `copies` leaves out; such a one is watched by its version and by a fingerprint of its bytes.
"""

from __future__ import annotations

import collections
import contextlib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.reach import ATOMS, Path

_MISSING = object()
Choice = Callable[[Path, torch.Tensor], bool]


def every(_path: Path, _tensor: torch.Tensor) -> bool:
    return True


def all_but_parameters(_path: Path, tensor: torch.Tensor) -> bool:
    """What inference may change: weights are watched, and not copied."""
    return not isinstance(tensor, torch.nn.Parameter)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that differs from what it was. `restore` puts it back; None where that cannot be done.

    `bytes`: how much is written to put it back; 0 for references. `places`: where the values are that differ.
    """

    path: Path
    restore: Callable[[], None] | None
    tensor: torch.Tensor | None = None
    bytes: int = 0
    is_random_state: bool = False
    places: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return reach.words(self.path)


class State:
    """What can be reached from some roots, as it is when this is made.

    `roots`: names to things, such as {"model": model, "inputs": tree, "globals": {module: its dict}}. `follows`: the
    classes whose own attributes count. `on_host`: copies go to the host's memory. Raises MemoryError or
    torch.OutOfMemoryError where there is no room for the copies.
    """

    def __init__(
        self,
        roots: Mapping[str, Any],
        *,
        copies: Choice = every,
        follows: Callable[[type], bool] | None = None,
        on_host: bool = False,
    ) -> None:
        self._tensors: list[_Tensor] = []
        self._rest: list[_Holder] = []
        for path, obj in reach.walk(dict(roots), follows):
            if not path or (isinstance(obj, type) and not (follows is not None and follows(obj))):
                continue
            if isinstance(obj, torch.Tensor):
                parts = reach.inner_tensors(obj)
                self._tensors += [_Tensor(path, part, copied=copies(path, obj), on_host=on_host) for part in parts]
            elif (holder := _holder(path, obj)) is not None:
                self._rest.append(holder)

    def changes(self, looks_at: Choice = every) -> list[Change]:
        """What differs now from what it was; of tensors, those that `looks_at` chooses."""
        tensors = [row for row in self._tensors if looks_at(row.path, row.tensor)]
        kept: list[_Holder | _Tensor] = [*self._rest, *tensors]
        return [change for row in kept if (change := row.change()) is not None]

    def put_back(self) -> list[Change]:
        """Make everything as it was; what could not be."""
        changes = self.changes()
        apply(changes)
        return [change for change in changes if change.restore is None]

    def forms(self, root: str) -> Forms:
        """Of what lies under one root; it keeps no copy of a tensor."""
        return Forms(
            holders=tuple(row for row in self._rest if row.path[0] == root and not row.is_random_state),
            tensors=tuple(row.watched() for row in self._tensors if row.path[0] == root),
        )

    def befores(self) -> dict[int, torch.Tensor]:
        """The copies of tensors, by the tensors' ids."""
        return {id(row.tensor): row.copy for row in self._tensors if row.copy is not None}

    @property
    def copied_bytes(self) -> int:
        return sum(kept.bytes for kept in self._tensors)


@dataclass(frozen=True, kw_only=True)
class Forms:
    """Containers with what they held, tensors with their form and no values: cheap enough to look at often."""

    holders: tuple[_Holder, ...]
    tensors: tuple[tuple[Path, torch.Tensor, object], ...]

    def changes(self) -> list[Change]:
        found = [change for holder in self.holders if (change := holder.change()) is not None]
        return found + [
            Change(path=path, restore=None, tensor=tensor, places=(path,))
            for path, tensor, was in self.tensors
            if form(tensor) != was
        ]


def apply(changes: list[Change]) -> None:
    """Put back what can be: references first, since a tensor may be one that only the old ones lead to."""
    for change in changes:
        if change.restore is not None and change.tensor is None:
            change.restore()
    with torch.inference_mode():
        for change in changes:
            if change.restore is not None and change.tensor is not None:
                change.restore()


# --- tensors ------------------------------------------------------------------------------------------------------


class _Tensor:
    """One tensor that had these values."""

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


# --- everything else ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Holder:
    """A container, an object with slots, a cell, a class, an array or a random generator, with what it held."""

    path: Path
    held: Any
    content: Any
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    is_random_state: bool = False

    def change(self) -> Change | None:
        with contextlib.suppress(Exception):  # an object that cannot be read any more has changed
            if _is_same_content(self.read(self.held), self.content):
                return None
        return Change(
            path=self.path,
            restore=lambda: self.write(self.held, self.content),
            is_random_state=self.is_random_state,
            places=self._places(),
        )

    def _places(self) -> tuple[Path, ...]:
        """The items that differ; the whole where it has no items with a place."""
        now = None
        with contextlib.suppress(Exception):
            now = self.read(self.held)
        rows: list[tuple[Any, Any]] = []
        was: dict[Any, Any] = {}
        if isinstance(now, dict) and isinstance(self.content, dict) and not self.is_random_state:
            mark = "~" if self.read is reach.slots else ""
            rows = [(mark + name if mark else reach.name_of(name, i), now[name]) for i, name in enumerate(now)]
            was = dict(zip((name for name, _ in rows), (self.content.get(name, _MISSING) for name in now), strict=True))
        elif isinstance(now, list) and isinstance(self.content, list):
            rows, was = list(enumerate(now)), dict(enumerate(self.content))
        if isinstance(self.held, types.CellType):
            return ((*self.path, ""),)
        keys = [name for name, value in rows if not _is_same_item(value, was.get(name, _MISSING))]
        return tuple((*self.path, key) for key in keys) or (self.path,)


def _holder(path: Path, obj: Any) -> _Holder | None:
    for fits, read, write in _KINDS:
        if fits(obj):
            try:
                return _Holder(
                    path=path,
                    held=obj,
                    content=read(obj),
                    read=read,
                    write=write,
                    is_random_state=read is reach.random_state,
                )
            except Exception:  # whatever a class of the script's refuses
                return None
    return None


def _read_dict(obj: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in obj.items() if not reach.is_passed_over(key)}


def _write_dict(obj: dict[Any, Any], content: dict[Any, Any]) -> None:
    now = _read_dict(obj)
    for key in now.keys() - content.keys():
        del obj[key]
    # only what differs is written: guards watch the dicts of modules
    for key, value in content.items():
        if key not in now or now[key] is not value:
            obj[key] = value
    if list(_read_dict(obj)) != list(content):
        for key, value in content.items():
            del obj[key]
            obj[key] = value


def _write_list(obj: Any, content: list[Any]) -> None:
    if isinstance(obj, collections.deque):
        obj.clear()
        obj.extend(content)
    else:
        obj[:] = content


def _write_set(obj: set[Any], content: set[Any]) -> None:
    obj.clear()
    obj |= content


def _read_cell(obj: types.CellType) -> list[Any]:
    try:
        return [obj.cell_contents]
    except ValueError:
        return []


def _write_cell(obj: types.CellType, content: list[Any]) -> None:
    if content:
        obj.cell_contents = content[0]
    else:
        del obj.cell_contents


def _write_class(obj: type, content: dict[str, Any]) -> None:
    for name in reach.class_values(obj).keys() - content.keys():
        delattr(obj, name)
    for name, value in content.items():
        if vars(obj).get(name) is not value:
            setattr(obj, name, value)


def _write_slots(obj: Any, content: dict[str, Any]) -> None:
    for name in reach.slots(obj).keys() - content.keys():
        with contextlib.suppress(Exception):
            object.__delattr__(obj, name)
    for name, value in content.items():
        with contextlib.suppress(Exception):  # what has no setter was not changed by assignment
            object.__setattr__(obj, name, value)


def _write_array(obj: Any, content: Any) -> None:
    obj[...] = content


def _has_slots(obj: Any) -> bool:
    return not isinstance(obj, (types.FunctionType, types.MethodType, tuple)) and bool(reach.slots(obj))


# what is kept, how it is read, how it is written; the first that fits
_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any, Any], None]], ...] = (
    (lambda obj: isinstance(obj, type), reach.class_values, _write_class),
    (lambda obj: reach.random_state(obj) is not None, reach.random_state, reach.set_random_state),
    (reach.is_array, lambda obj: obj.copy(), _write_array),
    (lambda obj: isinstance(obj, dict), _read_dict, _write_dict),
    (lambda obj: isinstance(obj, (list, collections.deque, bytearray)), list, _write_list),
    (lambda obj: isinstance(obj, set), set, _write_set),
    (lambda obj: isinstance(obj, types.CellType), _read_cell, _write_cell),
    (_has_slots, reach.slots, _write_slots),
)


def _is_same_content(now: Any, was: Any) -> bool:
    if isinstance(was, dict):
        return (
            isinstance(now, dict)
            and list(now) == list(was)
            and all(_is_same_item(now[key], value) for key, value in was.items())
        )
    if isinstance(was, (list, tuple)):
        return (
            isinstance(now, (list, tuple))
            and len(now) == len(was)
            and all(_is_same_item(one, two) for one, two in zip(now, was, strict=True))
        )
    if isinstance(was, set):
        return bool(now == was)
    if reach.is_array(was):
        return bool(now.shape == was.shape and now.dtype == was.dtype and now.tobytes() == was.tobytes())
    return _is_same_item(now, was)


def _is_same_item(now: Any, was: Any) -> bool:
    if now is was:
        return True
    if isinstance(was, (dict, tuple)) and type(now) is type(was):
        return _is_same_content(now, was)  # of a random generator's state, or a tuple made anew
    if isinstance(was, torch.Tensor):
        # a random state, which is read anew each time; other tensors are the same object or another one
        return isinstance(now, torch.Tensor) and now.dtype is torch.uint8 and reach.same_values(now, was)
    if reach.is_array(was):
        return reach.is_array(now) and _is_same_content(now, was)
    return isinstance(was, ATOMS) and type(now) is type(was) and bool(now == was or (now != now and was != was))


# --- what each call changes ---------------------------------------------------------------------------------------


class Undo:
    """Puts back what one call changed, and no more; made right after the call, while the changes stand.

    `names`: what the call changes. `lost`: what could not be put back, so that no call sees what the first one saw.
    """

    def __init__(self, state: State, leaves_out: Callable[[Change], bool] = lambda _change: False) -> None:
        changes = [change for change in state.changes() if not leaves_out(change)]
        self._changes = changes
        self._leaves_out = leaves_out
        self._inputs = state.forms("inputs")
        self.names = tuple(change.name for change in changes)
        self.bytes = sum(change.bytes for change in changes)
        self.put_back()
        still = [change for change in state.changes() if not leaves_out(change)]
        self.lost = tuple(change.name for change in still)

    def __bool__(self) -> bool:
        return bool(self._changes)

    def put_back(self) -> None:
        apply(self._changes)

    def strays(self) -> tuple[str, ...]:
        """What of the inputs is of another form than before the call although all was put back: a later call changed
        something that the first one had left alone."""
        return tuple(change.name for change in self._inputs.changes() if not self._leaves_out(change))
