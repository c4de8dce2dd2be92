"""Bytes of a pipe into lines, and lines into events; memory stays bounded whatever arrives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from compilescope.domain import events as e

EVENT_LINE_LIMIT = 64 << 20
LOG_LINE_LIMIT = 32 << 10
PROGRESS_S = 1.0


class LineSplitter:
    """Collects chunks into lines of at most `limit` bytes; what is longer is cut, with a note.

    A carriage return starts a line over, as in a terminal: a progress bar leaves its last state, and while it runs
    one state a second.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._dropped = 0
        self._is_progress = False
        self._progress_at = float("-inf")

    def feed(self, chunk: bytes, now: float) -> list[bytes]:
        """The lines that this chunk completes. `now`: a monotonic clock, in seconds."""
        head, *rest = chunk.split(b"\n")
        self._append(head)
        if not rest:
            return self._progress(now)
        first, whole = self._take(), rest[:-1]
        self._append(rest[-1])
        if b"\r" in chunk or b"\r" in first:
            first, whole = _last_state(first), [_last_state(line) for line in whole]
        if len(chunk) > self._limit:
            whole = [cut(line, self._limit) for line in whole]
        return [first, *whole, *self._progress(now)]

    def finish(self) -> list[bytes]:
        """What is left when the stream ends without a line end."""
        rest = _last_state(self._take())
        return [rest] if rest else []

    def _append(self, part: bytes) -> None:
        if part and self._parts and self._parts[-1].endswith(b"\r"):
            self._start_over()
        if b"\r" in part[:-1]:
            self._start_over()
            part = part[part.rindex(b"\r", 0, -1) + 1 :]
        room = self._limit - self._size
        if len(part) > room:
            self._dropped += len(part) - room
            part = part[:room]
        if part:
            self._parts.append(part)
            self._size += len(part)

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        if self._dropped:
            line += _note(self._dropped)
        self._start_over()
        self._is_progress = False
        return line

    def _start_over(self) -> None:
        self._parts, self._size, self._dropped = [], 0, 0
        self._is_progress = True

    def _progress(self, now: float) -> list[bytes]:
        if not (self._is_progress and self._parts) or now - self._progress_at < PROGRESS_S:
            return []
        self._progress_at = now
        state = _last_state(b"".join(self._parts))
        return [state] if state else []


def cut(line: bytes, limit: int = LOG_LINE_LIMIT) -> bytes:
    """A line short enough to show."""
    return line if len(line) <= limit else line[:limit] + _note(len(line) - limit)


def decode_lines(lines: Sequence[bytes]) -> tuple[list[e.Event], list[bytes]]:
    """Events in a batch of lines, and the lines that are none."""
    candidates = [line for line in lines if line[:1] == b"{" and line[-1:] == b"}"]
    others = [line for line in lines if line[:1] != b"{" or line[-1:] != b"}"] if len(candidates) < len(lines) else []
    found: list[e.Event] = []
    for line, value in zip(candidates, _values(candidates), strict=True):
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            others.append(line)
            continue
        event = e.from_mapping(value)
        # an unknown type comes from another version and is skipped; the worker never writes `ended`
        if event is not None and not isinstance(event, e.Ended):
            found.append(event)
    return found, others


def _values(lines: Sequence[bytes]) -> Sequence[Any]:
    """The JSON value of each line, None for what is no JSON. One call for all of them is four times as fast."""
    try:
        values = json.loads((b"[" + b",".join(lines) + b"]").decode())
    except (ValueError, RecursionError):
        return [_value(line) for line in lines]
    # two broken lines can make one good value
    return values if len(values) == len(lines) else [_value(line) for line in lines]


def _value(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _last_state(line: bytes) -> bytes:
    line = line.rstrip(b"\r")
    return line[line.rindex(b"\r") + 1 :] if b"\r" in line else line


def _note(dropped: int) -> bytes:
    return f" … ({dropped:,} more bytes)".encode()
