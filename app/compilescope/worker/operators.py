"""Which of the profiler's events do work: operators that compute, apart from those that only call others or give a
tensor another shape."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch

from compilescope.worker.environment import attempt

Key = tuple[str, tuple[tuple[int, ...], ...]]

_COMPOSITE = "CompositeImplicitAutograd"
_ALLOCATIONS = ("empty", "new_empty", "resize_", "set_", "_unsafe_view", "record_stream")


def computing(events: Iterable[Any], generated: Collection[str] = ()) -> Iterator[Any]:
    """The outermost events on the CPU that do work: operators, and generated kernels by their names."""
    pending = [event for event in events if event.cpu_parent is None and is_on_cpu(event)]
    while pending:
        event = pending.pop()
        if event.name in generated or does_work(event.name):
            yield event
        else:
            pending.extend(event.cpu_children)


def is_on_cpu(event: Any) -> bool:
    return str(event.device_type).endswith("CPU")


@functools.cache
def does_work(name: str) -> bool:
    """Whether this is an operator with a kernel of its own that reads or writes elements."""
    overloads: list[Any] = attempt(lambda: _overloads(name), [])
    own = [overload for overload in overloads if not _is_composite(overload)]
    return bool(own) and not name.partition("::")[2].startswith(_ALLOCATIONS) and not all(map(is_view, own))


def is_view(overload: Any) -> bool:
    """Whether its result shares an input's memory, and nothing is written."""
    returns = overload._schema.returns
    aliases = [value.alias_info for value in returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _overloads(name: str) -> list[Any]:
    namespace, _, base = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), base) if base else None
    # a form that writes into a given tensor has a kernel of its own even where the operator is made of others
    names = [overload for overload in packet.overloads() if "out" not in overload] if packet is not None else []
    return [getattr(packet, overload) for overload in names]


def _is_composite(overload: Any) -> bool:
    """Whether it is made of other operators; so is what scripts have and the dispatcher does not know."""
    return attempt(lambda: bool(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), _COMPOSITE)), True)


def key_of_event(event: Any) -> Key:
    """An operator with the shapes of its tensors; those of single elements are left out, as numbers look the same."""
    return event.name, tuple(tuple(shape) for shape in event.input_shapes or () if _is_shape(shape))


def key_of_call(name: str, tensors: Iterable[torch.Tensor]) -> Key:
    """The same from a call, whose tensors come in the order of the operator's arguments."""
    return name, tuple(tuple(int(size) for size in tensor.shape) for tensor in tensors if tensor.dim())


def _is_shape(value: Any) -> bool:
    return bool(value) and all(isinstance(size, int) for size in value)
