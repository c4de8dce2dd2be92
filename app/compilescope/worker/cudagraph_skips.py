"""CUDA graphs that torch does without and says nothing: where a graph is divided into partitions, it leaves out the
message that it otherwise logs, and the reasons stand in the compiled graph alone."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

_MODULE, _FUNCTION = "torch._inductor.output_code", "cudagraph_partition_post_compile"
_NO_PARTITION = "no part of the graph can be recorded: each of its operators works on the CPU or refuses to be"


def listen(take: Callable[[str], None]) -> bool:
    """Hand the reasons of each graph that is left out to `take`, as it is compiled or found in a cache.

    Whether there is something to hear: not before Inductor was imported, nor from a torch that knows no partitions.
    """
    module = sys.modules.get(_MODULE)
    original = getattr(module, _FUNCTION, None)
    if module is None or not callable(original):
        return False

    @functools.wraps(original)
    def post_compile(example_inputs: Any, compiled_graph: Any, cudagraphs: Any, *rest: Any, **named: Any) -> Any:
        result = original(example_inputs, compiled_graph, cudagraphs, *rest, **named)
        # torch switches the box off that it was given
        if not cudagraphs and (reason := _reason(compiled_graph)):
            take(reason)
        return result

    setattr(module, _FUNCTION, post_compile)
    return True


def _reason(graph: Any) -> str:
    """Empty where there is no GPU to record on, or where torch has another reason that it does tell."""
    if not set(getattr(graph, "device_types", ())) - {"cpu", "meta"}:
        return ""
    reasons = getattr(getattr(graph, "cudagraph_info", None), "cudagraph_fail_reasons", None) or ()
    if reasons:
        return str(getattr(graph, "disabled_cudagraphs_reason", None) or ", ".join(map(str, reasons)))
    return "" if getattr(graph, "partition_maps", None) else _NO_PARTITION
