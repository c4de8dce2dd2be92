"""What is no tensor, as it was: containers, slots, cells, classes, arrays and random generators, item by item."""

from __future__ import annotations

import collections
import contextlib
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.changes import Change
from compilescope.worker.reach import ATOMS, Path

_MISSING = object()


@dataclass(frozen=True, kw_only=True)
class Holder:
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
        if isinstance(self.held, types.CellType):
            return ((*self.path, ""),)
        now, was = None, self.content
        with contextlib.suppress(Exception):
            now = self.read(self.held)
        if isinstance(now, list):
            now, was = dict(enumerate(now)), dict(enumerate(was))
        if not isinstance(now, dict) or self.is_random_state:
            return (self.path,)
        mark = "~" if self.read is reach.slots else ""
        rows = enumerate(now.items())
        odd = [(key, i) for i, (key, value) in rows if not _is_same_item(value, was.get(key, _MISSING))]
        return tuple((*self.path, mark + key if mark else reach.name_of(key, i)) for key, i in odd) or (self.path,)


def holder_of(path: Path, obj: Any) -> Holder | None:
    for fits, read, write in _KINDS:
        if fits(obj):
            try:
                return Holder(
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
