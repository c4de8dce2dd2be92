"""Listens to everything that torch tells about its compiler, writes it to the trace file and turns it into events.

Nothing here runs unless something compiles. Every private name of torch is looked for before it is used, and no error
of ours reaches the code that is being compiled: it becomes one warning.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.trace import Entrance, TraceRecord, TraceTranslator
from compilescope.worker import cudagraph_skips, graph_lines, python_warnings
from compilescope.worker.autotune import autotuned
from compilescope.worker.trace_file import TraceFile, header

_TRACE = "torch.__trace"
# Dynamo describes a frame that it skips as a whole only where this logger would print it
_BREAKS = "torch._dynamo.convert_frame.__graph_breaks"
_TALKATIVE = (
    "torch._dynamo.convert_frame",
    "torch._inductor",
    "torch._inductor.cudagraph_utils.__cudagraphs",
    "torch._inductor.cudagraph_utils.__perf_hints",
    "torch._inductor.compile_fx.__perf_hints",
    "torch._inductor.cudagraph_trees.__cudagraphs",
)
_WARNINGS = "py.warnings"  # what logging.captureWarnings calls it
_COUNTED_PHASES = ("entire_backward_compile", "CUDAGraphNode.record")


class Capture:
    """Hooks into torch for one worker process. `clock`: seconds since the process's hello.

    `emit` is called from whatever thread compiles, one event at a time.
    """

    def __init__(
        self, emit: Callable[[e.Event], None], clock: Callable[[], float], trace_path: str | None = None
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._file = TraceFile(trace_path) if trace_path else None
        self._translator = TraceTranslator(trace_path or "", hidden=(str(Path(__file__).resolve().parent),))
        self._record_handler = _Handler(self._on_record)
        self._message_handler = _Handler(
            lambda record: self._on_message(record.name, record.levelname, record.getMessage()), logging.WARNING
        )
        self._unlisten: Callable[[], None] = lambda: None
        self._paused = False
        self._broken = False
        self._hooked: set[str] = set()
        self._own_s = 0.0
        self._logging_s = 0.0
        self._before = (0.0, 0.0)
        # read by the timing loop between blocks, hence plain attributes
        self.compiles_seen = 0
        self.limits_seen = 0

    def install(self) -> None:
        """Start to listen. Imports nothing, so that torch's own lazy imports stay part of the first call."""
        trace = logging.getLogger(_TRACE)
        # at the front: torch's own handler takes itself off the list during the first record, and logging then
        # passes over the one behind it
        trace.handlers.insert(0, self._record_handler)
        for name in _TALKATIVE:
            logging.getLogger(name).addHandler(self._message_handler)
        self._unlisten = python_warnings.listen(lambda text: self._on_message(_WARNINGS, "WARNING", text))
        with self._guarded():
            self._take_interned()
        self._arm()

    def describe(self, model: Any) -> None:
        """Say which module is compiled: the frame that torch wraps around a library module knows no argument names."""
        with self._guarded():
            self._translator.entrance = _entrance(model)

    def begin_call(self) -> None:
        """A call that may compile begins."""
        self._arm()
        self._before = (self._own_s, self._logging_s)

    def end_call(self) -> float:
        """Seconds of the call that went into listening: ours, or what torch says of its structured log if larger."""
        with self._lock, self._guarded():
            if self._file:
                self._file.flush()
        own, logged = self._before
        return max(self._own_s - own, self._logging_s - logged)

    def note_lines(self, error: BaseException) -> None:
        """Keep with an error of compiled code what it takes to find the script's line."""
        with self._lock, self._guarded():
            graph_lines.note(error, self._translator.nodes)

    def pause(self) -> None:
        """What compiles from now on is no part of the story."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def finish(self) -> None:
        """Stop to listen, tell what was held back, and close the trace file."""
        logging.getLogger(_TRACE).removeHandler(self._record_handler)
        for name in _TALKATIVE:
            logging.getLogger(name).removeHandler(self._message_handler)
        self._unlisten()
        with self._lock, self._guarded():
            self._tell(self._translator.finish(self._clock()))
            if self._file:
                self._file.close()
                self._file = None

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keeps the time spent, and keeps our errors away from the user's code."""
        began = perf_counter()
        try:
            yield
        except Exception as error:
            self._report(error)
        finally:
            self._own_s += perf_counter() - began

    def _report(self, error: Exception) -> None:
        if self._broken:
            return
        self._broken = True
        with contextlib.suppress(Exception):
            self._emit(
                e.Warning(
                    at=self._clock(),
                    code="capture",
                    message=f"A part of the compiler's story could not be read: {type(error).__name__}: {error}.",
                    hint="Timings are not affected. Please report this with the torch version.",
                )
            )

    def _tell(self, events: list[e.Event]) -> None:
        if self._file and any(isinstance(event, (e.Text, e.Cache)) for event in events):
            # whoever gets the event may read the text at once
            self._file.flush()
            events = self._file.readable(events)
        for event in events:
            self.limits_seen += isinstance(event, e.RecompileLimit)
            self._emit(event)

    def _take_interned(self) -> None:
        """File names that torch has numbered before we listened."""
        from torch._logging import structured

        head = header(time.time(), structured.__file__, 0)
        for name, number in dict(getattr(structured, "INTERN_TABLE", {})).items():
            self._take({"str": [name, number]}, None, None, head)

    def _arm(self) -> None:
        """What a user's `set_logs` or a `torch._dynamo.reset` undoes."""
        with self._guarded():
            breaks = logging.getLogger(_BREAKS)
            if not breaks.isEnabledFor(logging.DEBUG):
                breaks.setLevel(logging.DEBUG)
                breaks.propagate = False
                breaks.addHandler(_SILENT)
            handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
            started = getattr(handler, "start_callbacks", None)
            if isinstance(started, list) and self._on_callback not in started:
                started.append(self._on_callback)

    def _on_record(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._pid:
            return
        metadata: dict[str, Any] = record.metadata  # type: ignore[attr-defined]
        if self._paused and "str" not in metadata:
            return
        with self._lock, self._guarded():
            head = header(record.created, record.pathname, record.lineno)
            self._take(metadata, record.payload, record.thread, head)  # type: ignore[attr-defined]
            self._account(metadata)

    def _take(self, metadata: dict[str, Any], payload: str | None, thread: int | None, head: str) -> None:
        offset, length = self._file.write(head, metadata, payload) if self._file else (0, 0)
        record = TraceRecord(
            metadata, text=payload or "", at=self._clock(), thread=thread, offset=offset, length=length
        )
        events = self._translator.feed(record)
        for event in events:
            if isinstance(event, e.Phase) and event.state == "begin":
                self._on_phase(event.name)
        self._tell(events)

    def _account(self, metadata: dict[str, Any]) -> None:
        if "dynamo_start" in metadata:
            self.compiles_seen += 1
        metrics = metadata.get("compilation_metrics") or metadata.get("bwd_compilation_metrics")
        if isinstance(metrics, dict):
            # without us torch would write no structured log at all, so all of it is our cost
            self._logging_s += float(metrics.get("structured_logging_overhead_s") or 0.0)

    def _on_phase(self, name: str) -> None:
        if name.startswith(_COUNTED_PHASES):
            self.compiles_seen += 1
        elif name.startswith("GraphLowering.run"):
            self._hook_autotune()
        if "cudagraph_skips" not in self._hooked and cudagraph_skips.listen(self._on_cudagraph_skip):
            self._hooked.add("cudagraph_skips")

    def _hook_autotune(self) -> None:
        """By now Inductor has imported what chooses among kernels."""
        module = sys.modules.get("torch._inductor.select_algorithm")
        add = getattr(module, "add_feedback_saver", None)
        if add is None or "autotune" in self._hooked:
            return
        self._hooked.add("autotune")
        add(self._on_autotune)
        self._translator.timeline.autotune_told = True

    def _on_message(self, logger: str, level: str, text: str) -> None:
        if self._paused or os.getpid() != self._pid:
            return
        with self._lock, self._guarded():
            self._tell(self._translator.feed_message(logger, level, text, at=self._clock()))

    def _on_cudagraph_skip(self, reason: str) -> None:
        """Inductor has left a graph without a CUDA graph, and has logged nothing."""
        if self._paused or os.getpid() != self._pid:
            return
        with self._lock, self._guarded():
            context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
            compile_id = context.current_compile_id() if context else None
            skip = self._translator.feed_cudagraph_skip(reason, str(compile_id) if compile_id else None, self._clock())
            self._tell(skip)

    def _on_callback(self, *arguments: Any) -> None:
        """A compile begins; torch before 2.8 does not say which kind."""
        if self._paused or os.getpid() != self._pid or not arguments:
            return
        with self._lock, self._guarded():
            trigger = getattr(getattr(arguments[0], "callback_trigger", None), "name", "")
            compile_id = getattr(arguments[0], "compile_id", None)
            self._tell(self._translator.feed_callback(trigger, compile_id, at=self._clock()))

    def _on_autotune(self, timings: Any, name: str, inputs: Any, *_: Any) -> None:
        """Inductor has measured its choices for one operation. Later versions hand over more arguments."""
        if self._paused or os.getpid() != self._pid:
            return
        with self._lock, self._guarded():
            self._tell(self._translator.feed_autotune(autotuned(timings, name, inputs, at=self._clock())))


class _Handler(logging.Handler):
    def __init__(self, take: Callable[[logging.LogRecord], None], level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        self._take(record)


_SILENT = logging.NullHandler()


def _entrance(model: Any) -> Entrance | None:
    """The forward of a module, where it can be found."""
    forward = getattr(type(model), "forward", None)
    if forward is None:
        return None
    code = getattr(inspect.unwrap(forward), "__code__", None)
    names = tuple(inspect.signature(forward).parameters)[1:]
    return Entrance(
        file=getattr(code, "co_filename", None), line=getattr(code, "co_firstlineno", None), arguments=names
    )
