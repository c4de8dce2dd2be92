"""What a process pays once, whatever the model: imports, the device's context, what the C++ compiler is prepared with.

Timed apart, since a first call that holds them says little about the model: a header that is compiled once per machine
can take longer than the model, and is there already when the next configuration starts cold.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from compilescope.domain.events import Event, FirstUse

# once it was done, each of them returns at once
LEAST_S = 1e-3
# what Inductor does before its first C++ kernel, by module and function; what a torch lacks stays unknown
_PREPARATIONS = (
    ("torch._inductor.cpu_vec_isa", "valid_vec_isa_list", "test of the C++ compiler"),
    ("torch._inductor.codecache", "_precompile_header", "header of the C++ kernels"),
)


@contextlib.contextmanager
def timed(name: str, emit: Callable[[Event], None]) -> Iterator[None]:
    """Tell how long this took."""
    began = perf_counter()
    yield
    emit(FirstUse(name=name, duration_s=perf_counter() - began))


def watch(emit: Callable[[Event], None]) -> None:
    """Tell what Inductor prepares during the first call, when it does."""
    for module_name, function, name in _PREPARATIONS:
        module = sys.modules.get(module_name)
        original = getattr(module, function, None)
        if callable(original):
            setattr(module, function, _watched(original, name, emit))


def _watched(original: Callable[..., Any], name: str, emit: Callable[[Event], None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        began = perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            took = perf_counter() - began
            if took >= LEAST_S:
                emit(FirstUse(name=name, duration_s=took))

    # torch empties the caches of such functions by name
    for method in ("cache_clear", "cache_info"):
        if hasattr(original, method):
            setattr(watched, method, getattr(original, method))
    return watched
