"""The inputs of a model: how they are made, copied, moved to a device, resized and described."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from compilescope.domain.events import Input
from compilescope.worker.errors import WorkerError


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def tree(self) -> tuple[Any, ...]:
        return (self.args, dict(self.kwargs))


def from_value(value: Any) -> Inputs:
    """The call that a script's inputs stand for: a tensor, a sequence of arguments, or keyword arguments."""
    if isinstance(value, torch.Tensor):
        return Inputs(args=(value,))
    if isinstance(value, Mapping):
        return Inputs(kwargs={str(key): item for key, item in value.items()})
    if isinstance(value, (tuple, list)):
        return Inputs(args=tuple(value))
    raise WorkerError(
        f"The script's inputs are of type {type(value).__name__}.",
        hint="Give a tensor, a tuple or list of arguments, or a dict of keyword arguments.",
    )


class Source:
    """Makes the inputs of each call, on the device, as the script makes them."""

    def __init__(self, make: Callable[[], Any], device: torch.device) -> None:
        self._make = make
        self._device = device
        self.sizes: Mapping[str, Sequence[int]] = {}
        self._names: list[str] = []

    def use_names_of(self, model: nn.Module) -> None:
        """Positional arguments are named after the parameters of `forward`."""
        self._names = argument_names(model)

    def make(self) -> Inputs:
        """New inputs; nothing else holds them."""
        inputs = to_device(duplicate(from_value(self._make())), self._device)
        return resized(inputs, self._names, self.sizes) if self.sizes else inputs

    def describe(self, inputs: Inputs) -> tuple[Input, ...]:
        named = [(self._name(index), item) for index, item in enumerate(inputs.args)]
        return tuple(row for name, item in [*named, *inputs.kwargs.items()] for row in _describe(name, item))

    def _name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else f"args[{index}]"


def argument_names(model: nn.Module) -> list[str]:
    """Names of the positional parameters of `forward`."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]


def duplicate(inputs: Inputs) -> Inputs:
    """A copy that shares no memory, with strides, aliases and dynamo's marks as they are."""
    try:
        args, kwargs = copy.deepcopy(inputs.tree, _copies_of_jagged(inputs))
    except (RuntimeError, TypeError, NotImplementedError):
        # deepcopy refuses tensors with a history and objects that hold locks
        args, kwargs = mapped(inputs.tree, _copied)
    return Inputs(args=args, kwargs=kwargs)


def _copies_of_jagged(inputs: Inputs) -> dict[int, Any]:
    """A deep copy of a jagged tensor has the old one's symbolic size beside new offsets, and its backward fails."""
    if torch.is_inference_mode_enabled():
        return {}  # which has no backward, and where such a tensor cannot be detached
    tensors = [leaf for _, leaf in leaves(inputs.tree, "") if isinstance(leaf, torch.Tensor) and leaf.is_nested]
    return {id(tensor): _copied(tensor) for tensor in tensors}


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        twin = tensor.detach().clone()
    return _marked(twin.requires_grad_(tensor.requires_grad), tensor)


def to_device(inputs: Inputs, device: torch.device) -> Inputs:
    args, kwargs = mapped(inputs.tree, lambda tensor: _moved(tensor, device))
    return Inputs(args=args, kwargs=kwargs)


def _moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    if tensor.device.type == device.type and (device.index is None or tensor.device.index == device.index):
        return tensor
    with torch.no_grad():
        twin = tensor.detach().to(device)
    return _marked(twin.requires_grad_(tensor.requires_grad), tensor)


def _marked(twin: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """mark_dynamic and its like write attributes, which a copy by torch loses."""
    for name, value in vars(tensor).items():
        if name.startswith("_dynamo"):
            setattr(twin, name, copy.copy(value))
    return twin


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor changed; what is no known container stays as it is."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        items = {key: mapped(item, change) for key, item in value.items()}
        return items if type(value) is dict else _refilled(value, items)
    if isinstance(value, (tuple, list)):
        parts = [mapped(item, change) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else _as_type(value, parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        twin = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(twin, field.name, mapped(getattr(value, field.name), change))
        return twin
    return value


def _as_type(value: Sequence[Any], parts: list[Any]) -> Any:
    """Also of torch's own tuples, such as that of `max`; of a class with another constructor the plain kind."""
    try:
        return type(value)(parts)  # type: ignore[call-arg]
    except TypeError:
        return tuple(parts) if isinstance(value, tuple) else parts


def _refilled(value: dict[Any, Any], items: dict[Any, Any]) -> Any:
    twin = copy.copy(value)
    for key, item in items.items():
        twin[key] = item
    return twin


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every part that is no container, with its path; containers that are empty or opaque count as parts."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]" if path else str(key))
    elif isinstance(value, (tuple, list)) and value:
        fields = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}.{fields[index]}" if fields else f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, Mapping)):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield path, value


def signature(inputs: Inputs) -> tuple[object, ...]:
    """What a change of makes torch.compile look again: shapes and dtypes of tensors, values of numbers."""
    rows: list[object] = []
    for path, leaf in leaves(inputs.tree, ""):
        if isinstance(leaf, torch.Tensor):
            # strided nested tensors have no shape, and jagged ones a symbol that is another one each time
            shape = None if leaf.is_nested else tuple(leaf.shape)
            rows.append((path, shape, str(leaf.dtype)))
        elif isinstance(leaf, (bool, int, str, type(None))):
            rows.append((path, leaf))
    return tuple(rows)


def _describe(name: str, value: Any) -> Iterator[Input]:
    for path, leaf in leaves(value, name):
        if isinstance(leaf, torch.Tensor):
            yield Input(
                name=path,
                shape=() if leaf.is_nested else tuple(int(size) for size in leaf.shape),
                detail="nested" if leaf.is_nested else "",
                dtype=str(leaf.dtype).removeprefix("torch."),
                device=str(leaf.device),
            )
        else:
            yield Input(name=path, detail=f"{type(leaf).__name__} {_short(leaf)}".strip())


def _short(value: Any) -> str:
    if value is None or not isinstance(value, (bool, int, float, complex, str, bytes)):
        return ""
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def resized(inputs: Inputs, names: Sequence[str], sizes: Mapping[str, Sequence[int]]) -> Inputs:
    """The inputs with tensors of chosen sizes in place of the script's own."""
    args, kwargs = list(inputs.args), dict(inputs.kwargs)
    for name, size in sizes.items():
        if name in kwargs:
            kwargs[name] = _like(name, kwargs[name], size)
        elif name in names and names.index(name) < len(args):
            args[names.index(name)] = _like(name, args[names.index(name)], size)
        else:
            offered = [*names[: len(args)], *kwargs]
            raise WorkerError(f"The model has no input {name}.", hint=f"Its inputs are {', '.join(offered) or 'none'}.")
    return Inputs(args=tuple(args), kwargs=kwargs)


def _like(name: str, tensor: Any, size: Sequence[int]) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise WorkerError(f"The input {name} is no tensor, so it has no size to choose.")
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        twin = torch.randn(*size, dtype=torch.float32, device=tensor.device).to(tensor.dtype)
    elif tensor.dtype is torch.bool:
        twin = torch.rand(*size, device=tensor.device) < 0.5
    else:
        # whole numbers are mostly indices: stay within what the script uses
        low, high = (int(tensor.min()), int(tensor.max())) if tensor.numel() else (0, 0)
        twin = torch.randint(low, high + 1, tuple(size), dtype=tensor.dtype, device=tensor.device)
    return twin.requires_grad_(tensor.requires_grad)
