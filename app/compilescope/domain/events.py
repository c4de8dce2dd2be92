"""The facts a worker tells, one JSON object a line. Readers skip unknown types and keys.

`at` is in seconds since the process's `hello`; durations end in `_s`; sizes in `_bytes`. None means unknown.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compilescope.domain import fields

PROTOCOL = 1


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of source code."""

    file: str
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, kw_only=True)
class TextSpan:
    """A text kept in a trace file: bytes `offset` to `offset + length`."""

    file: str
    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something a script offers. `kind`: model class, factory, module, hub or program."""

    name: str
    kind: str
    line: int | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of the model; `shape` and `dtype` are None for what is no tensor, `detail` then says what it is."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class RunError:
    """Why a run did not finish. `type` is the exception's class; `hint` says what to try.

    `ran`: compiled code raised it as it ran, so that nothing failed to compile.
    """

    stage: str
    type: str
    message: str
    hint: str = ""
    traceback: str = ""
    file: str | None = None
    line: int | None = None
    ran: bool = False


@dataclass(frozen=True, kw_only=True)
class Event:
    """What every event may carry."""

    type: ClassVar[str]
    at: float = 0.0
    rank: int | None = None
    compile_id: str | None = None
    thread: int | None = None


@dataclass(frozen=True, kw_only=True)
class Hello(Event):
    """A process has started; first event of each. `time` is Unix time.

    `cache_was_empty`: its folder of compiler caches held nothing then; None where it is torch's own choice.
    """

    type: ClassVar[str] = "hello"
    protocol: int = PROTOCOL
    start: str = "cold"
    time: float = 0.0
    torch: str | None = None
    python: str | None = None
    capabilities: tuple[str, ...] = ()
    cache_was_empty: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Environment(Event):
    """The machine and its software. `devices`: what can be chosen, [{"id": "cuda:0", "name": …}, …].

    `modes`, `backends`: what this torch offers. `missing`: sentences about what is not there.
    """

    type: ClassVar[str] = "environment"
    torch: str | None = None
    python: str | None = None
    triton: str | None = None
    device: str | None = None
    device_capability: str | None = None
    driver: str | None = None
    cuda: str | None = None
    cpu: str | None = None
    os: str | None = None
    compiler: str | None = None
    threads: int | None = None
    devices: tuple[Mapping[str, Any], ...] = ()
    modes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    backends: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkloadReady(Event):
    """What the script offers and what was taken.

    `copies`: how the two models were made: loaded_twice, copied, rebuilt, shared.
    `copies_reason`: why not from two loads of the script, a sentence.
    `float32_matmul_precision`: torch's setting for matrix products, once the script was loaded: highest, high, medium.
    """

    type: ClassVar[str] = "workload"
    entries: tuple[Entry, ...] = ()
    entry: str | None = None
    phase: str | None = None
    precision: str | None = None
    device: str | None = None
    inputs: tuple[Input, ...] = ()
    copies: str | None = None
    copies_reason: str | None = None
    parameters: int | None = None
    parameter_bytes: int | None = None
    float32_matmul_precision: str | None = None


@dataclass(frozen=True, kw_only=True)
class Stage(Event):
    """A stage began or ended: start, load, eager, compile, check, warm_up, measure, profile, done."""

    type: ClassVar[str] = "stage"
    name: str = ""
    state: str = "begin"  # begin | end
    duration_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Phase(Event):
    """A compiler phase began or ended. `group`: dynamo, guards, aot, inductor, codegen, kernels, autotune, backward,
    cudagraphs, other."""

    type: ClassVar[str] = "phase"
    name: str = ""
    group: str = "other"
    state: str = "begin"  # begin | end
    duration_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Compile(Event):
    """One attempt to compile one frame. `state`: begin, end, skipped, failed. `graphs`, `ops`: what it captured."""

    type: ClassVar[str] = "compile"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    trigger: str | None = None
    state: str = "begin"
    reason: str | None = None
    graphs: int | None = None
    ops: int | None = None
    guards: int | None = None
    guard_latency_us: float | None = None
    duration_s: float | None = None
    capture_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Text(Event):
    """A long text in the trace file: a graph, generated code, the guard tree. `kind`: dynamo_graph, aot_forward …

    `digest`: of output code, the same for modules that run the same.
    """

    type: ClassVar[str] = "text"
    kind: str = ""
    name: str = ""
    file: str = ""
    offset: int = 0
    length: int = 0
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class GraphBreak(Event):
    """Dynamo left the graph. `kind` and `reason` are the root cause's; `consequences` are what followed from it.

    `origin`: empty for the script's; worker or torch for one of the training step around the model.
    """

    type: ClassVar[str] = "graph_break"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    id: str | None = None
    kind: str = ""
    reason: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    stack: tuple[Place, ...] = ()
    in_loop: bool | None = None
    # the branch decides whether a loop goes on: the test of a `while`, or an `if` around a `break`
    ends_loop: bool | None = None
    frame_skipped: bool | None = None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Recompile(Event):
    """A function was compiled again since a guard failed. `source`: argument or attribute; `dimension`: its axis.

    `origin`: empty for the script's; worker or torch for one of the training step around the model.
    """

    type: ClassVar[str] = "recompile"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    guard: str = ""
    reason: str = ""
    source: str | None = None
    dimension: int | None = None
    expected: str | None = None
    actual: str | None = None
    failed_compile_id: str | None = None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class RecompileLimit(Event):
    """A function reached the recompile limit; from now on it runs eager for other inputs."""

    type: ClassVar[str] = "recompile_limit"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    limit: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Symbol(Event):
    """A dimension's fate. `state`: symbolic, specialised, constrained, unbacked."""

    type: ClassVar[str] = "symbol"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    state: str = ""
    symbol: str = ""
    source: str | None = None
    value: str | None = None
    range: str | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cache(Event):
    """One cache lookup. `cache`: fx_graph, aot_autograd, …; `state`: hit, miss, bypass."""

    type: ClassVar[str] = "cache"
    cache: str = ""
    state: str = ""
    key: str | None = None
    components: TextSpan | None = None
    reason: str | None = None
    duration_s: float | None = None
    saved_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class CudaGraph(Event):
    """A CUDA graph was recorded, or not. `state`: recorded, skipped, warning."""

    type: ClassVar[str] = "cudagraph"
    file: str | None = None
    line: int | None = None
    function: str | None = None
    state: str = ""
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Autotune(Event):
    """One operation was autotuned. `choices`: [{"name", "seconds" (None = failed), "detail"}, …], fastest first."""

    type: ClassVar[str] = "autotune"
    operation: str = ""
    inputs: tuple[str, ...] = ()
    choices: tuple[Mapping[str, Any], ...] = ()
    winner: str | None = None
    duration_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Kernel(Event):
    """One generated or library kernel; `places`: the source lines it came from. `kind`: triton, cpp, extern."""

    type: ClassVar[str] = "kernel"
    name: str = ""
    kind: str = ""
    launches: int | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FirstCall(Event):
    """A first call has ended, of the script's own or first shape (0) or of a later one of a sweep.

    `capture_s`: the part of it that our own hooks took.
    """

    type: ClassVar[str] = "first_call"
    side: str = ""  # eager | compiled
    shape: int = 0
    direction: str = "forward"  # forward | step
    duration_s: float = 0.0
    capture_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class FirstUse(Event):
    """What a process pays once, whatever the model, has been paid: an import, a device's context, a test of the
    compiler. Told at its end; one that lies within the first call is a part of that."""

    type: ClassVar[str] = "first_use"
    name: str = ""
    duration_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Samples(Event):
    """Timed calls, in chunks. `seconds[i]` is the time per call of block `block + i` (`measure` back_to_back), or of
    one synchronised call (`measure` latency); `wall_s` the wall clock beside a device clock; `clock_mhz` the GPU's
    clock while each block ran, or right after it. Both are empty where they are not known."""

    type: ClassVar[str] = "samples"
    side: str = ""  # eager | compiled
    shape: int = 0
    block: int = 0
    measure: str = "back_to_back"  # back_to_back | latency
    clock: str = "wall"  # cuda_event | wall
    seconds: tuple[float, ...] = ()
    wall_s: tuple[float, ...] = ()
    calls: tuple[int, ...] = ()
    clock_mhz: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Entered(Event):
    """How often so many calls of the compiled side entered compiled code; counted in calls that nobody timed."""

    type: ClassVar[str] = "entered"
    calls: int = 1
    entries: int = 0


@dataclass(frozen=True, kw_only=True)
class Void(Event):
    """A timed block does not count. `reason`: a sentence."""

    type: ClassVar[str] = "void"
    block: int = 0
    side: str | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Measured(Event):
    """Timing of one shape has ended. `stop`: interval or budget.

    `l2_flush`: whether the L2 cache was written over before each call; None where there is none to flush.
    `restored`: each call was timed alone, with inputs and state put back before it. `queued`: blocks followed each
    other without a pause; None on a device that has no queue.
    """

    type: ClassVar[str] = "measured"
    shape: int = 0
    stop: str = "budget"
    l2_flush: bool | None = None
    restored: bool = False
    queued: bool | None = None


@dataclass(frozen=True, kw_only=True)
class GpuBusy(Event):
    """Sum of kernel times per call, from the profiler; beside the time per call it tells launch-bound from busy.

    `copies_s`: of what moved or filled memory meanwhile. Of a sweep's last size.
    """

    type: ClassVar[str] = "gpu_busy"
    side: str = ""
    seconds: float = 0.0
    copies_s: float = 0.0
    launches: float | None = None
    kernels: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class KernelTime:
    """A kernel's or an operator's part of one call. `kind`: operator, triton, cpp, library.

    `flops` are those of matrix products, convolutions and attention, in `dtype`; `bytes` those of the tensors read and
    written, each once. Both are per call of the model, as are `seconds` and `launches`; None where not known.
    """

    name: str
    kind: str = "library"
    seconds: float = 0.0
    launches: float = 0.0
    operator: str | None = None
    flops: float | None = None
    bytes: float | None = None
    dtype: str | None = None


@dataclass(frozen=True, kw_only=True)
class Profile(Event):
    """Where the time of a call goes, by the profiler, after all timing. All figures are per call.

    `clock`: device (kernels on the GPU, by their own clock) or cpu (operators and generated kernels). `call_s` is what
    a call took while it was profiled, and longer than a timed one; `active_s` the time in which a kernel or a copy ran.
    `kernels` are the heaviest; `seconds` and `launches` are of all `names`. `flops`: by type, of the whole call.
    Of a sweep's last size.
    """

    type: ClassVar[str] = "profile"
    side: str = ""  # eager | compiled
    clock: str = "cpu"  # device | cpu
    calls: int = 0
    call_s: float | None = None
    active_s: float | None = None
    seconds: float = 0.0
    launches: float = 0.0
    names: int = 0
    kernels: tuple[KernelTime, ...] = ()
    flops: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Memory(Event):
    """Peaks of one side. `when`: first_call, steady. `rss_bytes` is the whole process's, both sides included.

    `allocated_peak_bytes`: with what CUDA graphs keep for their replays, which allocate nothing.
    """

    type: ClassVar[str] = "memory"
    side: str = ""
    when: str = "steady"
    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    rss_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Numerics(Event):
    """One comparison. `subject`: outputs, inputs, buffers, state (attributes and globals), loss, gradients, input
    gradients, update (of the optimizer). `verdict`: match, differ, nondeterministic, not_checked. `shape`: the size of
    a sweep that it is of; None for the first."""

    type: ClassVar[str] = "numerics"
    subject: str = "outputs"
    backend: str | None = None
    verdict: str = "not_checked"
    max_abs_error: float | None = None
    reference_ratio: float | None = None
    detail: str = ""
    shape: int | None = None


@dataclass(frozen=True, kw_only=True)
class Noise(Event):
    """The machine's state around the timing."""

    type: ClassVar[str] = "noise"
    clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] = ()
    processes: int | None = None
    load_average: float | None = None


@dataclass(frozen=True, kw_only=True)
class Warning(Event):
    """Something the reader of the numbers should know. `code` is stable, `message` and `hint` are sentences."""

    type: ClassVar[str] = "warning"
    code: str = ""
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure(Event):
    """The worker's own word on why it cannot go on; the engine makes the outcome from it."""

    type: ClassVar[str] = "failure"
    error: RunError | None = None


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """How the run ended: finished, failed, crashed, stopped, timed_out. Written by the engine, last."""

    type: ClassVar[str] = "ended"
    outcome: str = "finished"
    error: RunError | None = None
    exit_code: int | None = None
    signal: str | None = None
    last_lines: tuple[str, ...] = ()


def _event_types() -> dict[str, type[Event]]:
    return {cls.type: cls for cls in Event.__subclasses__()}


TYPES = _event_types()


def encode(event: Event) -> str:
    """One compact line of JSON, without the line end; fields that are None are left out."""
    value: dict[str, Any] = {"type": event.type}
    for field in dataclasses.fields(event):
        item = getattr(event, field.name)
        if item is None:
            continue
        value[field.name] = _plain(item)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str)


def decode(line: str | bytes) -> Event | None:
    """The event in a line, or None where the line is no event of a known type."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return from_mapping(value) if isinstance(value, dict) else None


def from_mapping(value: Mapping[str, Any]) -> Event | None:
    """The event that a JSON object stands for, or None where its type is unknown or a value does not fit."""
    name = value.get("type")
    cls = TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        return None
    try:
        event: Event = fields.build(cls, value)
    except (TypeError, ValueError, OverflowError):
        return None
    return event


def _plain(item: Any) -> Any:
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: _plain(v) for f in dataclasses.fields(item) if (v := getattr(item, f.name)) is not None}
    if isinstance(item, (list, tuple)):
        return [_plain(part) for part in item]
    if isinstance(item, Mapping):
        return {str(key): _plain(part) for key, part in item.items()}
    if isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
        return None
    return item
