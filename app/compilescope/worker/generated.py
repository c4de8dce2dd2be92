"""Kernels that Inductor generated, told to the profiler by name while a call is profiled.

Inductor's C++ kernels are plain functions that no profiler sees, and Triton's leave no word of the tensors they take.
Both are looked up in the generated module at each call, so that a stand-in can take their place for a while.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from compilescope.worker.environment import attempt
from compilescope.worker.work import PARTIAL, size_of

CPP, TRITON = "cpp_", "triton_"


@dataclass(kw_only=True)
class Use:
    """Calls of one kernel; `bytes`: of all their tensors, each counted once a call; None where it takes but a part."""

    calls: int = 0
    bytes: int | None = 0

    @property
    def bytes_per_call(self) -> float | None:
        return None if self.bytes is None or not self.calls else self.bytes / self.calls

    def note(self, tensors: tuple[Any, ...]) -> None:
        self.calls += 1
        if self.bytes is not None:
            self.bytes += sum(size_of(value) for value in tensors if isinstance(value, torch.Tensor))


class _Launcher:
    """Stands in for a Triton kernel: notes what it is launched with."""

    def __init__(self, kernel: Any, use: Use) -> None:
        self._kernel = kernel
        self._use = use

    def run(self, *args: Any, **kwargs: Any) -> Any:
        attempt(lambda: self._use.note(args), None)
        return self._kernel.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


@contextlib.contextmanager
def told() -> Iterator[dict[str, Use]]:
    """While this holds, generated C++ kernels are events of their own; what each of all kernels was called with."""
    uses: dict[str, Use] = {}
    replaced: list[tuple[ModuleType, str, Any]] = []
    try:
        for module in _modules():
            for name, kernel in list(vars(module).items()):
                stand_in = _stand_in(name, kernel, uses)
                if stand_in is not None:
                    replaced.append((module, name, kernel))
                    setattr(module, name, stand_in)
        yield uses
    finally:
        for module, name, kernel in replaced:
            setattr(module, name, kernel)


def _modules() -> list[ModuleType]:
    """The modules of generated code that this process has loaded."""
    loaded: Any = attempt(_code_cache, None)
    modules = getattr(loaded, "modules", None)
    return list(modules if modules is not None else getattr(loaded, "cache", {}).values())


def _code_cache() -> Any:
    from torch._inductor.codecache import PyCodeCache

    return PyCodeCache


def _stand_in(name: str, kernel: Any, uses: dict[str, Use]) -> Any:
    """What takes the kernel's place; None for whatever is no kernel."""
    if name.startswith(TRITON) and callable(getattr(kernel, "run", None)):
        return _Launcher(kernel, _use(name, uses))
    if name.startswith(CPP) and callable(kernel):
        return _named(name, kernel, _use(name, uses))
    return None


def _use(name: str, uses: dict[str, Use]) -> Use:
    is_partial = any(word in name for word in PARTIAL)
    return uses.setdefault(name, Use(bytes=None if is_partial else 0))


def _named(name: str, kernel: Callable[..., Any], use: Use) -> Callable[..., Any]:
    record = getattr(torch._C._profiler, "_RecordFunctionFast", None) or torch.autograd.profiler.record_function

    def call(*args: Any, **kwargs: Any) -> Any:
        attempt(lambda: use.note(args), None)
        with record(name):
            return kernel(*args, **kwargs)

    return call
