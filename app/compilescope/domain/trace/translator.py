"""Trace records, logger messages and compile callbacks, told as events: one road for live runs and saved traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.trace import caches, code, messages, origins
from compilescope.domain.trace.breaks import parse_break, parse_error_stack
from compilescope.domain.trace.frames import Entrance, Frame, is_limit, is_wrapper, outcome
from compilescope.domain.trace.places import Places, function_name
from compilescope.domain.trace.recompiles import parse_reasons
from compilescope.domain.trace.records import TraceRecord, read_trace
from compilescope.domain.trace.resumes import Functions, is_resumed, last_line
from compilescope.domain.trace.symbols import Symbols
from compilescope.domain.trace.timeline import Timeline
from compilescope.domain.trace.variants import Variants

_TEXTS = {
    "dynamo_output_graph": "dynamo_graph",
    "compiled_autograd_graph": "compiled_autograd",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_joint_graph": "aot_joint",
    "aot_inference_graph": "aot_inference",
    "before_pre_grad_graph": "before_pre_grad",
    "after_pre_grad_graph": "after_pre_grad",
    "before_joint_graph": "before_joint",
    "after_joint_graph": "after_joint",
    "before_post_grad_graph": "before_post_grad",
    "inductor_post_grad_graph": "post_grad",
    "inductor_output_code": "output_code",
    "fx_graph_runnable": "runnable",
    "dynamo_cpp_guards_str": "guards",
    "dynamo_side_effects": "side_effects",
    "optimize_ddp_split_graph": "ddp_split",
}


class TraceTranslator:
    """Turns what torch says into events. Not thread-safe: the caller serialises.

    `trace`: the file that text events point into. `hidden`: folders whose frames belong to the program that compiles.
    `entrance`: what a wrapped library module's frame stands for.
    """

    def __init__(self, trace: str = "", hidden: Sequence[str] = ()) -> None:
        self.trace = trace
        self.entrance: Entrance | None = None
        self.timeline = Timeline()
        self._places = Places(hidden)
        self._symbols = Symbols(self._places)
        self._frames: dict[str | None, Frame] = {}
        self._functions = Functions()
        self._variants: dict[str, Variants] = {}
        self._limits: set[e.Place] = set()
        self._messages: set[str] = set()
        # reasons for doing without CUDA graphs that loggers told
        self._skips: set[str] = set()
        self._records: dict[str, Callable[[TraceRecord], list[e.Event]]] = {
            "str": self._string,
            "dynamo_start": self._start,
            "dynamo_output_graph": self._graph,
            "aot_backward_graph": self._backward_graph,
            "compilation_metrics": self._metrics,
            "inductor_output_code": self._code,
            "create_symbol": self._symbol,
            "create_unbacked_symbol": self._symbol,
            "guard_added_fast": self._symbol,
            "symbolic_shape_specialization": self._symbol,
        }
        self._artifacts: dict[str, Callable[[TraceRecord], list[e.Event]]] = {
            "dynamo_graph_break_reason": self._break,
            "dynamo_error": self._error,
            "recompile_reasons": self._reasons,
            "inductor_provenance_tracking_kernel_stack_traces": self._kernel_places,
        }

    @property
    def nodes(self) -> dict[str, e.Place]:
        """The lines that the nodes of captured graphs stand for, by name; the newest graph's count."""
        return {name: place for frame in self._frames.values() for name, place in frame.nodes.items()}

    def feed(self, record: TraceRecord) -> list[e.Event]:
        """The events of one record, in order."""
        name = record.kind
        if name == "chromium_event":
            # most records by far; a phase knows where it comes from
            events = self.timeline.tell(record)
            return events if len(events) < 2 else self._stamped(record, events)
        handler = self._records.get(name)
        if name == "artifact":
            name = str((record.value or {}).get("name"))
            handler = self._artifacts.get(name)
            if handler is None and name.endswith("_MODIFIED_BYTECODE"):
                handler = self._bytecode
            if handler is None and (found := caches.cache_name(name)):
                return self._stamped(record, [self._cache(record, *found)])
        events = handler(record) if handler else []
        if self.trace and name in _TEXTS and record.length:
            events = [*events, self._text(record, _TEXTS[name])]
        return self._stamped(record, events) if events else events

    def feed_message(self, logger: str, level: str, text: str, at: float = 0.0) -> list[e.Event]:
        """The events of a logger's message. The same text counts once: loggers hand it on to their parents."""
        del logger, level
        if text in self._messages:
            return []
        if limit := messages.parse_limit(text):
            self._messages.add(text)
            return [replace(event, at=at) for event in self._limit(limit.place, limit.limit, limit.reason)]
        if found := messages.parse_cudagraph(text):
            self._messages.add(text)
            if found.state == "skipped":
                self._skips.add(found.reason)
            return [e.CudaGraph(at=at, state=found.state, reason=found.reason, **_fields(found.place))]
        return []

    def feed_cudagraph_skip(self, reason: str, compile_id: str | None = None, at: float = 0.0) -> list[e.Event]:
        """A compiled graph that does without a CUDA graph, if no logger has told it."""
        found = messages.parse_cudagraph(f"{messages.SKIP} {reason}")
        if found is None or found.reason in self._skips:
            return []
        skip = e.CudaGraph(state="skipped", reason=found.reason, **_fields(found.place))
        return [replace(skip, at=at, compile_id=compile_id)]

    def feed_callback(self, trigger: str, compile_id: str | None = None, at: float = 0.0) -> list[e.Event]:
        """The events of a compile callback: only that a CUDA graph is being recorded is news."""
        if trigger != "CUDAGRAPH_RECORDING":
            return []
        return [replace(event, at=at, compile_id=compile_id) for event in self.timeline.recorded("callback")]

    def feed_autotune(self, event: e.Autotune) -> list[e.Event]:
        """An autotuning with all its choices; the time it took is the last such phase's."""
        return [replace(event, duration_s=self.timeline.take_autotune_duration())]

    def finish(self, at: float = 0.0) -> list[e.Event]:
        """What was held back when the trace ended."""
        events: list[e.Event] = []
        for compile_id, frame in self._frames.items():
            held = [*frame.take_breaks(last=True), *frame.take_kernels()]
            events += [replace(event, at=event.at or at, compile_id=compile_id) for event in held]
        return events

    def _stamped(self, record: TraceRecord, events: Sequence[e.Event]) -> list[e.Event]:
        """Say of each event where it comes from. Phases, which are most of them, know already."""
        origin: dict[str, Any] = {"compile_id": record.compile_id, "thread": record.thread, "rank": record.rank}
        return [
            event
            if isinstance(event, e.Phase) or event.compile_id
            else replace(event, at=event.at or record.at, **origin)
            for event in events
        ]

    def _frame(self, record: TraceRecord) -> Frame:
        return self._frames.setdefault(record.compile_id, Frame())

    def _arguments(self, frame: Frame) -> tuple[str, ...]:
        return self.entrance.arguments if frame.is_wrapper and self.entrance else ()

    def _string(self, record: TraceRecord) -> list[e.Event]:
        name, number = record.value
        self._places.intern(name, number)
        return []

    def _set_place(self, frame: Frame, place: e.Place, caller: e.Place | None = None) -> None:
        frame.is_wrapper = is_wrapper(place)
        frame.place = self._unwrapped(place, caller)

    def _unwrapped(self, place: e.Place, caller: e.Place | None = None) -> e.Place:
        """The forward that torch's wrapper stands for, or at least the line that called it."""
        if not is_wrapper(place):
            return place
        entrance = self.entrance or Entrance(file=caller.file if caller else None, line=caller.line if caller else None)
        return e.Place(file=entrance.file or place.file, line=entrance.line, function=entrance.function)

    def _start(self, record: TraceRecord) -> list[e.Event]:
        frame = self._frame(record)
        events: list[e.Event] = []
        stack = record.value.get("stack") or ()
        if stack:
            frames = [self._places.frame(each) for each in stack]
            frame.above = frozenset(frames[:-1])
            self._set_place(frame, frames[-1], caller=self._places.innermost(frames[:-1]))
            events += self._resumed(record, frame, frames[-1], is_resumed(stack[-1].get("name")))
        events += [e.Compile(state="begin", trigger="dynamo", **_fields(frame.place))]
        variants = self._variants.setdefault((record.compile_id or "").rpartition("/")[0], Variants())
        recompile = frame.take_recompile(self._arguments(frame), variants, record.compile_id)
        if recompile:
            before = self._frames.get(recompile.failed_compile_id)
            events.append(origins.owned(recompile, before, self.entrance, self._places))
        return events

    def _resumed(self, record: TraceRecord, frame: Frame, place: e.Place, is_part: bool) -> list[e.Event]:
        """The breaks whose line is known now that what follows them is compiled."""
        if not is_part:
            self._functions.add(place)
            frame.first_line = place.line
            return []
        frame.first_line = self._functions.first_line(place)
        for compile_id, earlier in reversed(self._frames.items()):
            own = earlier.place
            if not earlier.unplaced or own is None or place.line is None or earlier is frame:
                continue
            if (own.file, own.function, earlier.first_line) == (place.file, place.function, frame.first_line):
                origin: dict[str, Any] = {"compile_id": compile_id, "thread": record.thread, "rank": record.rank}
                return [replace(event, **origin) for event in earlier.place_breaks(place.line)]
        return []

    def _bytecode(self, record: TraceRecord) -> list[e.Event]:
        frame = self._frame(record)
        line = last_line(record.payload) if frame.unplaced else None
        return [*frame.place_breaks(line)] if line else []

    def _error(self, record: TraceRecord) -> list[e.Event]:
        """A function that is skipped after a break leaves an error behind, which has all frames."""
        frame = self._frame(record)
        if frame.unplaced:
            frame.place_below(parse_error_stack(record.payload, self._places))
        return []

    def _graph(self, record: TraceRecord) -> list[e.Event]:
        frame = self._frame(record)
        graph = record.payload
        events: list[e.Event] = list(frame.take_breaks())
        frame.nodes = code.node_places(graph)
        return [*events, *self._captured(frame, code.count_operations(graph))]

    def _metrics(self, record: TraceRecord) -> list[e.Event]:
        metrics: Mapping[str, Any] = record.value
        frame = self._frame(record)
        self._find_place(frame, metrics, record.compile_id)
        state, reason = outcome(metrics, broke=bool(frame.breaks or frame.told))
        events: list[e.Event] = list(frame.take_breaks(skipped=state == "skipped"))
        if frame.place and is_limit(metrics):
            events += self._limit(frame.place, None, frame.reasons[0].text if frame.reasons else reason or "")
        frame.reasons, frame.has_ended = [], True
        events += self._captured(frame, metrics.get("graph_op_count"))
        end = e.Compile(
            state=state,
            reason=reason,
            guards=metrics.get("guard_count"),
            guard_latency_us=metrics.get("guard_latency_us"),
            duration_s=metrics.get("entire_frame_compile_time_s"),
            **_fields(frame.place),
        )
        if skipped := metrics.get("cudagraph_skip_reason"):
            events += self.feed_cudagraph_skip(str(skipped), record.compile_id)
        return [*events, end]

    def _captured(self, frame: Frame, operations: int | None) -> list[e.Event]:
        """A graph, once a compile: a retry captures it again, and one without operations compiles nothing."""
        if not operations or frame.captured:
            return []
        frame.captured = True
        return [e.Compile(state="captured", graphs=1, ops=operations, **_fields(frame.place))]

    def _find_place(self, frame: Frame, metrics: Mapping[str, Any], compile_id: str | None) -> None:
        """Where no begin was recorded: a refused compile has none, but the ones before it did."""
        if frame.place is None and metrics.get("co_filename"):
            name = function_name(metrics.get("co_name"))
            self._set_place(
                frame, e.Place(file=metrics["co_filename"], line=metrics.get("co_firstlineno"), function=name)
            )
        if frame.place is None and compile_id:
            earlier = (self._frames.get(f"{compile_id.rpartition('/')[0]}/{count}") for count in range(2))
            frame.place = next((each.place for each in earlier if each and each.place), None)

    def _break(self, record: TraceRecord) -> list[e.Event]:
        frame = self._frame(record)
        is_own = frame.place is not None and not self._places.is_torch(frame.place.file) and not frame.is_wrapper
        found = parse_break(record.payload, self._places, frame.above if is_own else None)
        place, own = found.place, frame.place
        at_caller = place and own and frame.is_wrapper and (place.file, place.line) == (own.file, own.line)
        if own and (place is None or at_caller or self._places.is_torch(place.file)):
            # every frame on the way is torch's: the break belongs to the module that was compiled
            found = replace(found, place=own)
        found, origin = origins.told(found, frame, self.entrance, self._places)
        frame.add_break(found, record.at, origin)
        return self._late_breaks(frame) if frame.has_ended else []

    def _late_breaks(self, frame: Frame) -> list[e.Event]:
        """Breaks that come after the end of their compile: torch before 2.10 says last that it skipped the frame."""
        breaks = frame.take_breaks(skipped=True)
        reason = breaks[-1].reason if breaks else None
        return [*breaks, e.Compile(state="skipped", reason=reason, **_fields(frame.place))] if breaks else []

    def _reasons(self, record: TraceRecord) -> list[e.Event]:
        self._frame(record).reasons = parse_reasons(record.payload)
        return []

    def _limit(self, place: e.Place, limit: int | None, reason: str) -> list[e.Event]:
        place = self._unwrapped(place)
        if place in self._limits:
            return []
        self._limits.add(place)
        return [e.RecompileLimit(limit=limit, reason=reason, **_fields(place))]

    def _symbol(self, record: TraceRecord) -> list[e.Event]:
        arguments = self._arguments(self._frame(record))
        event = self._symbols.tell(record, arguments)
        return [event] if event else []

    def _code(self, record: TraceRecord) -> list[e.Event]:
        return [*self._frame(record).add_code(record.payload)]

    def _kernel_places(self, record: TraceRecord) -> list[e.Event]:
        return [*self._frame(record).take_kernels(code.traced_places(record.payload))]

    def _backward_graph(self, record: TraceRecord) -> list[e.Event]:
        self._frame(record).backward_nodes = code.node_places(record.payload)
        return []

    def _text(self, record: TraceRecord, kind: str) -> e.Text:
        value = record.value
        name = str(value.get("filename") or "") if isinstance(value, dict) else ""
        frame = self._frames.get(record.compile_id)
        name = name or (frame.place.function if frame and frame.place else None) or ""
        span: dict[str, Any] = {"file": self.trace, "offset": record.offset, "length": record.length}
        digest = code.digest(record.payload) if kind == "output_code" else ""
        return e.Text(kind=kind, name=Path(name).name, digest=digest, **span)

    def _cache(self, record: TraceRecord, cache: str, state: str) -> e.Cache:
        payload = record.payload
        fields = caches.without_components(payload)
        span = e.TextSpan(file=self.trace, offset=record.offset, length=record.length)
        return e.Cache(
            cache=cache,
            state=state,
            key=caches.text_field(fields, "key"),
            components=span if self.trace and fields != payload else None,
            reason=caches.text_field(fields, "cache_bypass_reason"),
            duration_s=caches.seconds_taken(fields),
            saved_s=caches.seconds_saved(fields),
        )


def translate(path: str | Path) -> Iterator[e.Event]:
    """The events of a saved trace, as they come."""
    translator = TraceTranslator(str(path))
    last = 0.0
    for record in read_trace(path):
        last = record.at
        yield from translator.feed(record)
    yield from translator.finish(last)


def _fields(place: e.Place | None) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "function": place.function} if place else {}
