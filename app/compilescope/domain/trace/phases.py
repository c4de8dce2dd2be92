"""Compiler phases: from the names of torch's timed regions to the parts of the compiler that a person knows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from compilescope.domain.trace.records import TraceRecord

# the first prefix that fits decides; names differ from one torch to the next
_GROUPS = (
    ("entire_backward_compile", "backward"),
    ("compile_fx.<locals>.bw_compiler", "backward"),
    ("backward", "backward"),
    ("build_guards", "guards"),
    ("check_guards", "guards"),
    ("dynamo", "dynamo"),
    ("entire_frame_compile", "dynamo"),
    ("_compile.compile_inner", "dynamo"),
    ("compile_attempt", "dynamo"),
    ("bytecode_tracing", "dynamo"),
    ("insert_deferred_runtime_asserts", "dynamo"),
    ("pgo.", "dynamo"),
    ("create_aot_dispatcher_function", "aot"),
    ("aot_", "aot"),
    ("AOTAutogradCache", "aot"),
    ("min_cut", "aot"),
    ("CUDAGraph", "cudagraphs"),
    ("cudagraphify", "cudagraphs"),
    ("CachingAutotuner.benchmark", "autotune"),
    ("CachingAutotuner.coordinate_descent", "autotune"),
    ("benchmark_", "autotune"),
    ("GraphLowering.codegen", "codegen"),
    ("GraphLowering.compile_to_", "codegen"),
    ("code_gen", "codegen"),
    ("Scheduler.codegen", "codegen"),
    ("PythonWrapperCodegen", "codegen"),
    ("WrapperCodeGen", "codegen"),
    ("CppWrapper", "codegen"),
    ("generate_kernel_code", "codegen"),
    ("async_compile", "kernels"),
    ("compile_file", "kernels"),
    ("PyCodeCache", "kernels"),
    ("CppCodeCache", "kernels"),
    ("TritonBundler", "kernels"),
    ("StaticAutotunerFuture", "kernels"),
    ("CachingAutotuner", "kernels"),
    ("triton", "kernels"),
    ("backend_compile", "inductor"),
    ("OutputGraph.call_user_compiler", "inductor"),
    ("inductor", "inductor"),
    ("compile_fx", "inductor"),
    ("fx_", "inductor"),
    ("FxGraphCache", "inductor"),
    ("additional_fake_tensor_prop", "inductor"),
    ("_recursive_", "inductor"),
    ("pass.", "inductor"),
    ("GraphLowering", "inductor"),
    ("Scheduler", "inductor"),
)
_AUTOTUNED = re.compile(r"(\w+)_template_(autotuning|precompiling)$")
_HEAD = re.compile(rb'\s*\{\s*"name": "([^"\\]*)",\s*"ts": ([0-9.]+)')
_STATE = re.compile(rb'"ph": "(\w)",\s*"cat": "')
_ENDS = 160


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A timed region began ("B"), ended ("E"), or something happened at once ("i"). `seconds` is Unix time."""

    name: str
    state: str
    seconds: float


@lru_cache(maxsize=4096)
def group(name: str) -> str:
    """The part of the compiler that a timed region belongs to."""
    if _AUTOTUNED.match(name):
        return "autotune"
    return next((found for prefix, found in _GROUPS if name.startswith(prefix)), "other")


def autotuned_operation(name: str) -> str | None:
    """The operation whose choices a timed region measures: "mm" for "mm_template_autotuning"."""
    match = _AUTOTUNED.match(name)
    return match[1] if match and match[2] == "autotuning" else None


def parse_tick(record: TraceRecord) -> Tick | None:
    """A timed region's begin or end; cache events carry tens of kilobytes, so only both ends of the text are read."""
    head, state = record.matches(_HEAD, _STATE, _ENDS)
    if head and state:
        return Tick(name=head[1].decode(), state=state[1].decode(), seconds=float(head[2]) / 1e6)
    try:
        value = json.loads(record.payload)
        return Tick(name=str(value["name"]), state=str(value["ph"]), seconds=float(value["ts"]) / 1e6)
    except (ValueError, KeyError, TypeError):
        return None
