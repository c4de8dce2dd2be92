"""Values from JSON made to fit the typed fields of a dataclass; what does not fit is refused.

What is read may come from an older version, a damaged file or another program, and nothing after this checks again.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

Fit = Callable[[Any], Any]


def build(cls: Any, value: Any) -> Any:
    """An instance of a dataclass from a JSON object. Unknown keys are skipped, null is an absent key.

    Raises ValueError where a value does not fit its field.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{cls.__name__} is an object")
    fits = _fits(cls)
    return cls(**{key: fits[key](item) for key, item in value.items() if item is not None and key in fits})


@functools.cache
def _fits(cls: Any) -> dict[str, Fit]:
    hints = typing.get_type_hints(cls)
    return {field.name: _fit(hints[field.name]) for field in dataclasses.fields(cls)}


def _fit(hint: Any) -> Fit:
    """The function that takes a JSON value into a field of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        return _fit(inner[0]) if len(inner) == 1 else _any
    if origin is tuple and arguments[0] is float:
        return _floats
    if origin is tuple:
        return functools.partial(_tuple, _fit(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping
    if dataclasses.is_dataclass(hint):
        return functools.partial(build, hint)
    return {float: _float, int: _int, bool: _bool, str: _str}.get(hint, _any)


def _any(value: Any) -> Any:
    return value


def _tuple(fit: Fit, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("a list belongs here")
    return tuple(fit(item) for item in value)


def _floats(value: Any) -> tuple[float, ...]:
    """Samples come by the hundred, so they are looked at as a whole."""
    if isinstance(value, list) and set(map(type, value)) <= {float, int} and math.isfinite(sum(value)):
        return tuple(value)
    return _tuple(_float, value)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("an object belongs here")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a number belongs here")
    return float(value)


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise ValueError("a whole number belongs here")
    return int(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false belongs here")
    return value


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text belongs here")
    return value
