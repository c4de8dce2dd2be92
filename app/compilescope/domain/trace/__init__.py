"""Structured torch traces: read from a file or taken live, and told as events."""

from compilescope.domain.trace.frames import Entrance
from compilescope.domain.trace.records import TraceRecord, find_traces, open_trace, read_text, read_trace
from compilescope.domain.trace.translator import TraceTranslator, translate

__all__ = [
    "Entrance",
    "TraceRecord",
    "TraceTranslator",
    "find_traces",
    "open_trace",
    "read_text",
    "read_trace",
    "translate",
]
