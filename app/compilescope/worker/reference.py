"""A call in double precision, to judge the errors of both sides by."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from compilescope.worker.inputs import Inputs, duplicate, leaves, mapped
from compilescope.worker.models import state, storage_bytes
from compilescope.worker.steps import Recipe

DOUBLE: dict[Any, torch.dtype] = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}
# for models of a half type that cannot be computed in double precision
SINGLE: dict[Any, torch.dtype] = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
_NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}


class NoReferenceError(Exception):
    """Why there is no reference; the text is a clause to follow "No reference in double precision: "."""


class Doubled(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes every operation work in double precision, also where the model casts, autocasts, or holds constants.

    Random numbers are drawn in the type that they would be drawn in without this, so that they are eager's.
    """

    def __init__(self, default: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._default = default

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.view.dtype:
            raise NoReferenceError("the model looks at the bits of its numbers")
        if torch.Tag.nondeterministic_seeded in func.tags:
            return _drawn(func, args, self._with_default_type(func, args, kwargs or {}))
        written = {id(value) for value in _written(func, args, kwargs or {})}

        def widened(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                wider = None if id(value) in written else DOUBLE.get(value.dtype)
                return value if wider is None else value.to(wider)
            return DOUBLE.get(value, value) if isinstance(value, torch.dtype) else value

        args, kwargs = tree_map(widened, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _with_default_type(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Numbers drawn from nothing have the default type, which is another one now."""
        takes_type = any(argument.name == "dtype" for argument in func._schema.arguments)
        if not takes_type or kwargs.get("dtype") is not None or any(isinstance(value, torch.Tensor) for value in args):
            return kwargs
        return {**kwargs, "dtype": self._default}


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """The tensors that an operation writes to: a wider copy of one would take the writing and be lost."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            yield from value if isinstance(value, (list, tuple)) else (value,)


def _drawn(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation that draws random numbers, done narrow, its results widened."""
    targets = [value for value in _written(func, args, kwargs) if isinstance(value, torch.Tensor)]
    narrow: dict[int, torch.Tensor] = {}

    def narrowed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype not in _NARROWER:
            return value
        return narrow.setdefault(id(value), value.to(_NARROWER[value.dtype]))

    small_args, small_kwargs = tree_map(narrowed, (args, kwargs))
    result = func(*small_args, **small_kwargs)
    for target in targets:
        if id(target) in narrow:
            target.copy_(narrow[id(target)])
    if targets:
        return targets[0]
    return tree_map(lambda value: value.to(DOUBLE[value.dtype]) if _is_narrow(value) else value, result)


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in DOUBLE


@contextlib.contextmanager
def doubled() -> Iterator[None]:
    """While this holds, everything is computed in double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Doubled(before):
            yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def widened(model: nn.Module, wider: Mapping[Any, torch.dtype] = DOUBLE) -> Iterator[None]:
    """While this holds, the model's parameters and buffers are held in wider types; then they are the old ones again,
    in the memory that they had."""
    kept = [(tensor, tensor.data) for tensor in state(model) if tensor.dtype in wider]
    model.zero_grad(set_to_none=True)
    try:
        for tensor, value in kept:
            tensor.data = value.to(wider[value.dtype])
        yield
    finally:
        model.zero_grad(set_to_none=True)
        for tensor, value in kept:
            tensor.data = value


def widened_inputs(inputs: Inputs, wider: Mapping[Any, torch.dtype] = DOUBLE) -> Inputs:
    """A copy of the inputs in wider types; whole numbers, targets among them, stay as they are."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype not in wider:
            return tensor
        return tensor.detach().to(wider[tensor.dtype]).requires_grad_(tensor.requires_grad)

    args, kwargs = mapped(duplicate(inputs).tree, change)
    return Inputs(args=args, kwargs=kwargs)


def widened_recipe(recipe: Recipe) -> Recipe:
    """The same work without autocast, and without inference mode, in which compound operations are not taken apart.

    And without the optimizer, whose state would take as much memory again.
    """
    return dataclasses.replace(recipe, precision="fp32", grad_mode="no_grad", optimizer=None)


def attempted(make: Callable[[], Any], mode: Callable[[], contextlib.AbstractContextManager[Any]] = doubled) -> Any:
    """What `make` makes under `doubled`, or another mode; NoReferenceError tells why not, in a clause."""
    try:
        with mode():
            return make()
    except NoReferenceError:
        raise
    except (torch.OutOfMemoryError, MemoryError):
        raise NoReferenceError("there was not enough memory") from None
    except Exception as error:  # whatever a model does may not be possible in double precision
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise NoReferenceError(
            f"the model fails in it ({type(error).__name__}: {text[:160]})".replace(": )", ")")
        ) from error


def need_room(recipe: Recipe, model: nn.Module, inputs: Inputs, peak_bytes: int | None) -> None:
    """Raises NoReferenceError where double precision would not fit. `peak_bytes`: what eager's call reached."""
    holds = storage_bytes(state(model)) * (2 if recipe.training else 1)
    holds += storage_bytes(leaf for _, leaf in leaves(inputs.tree, "") if isinstance(leaf, torch.Tensor))
    need, free = 2 * max(holds, peak_bytes or 0), _free_bytes(recipe.device)
    if free is not None and need > free:
        raise NoReferenceError(f"it needs about {need / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free")


def _free_bytes(device: torch.device) -> int | None:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
