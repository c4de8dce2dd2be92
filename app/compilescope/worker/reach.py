"""What can be reached from a model, its inputs and its script's globals: every container and tensor, once, by path."""

from __future__ import annotations

import collections
import contextlib
import functools
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

Path = tuple[Any, ...]

MOST_OBJECTS = 300_000
# what holds nothing that can change
ATOMS = (
    *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice),
    *(torch.dtype, torch.device, torch.layout, torch.Size, torch.memory_format),
    *(types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.MethodDescriptorType, property),
)
# objects of these modules keep what is theirs; their contents count only where they are containers
_FOREIGN = (
    *("threading", "_thread", "logging", "weakref", "_io", "queue", "concurrent", "asyncio", "importlib", "typing"),
    *("torch._C", "torch._dynamo", "torch._inductor", "torch._guards", "torch._ops", "torch._library", "torch.fx"),
    *("contextvars", "re", "enum", "abc", "inspect"),
)
# the compiler writes these itself
_OF_THE_COMPILER = ("_torchdynamo", "_dynamo", "_is_torch_compile", "__compiled_fn", "__resume_at", "__import_")
_NOWHERE = object()


def is_of_the_compiler(key: object) -> bool:
    """Whether a name is one that torch.compile itself leaves in an object or in a module."""
    return isinstance(key, str) and key.startswith(_OF_THE_COMPILER)


def is_passed_over(key: object) -> bool:
    """Names of the compiler's, and those that Python itself uses in a module: Dynamo leaves its own there too, such as
    `__builtins_dict__` with a number."""
    return isinstance(key, str) and (key.startswith("__") or is_of_the_compiler(key))


def parts(obj: Any, follows: Callable[[type], bool] | None = None) -> list[tuple[Any, Any]]:
    """What one object holds, with keys: items, attributes ("." before them), slots ("~name"), cells of closures,
    defaults, bound objects. Of a class only where `follows` says so."""
    if isinstance(obj, torch.Tensor):
        return []
    if isinstance(obj, type):
        return _class_attributes(obj) if follows is not None and follows(obj) else []
    if isinstance(obj, types.FunctionType):
        return _of_function(obj)
    if isinstance(obj, types.CellType):
        with contextlib.suppress(ValueError):
            return [("", obj.cell_contents)]
        return []
    if isinstance(obj, types.MethodType):
        return [("<self>", obj.__self__), ("<function>", obj.__func__)]
    if isinstance(obj, functools.partial):
        return [("<function>", obj.func), ("<args>", obj.args), ("<keywords>", obj.keywords)]
    rows: list[tuple[Any, Any]] = []
    if isinstance(obj, dict):
        rows += list(obj.items())
    elif isinstance(obj, (list, tuple, collections.deque)):
        rows += list(enumerate(obj))
    elif isinstance(obj, (set, frozenset)):
        rows += [("<item>", item) for item in obj if not isinstance(item, ATOMS)]
    if _is_foreign(getattr(type(obj), "__module__", None) or ""):
        return rows
    space = getattr(obj, "__dict__", None)
    if isinstance(space, dict):
        rows.append((".", space))
    return rows + [("~" + name, value) for name, value in slots(obj).items()]


def _is_foreign(module: str) -> bool:
    """Of whole names: a script may be called replay, which is not re."""
    return any(f"{module}.".startswith(f"{name}.") for name in _FOREIGN)


def _of_function(function: types.FunctionType) -> list[tuple[Any, Any]]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    rows: list[tuple[Any, Any]] = [(f"<{name}>", cell) for name, cell in cells]
    if function.__defaults__:
        rows.append(("<defaults>", function.__defaults__))
    if function.__kwdefaults__:
        rows.append(("<keyword defaults>", function.__kwdefaults__))
    if vars(function):
        rows.append((".", vars(function)))
    return rows


def _class_attributes(cls: type) -> list[tuple[Any, Any]]:
    """State that is kept at a class; its methods and descriptors are none."""
    return [(name, value) for name, value in class_values(cls).items() if not isinstance(value, ATOMS)]


def class_values(cls: type) -> dict[str, Any]:
    """The attributes of a class that hold values."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith("__")
        and not is_of_the_compiler(name)
        and not isinstance(value, (types.FunctionType, staticmethod, classmethod, property, types.MemberDescriptorType))
        and not hasattr(type(value), "__get__")
    }


def slots(obj: Any) -> dict[str, Any]:
    """What an object keeps in slots."""
    found: dict[str, Any] = {}
    for cls in type(obj).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            if name in ("__dict__", "__weakref__"):
                continue
            with contextlib.suppress(Exception):  # a slot that was never filled, or a descriptor of a class's own
                found[name] = getattr(obj, name)
    return found


def walk(root: Any, follows: Callable[[type], bool] | None = None) -> Iterator[tuple[Path, Any]]:
    """(path, object) of everything that can be reached, breadth first, once each; no plain values."""
    # `kept`: an object that is made on the way, such as a view of a dict, must keep its id until the end
    seen: set[int] = set()
    kept: list[Any] = []
    todo: collections.deque[tuple[Path, Any]] = collections.deque([((), root)])
    while todo and len(seen) < MOST_OBJECTS:
        path, obj = todo.popleft()
        if isinstance(obj, ATOMS) or id(obj) in seen:
            continue
        seen.add(id(obj))
        kept.append(obj)
        yield path, obj
        for index, (key, part) in enumerate(parts(obj, follows)):
            if not isinstance(part, ATOMS) and not is_passed_over(key):
                todo.append(((*path, name_of(key, index)), part))


def name_of(key: Any, index: int) -> Any:
    """A key as a path has it: the text of other keys, such as an optimizer's parameters, may be long and slow."""
    return key if isinstance(key, (str, int)) else f"<{type(key).__name__} {index}>"


def at(root: Any, path: Path, follows: Callable[[type], bool] | None = None) -> Any:
    """What a path leads to; KeyError where it leads nowhere."""
    for name in path:
        rows = ((name_of(key, index), part) for index, (key, part) in enumerate(parts(root, follows)))
        root = next((part for found, part in rows if found == name and type(found) is type(name)), _NOWHERE)
        if root is _NOWHERE:
            raise KeyError(name)
    return root


def tensors(root: Any, follows: Callable[[type], bool] | None = None) -> Iterator[tuple[Path, torch.Tensor]]:
    """The tensors among what can be reached, gradients of parameters left out."""
    for path, obj in walk(root, follows):
        if isinstance(obj, torch.Tensor):
            yield path, obj


def words(path: Path) -> str:
    """A path as a person writes it: model.layer.weight, inputs[0]['k'].

    Keys of a module's own dicts (`_buffers` and the like) are left out, as attribute access leaves them out.
    """
    text, is_attribute, is_open = "", False, False
    for key in path:
        if key == ".":
            is_attribute = True
            continue
        if isinstance(key, str) and key.startswith("~"):
            text += f".{key[1:]}"
        elif is_attribute and key in ("_modules", "_parameters", "_buffers"):
            is_open = True
            continue
        elif is_attribute or is_open or not text:
            text += ("[" + str(key) + "]") if isinstance(key, int) else (f".{key}" if text else str(key))
        elif isinstance(key, str) and key.startswith("<"):
            text += f".{key[1:-1]}"
        else:
            text += f"[{key!r}]"
        is_attribute = is_open = False
    return text


def storage_key(tensor: torch.Tensor) -> tuple[str, int] | None:
    """What tensors that share memory have in common; None where that cannot be told."""
    try:
        address = tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
    except Exception:  # wrapper subclasses have no storage of their own
        return None
    return (str(tensor.device), address) if address else None


def inner_tensors(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that a wrapper subclass (quantised, jagged, distributed) keeps its values in; else the tensor.

    By torch's own protocol for such classes, `__tensor_flatten__`.
    """
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return [tensor]
    try:
        names, _ = flatten()
        inside = [getattr(tensor, name) for name in names]
    except Exception:  # a class of the script's own may hold anything
        return [tensor]
    return [part for value in inside if isinstance(value, torch.Tensor) for part in inner_tensors(value)]


def same_values(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors hold the same bits, NaN beside NaN."""
    try:
        if one.is_nested or hasattr(one, "__tensor_flatten__"):
            mine, theirs = inner_tensors(one), inner_tensors(two)
            if not any(part is one for part in mine):
                return len(mine) == len(theirs) and all(map(same_values, mine, theirs))
        if one.is_quantized:
            one, two = one.dequantize(), two.dequantize()
        elif one.layout is not torch.strided:
            one, two = one.to_dense(), two.to_dense()
        if one.shape != two.shape or one.dtype != two.dtype or one.device != two.device:
            return False
        return bool(torch.equal(one, two) or ((one == two) | ((one != one) & (two != two))).all())
    except Exception:  # whatever a tensor class refuses
        return False


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def random_state(value: Any) -> Any:
    """Where a random generator stands; None for what is none."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, torch.Generator):
        return value.get_state()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.random.Generator):
            return value.bit_generator.state
        if isinstance(value, numpy.random.RandomState):
            return value.get_state(legacy=False)
    return None


def set_random_state(value: Any, state: Any) -> None:
    if isinstance(value, random.Random):
        value.setstate(state)
    elif hasattr(value, "bit_generator"):
        value.bit_generator.state = state
    else:
        value.set_state(state)
