"""What calls change, of every kind: it is found, named, and put back."""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from compilescope.worker import reach
from compilescope.worker.state import State, Undo, all_but_parameters


class Cache:
    """A cache of a decoder: an object that grows."""

    def __init__(self) -> None:
        self.keys = [torch.zeros(1, 4)]
        self.length = 1

    def add(self, row: torch.Tensor) -> None:
        self.keys.append(row)
        self.length += 1


class Slotted:
    """An object without a dict."""

    __slots__ = ("count", "missing", "rows")

    def __init__(self) -> None:
        self.count = 0
        self.rows = [1]


class Counted:
    """Keeps state at its class."""

    calls = 0
    seen: list[int] = []  # noqa: RUF012 - state that all share is what is tried here


class Thing(nn.Module):
    """All kinds of state in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("rows", torch.zeros(4, 2))
        self.plain = torch.zeros(2)
        self.count = 0
        self.items: list[Any] = [1, {"deep": 2}]
        self.table = {"a": 1}
        self.queue = collections.deque([1, 2], maxlen=3)
        self.names = {"x"}
        self.slotted = Slotted()
        self.array = numpy.zeros(3)
        self.torch_random = torch.Generator().manual_seed(1)
        self.python_random = random.Random(1)
        self.numpy_random = numpy.random.default_rng(1)
        self.old_random = numpy.random.RandomState(1)
        held, step = [0], 0

        def closure() -> int:
            nonlocal step
            step += 1
            held.append(step)
            return step

        self.closure = closure


def _replace(thing: Thing) -> None:
    thing.plain = torch.ones(2)


def _resize(thing: Thing) -> None:
    thing.plain.resize_(5)


def _late_key(thing: Thing) -> None:
    thing.late = torch.ones(1)  # type: ignore[assignment]


def _new_slot(thing: Thing) -> None:
    thing.slotted.missing = 1


def _slot(thing: Thing) -> None:
    thing.slotted.count = 5


CHANGES: dict[str, tuple[Callable[[Thing], Any], str]] = {
    "a tensor in place": (lambda thing: thing.plain.add_(1), "model.plain"),
    "a buffer in place": (lambda thing: thing.rows[2].fill_(3), "model.rows"),
    "a parameter": (lambda thing: thing.weight.data.mul_(2), "model.weight"),
    "a write by data": (lambda thing: thing.plain.data.fill_(4), "model.plain"),
    "a write by numpy": (lambda thing: thing.plain.numpy().fill(4), "model.plain"),
    "a tensor in another's place": (_replace, "model"),
    "a tensor that grows": (_resize, "model.plain"),
    "other memory": (lambda thing: setattr(thing.plain, "data", torch.ones(7)), "model.plain"),
    "NaN": (lambda thing: thing.plain.fill_(float("nan")), "model.plain"),
    "a number": (lambda thing: setattr(thing, "count", 1), "model"),
    "an attribute that is new": (_late_key, "model"),
    "a list": (lambda thing: thing.items.append(3), "model.items"),
    "a dict within a list": (lambda thing: thing.items[1].update(deep=3), "model.items[1]"),
    "a key that is gone": (lambda thing: thing.table.pop("a"), "model.table"),
    "a key more": (lambda thing: thing.table.update(b=2), "model.table"),
    "a deque": (lambda thing: thing.queue.extend([3, 4]), "model.queue"),
    "a set": (lambda thing: thing.names.add("y"), "model.names"),
    "a slot": (_slot, "model.slotted"),
    "a slot that was empty": (_new_slot, "model.slotted"),
    "a list in a slot": (lambda thing: thing.slotted.rows.append(2), "model.slotted.rows"),
    "an array": (lambda thing: thing.array.fill(2), "model.array"),
    "torch's random generator": (lambda thing: torch.rand(1, generator=thing.torch_random), "model.torch_random"),
    "Python's random generator": (lambda thing: thing.python_random.random(), "model.python_random"),
    "NumPy's random generator": (lambda thing: thing.numpy_random.random(), "model.numpy_random"),
    "NumPy's older one": (lambda thing: thing.old_random.rand(), "model.old_random"),
    "cells of a closure": (lambda thing: thing.closure(), "model.closure.step"),
}


def seen(thing: Thing) -> Any:
    """All of it that can be compared."""
    return (
        thing.weight.tolist(), thing.rows.tolist(), str(thing.plain.tolist()), thing.count, repr(thing.items),
        list(thing.table.items()), list(thing.queue), thing.names, thing.slotted.count, thing.slotted.rows,
        hasattr(thing.slotted, "missing"), thing.array.tolist(), thing.torch_random.get_state().tolist(),
        thing.python_random.getstate(), str(thing.numpy_random.bit_generator.state), str(thing.old_random.get_state()),
        hasattr(thing, "late"), [cell.cell_contents for cell in thing.closure.__closure__],
    )  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_that_a_change_is_found_by_its_name_and_put_back(kind: str) -> None:
    change, name = CHANGES[kind]
    thing = Thing()
    before = seen(thing)
    held = (id(thing.plain), thing.plain.data_ptr(), id(thing.items))
    state = State({"model": thing})

    assert state.changes() == []
    change(thing)

    assert name in [found.name for found in state.changes()]
    assert state.put_back() == []
    assert seen(thing) == before
    assert state.changes() == []
    assert (id(thing.plain), id(thing.items)) == (held[0], held[2])


def test_that_globals_are_put_back_in_the_dict_itself() -> None:
    space: dict[str, Any] = {"CALLS": 0, "LAST": None, "__name__": "script", "__compiled_fn_1": 1}
    state = State({"globals": {"script": space}})

    exec("CALLS += 1\nLAST = object()\nNEW = 2\n__compiled_fn_1 = 5", space)

    assert [change.name for change in state.changes()] == ["globals['script']"]
    state.put_back()
    assert {key: space[key] for key in ("CALLS", "LAST")} == {"CALLS": 0, "LAST": None} and "NEW" not in space
    assert space["__compiled_fn_1"] == 5, "what the compiler writes is its own"


def test_that_attributes_of_classes_count_where_they_are_followed() -> None:
    roots = {"globals": {"script": {"Counted": Counted}}}
    followed, passed = State(roots, follows=lambda cls: cls is Counted), State(roots)
    Counted.calls += 1
    Counted.seen.append(1)

    assert passed.changes() == []
    assert len(followed.changes()) == 2
    followed.put_back()
    assert (Counted.calls, Counted.seen) == (0, [])


def test_that_a_cache_that_grows_has_its_old_length_before_each_call() -> None:
    cache = Cache()
    first = cache.keys[0]
    state = State({"inputs": ((cache,), {})})
    cache.add(torch.ones(1, 4))
    first.add_(1)

    undo = Undo(state)

    for _ in range(3):
        assert (len(cache.keys), cache.length) == (1, 1) and cache.keys[0] is first
        assert first.tolist() == [[0, 0, 0, 0]]
        cache.add(torch.ones(1, 4))
        first.add_(1)
        undo.put_back()
    assert undo and undo.lost == ()
    assert undo.names == ("inputs[0][0]", "inputs[0][0].keys", "inputs[0][0].keys[0]")


def test_that_of_a_large_buffer_only_the_rows_that_change_are_copied() -> None:
    buffer = torch.zeros(1000, 64)
    state = State({"model": {"buffer": buffer}})
    buffer[500:502] = 1

    undo = Undo(state)

    assert undo.bytes == 2 * 64 * 4
    buffer[500:502] = 2
    undo.put_back()
    assert not buffer.any()


def test_that_parameters_that_are_only_watched_are_told_and_not_put_back() -> None:
    thing = Thing()
    state = State({"model": thing}, copies=all_but_parameters)
    thing.weight.data.add_(1)

    undo = Undo(state)

    assert undo.lost == ("model.weight",)
    assert state.copied_bytes == sum(tensor.nbytes for tensor in (thing.rows, thing.plain))


def test_that_inference_tensors_are_watched_and_put_back() -> None:
    with torch.inference_mode():
        tensor = torch.zeros(3)
        watched = State({"inputs": [tensor]}, copies=lambda _path, _tensor: False)
        copied = State({"inputs": [tensor]})
        tensor.add_(1)

    assert len(watched.changes()) == len(copied.changes()) == 1
    copied.put_back()
    assert not tensor.any()


def test_that_undoing_what_changed_nothing_is_nothing() -> None:
    thing = Thing()
    state = State({"model": thing})
    assert torch.is_tensor(thing.weight * 2)

    undo = Undo(state)

    assert not undo and undo.names == undo.lost == () and undo.bytes == 0


def test_that_bound_methods_partials_defaults_and_hooks_are_walked_into() -> None:
    default, kept = [1], torch.zeros(1)

    def function(_x: object, given: list[int] = default, *, named: dict[str, int] = {}) -> None:  # noqa: B006
        given.append(1)
        named["x"] = 1

    module = nn.Linear(2, 2)
    module.register_forward_hook(lambda _module, _args, _out: kept.add_(1))
    state = State({"model": [types.MethodType(function, object()), module]})

    function(0)
    module(torch.ones(1, 2))

    assert len(state.changes()) == 3
    state.put_back()
    assert default == [1] and kept.tolist() == [0] and function.__kwdefaults__ == {"named": {}}


def test_that_tensors_that_share_memory_have_one_key_and_wrappers_none_of_their_own() -> None:
    whole = torch.zeros(4)

    assert reach.storage_key(whole) == reach.storage_key(whole[1:])
    assert reach.storage_key(whole) != reach.storage_key(torch.zeros(4))
    assert reach.storage_key(torch.zeros(2, 2).to_sparse()) is None
    assert reach.inner_tensors(whole) == [whole]
