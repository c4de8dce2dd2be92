"""Has Inductor note which source lines each kernel comes from, and changes nothing else of what it makes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# torch calls this one basic: it tells the stacks that the graph has, and does not watch each pass over it
LEVEL = 2


def note_kernels() -> None:
    """From now on generated code and trace tell each launch's lines; a torch that cannot (before 2.9) stays as it is.

    The level holds while code is generated and not before: it is a part of the cache key, which has to be the one of
    the user's own runs. The code differs in comments alone.
    """
    import torch._inductor.compile_fx as compile_fx
    from torch._inductor import config

    compiler = getattr(compile_fx, "_InProcessFxCompile", None)
    generate: Callable[..., Any] | None = getattr(compiler, "codegen_and_compile", None)
    if compiler is None or generate is None or not hasattr(config.trace, "provenance_tracking_level"):
        return

    @functools.wraps(generate)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if config.trace.provenance_tracking_level:  # the user's own environment asks for it
            return generate(*args, **kwargs)
        with config.patch({"trace.provenance_tracking_level": LEVEL}):
            return generate(*args, **kwargs)

    compiler.codegen_and_compile = noting
