"""Records of a structured torch trace (the TORCH_TRACE format), read one after the other or written as they happen.

A record is a header line, `V1129 17:06:30.123000 pid file:line] {json}`, then the payload's lines, each after a tab.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from compilescope.domain.errors import UsageError

Match = re.Match[bytes] | None
_CHUNK = 4 << 20
_FOREIGN_HINT = "Choose a file or folder that TORCH_TRACE has written (dedicated_log_torch_trace_….log, plain or .gz)."
# half of all records, and nothing in them that is told
_DROPPED = (b'] {"describe_', b'] {"dump_file"', b'] {"compilation_metrics_runtime"')


class TraceRecord:
    """One record. `payload` is decoded when asked for; `offset` and `length` say where it lies in the trace file."""

    __slots__ = (
        *("metadata", "kind", "compile_id", "rank", "thread", "at", "offset", "length", "text"),
        *("_buffer", "_start", "_stop"),
    )

    def __init__(
        self,
        metadata: Mapping[str, Any],
        *,
        text: str | None = None,
        at: float = 0.0,
        thread: int | None = None,
        offset: int = 0,
        length: int = 0,
    ) -> None:
        self.metadata = metadata
        self.kind = next(iter(metadata), "")
        self.compile_id = compile_id(metadata)
        rank = metadata.get("rank")
        self.rank: int | None = rank if isinstance(rank, int) else None
        self.at = at
        self.thread = thread
        self.offset = offset
        self.length = length
        self.text = text
        self._buffer = b""
        self._start = self._stop = 0

    def keep(self, buffer: bytes, start: int, stop: int) -> TraceRecord:
        """Remember where the payload's lines lie in a buffer, to be decoded if they are wanted."""
        self._buffer, self._start, self._stop = buffer, start, stop
        return self

    @property
    def value(self) -> Any:
        """What stands beside the record's kind."""
        return self.metadata.get(self.kind)

    @property
    def payload(self) -> str:
        if self.text is None:
            self.text = plain_text(self._buffer[self._start : self._stop])
        return self.text

    def matches(self, head: re.Pattern[bytes], tail: re.Pattern[bytes], size: int) -> tuple[Match, Match]:
        """What the patterns find in the first and the last `size` characters, where the file's own bytes are there."""
        if self.text is not None:
            first, last = self.ends(size)
            return head.match(first), tail.search(last)
        start, stop = self._start, self._stop
        return head.match(self._buffer, start, stop), tail.search(self._buffer, max(stop - size, start), stop)

    def ends(self, size: int) -> tuple[bytes, bytes]:
        """About the first and last characters of the payload, with the file's tabs still in them."""
        if self.text is None:
            start, stop = self._start, self._stop
            return self._buffer[start : min(start + size, stop)], self._buffer[max(stop - size, start) : stop]
        return self.text[:size].encode("utf-8", "replace"), self.text[-size:].encode("utf-8", "replace")


def compile_id(metadata: Mapping[str, Any]) -> str | None:
    """The id as torch prints it: frame/compile, or with the compiled autograd graph in front."""
    frame, autograd = metadata.get("frame_id"), metadata.get("compiled_autograd_id")
    own = None if frame is None else f"{frame}/{metadata.get('frame_compile_id')}"
    if autograd is None:
        return own
    return f"!{autograd}/{own}" if own else f"!{autograd}"


def plain_text(lines: bytes) -> str:
    """A payload's text from its lines in the file."""
    if lines.startswith(b"\t"):
        lines = lines[1:]
    return lines.replace(b"\n\t", b"\n").decode("utf-8", "replace")


def open_trace(path: str | Path) -> IO[bytes]:
    """The trace's bytes, unpacked where it is packed."""
    path = Path(path)
    if path.exists() and not path.is_file():  # to open a pipe would wait for who writes into it
        raise UsageError(f"{path} is no file that can be read.", hint=_FOREIGN_HINT)
    try:
        stream = path.open("rb")
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", hint=_FOREIGN_HINT) from error
    if not packed:
        return stream
    stream.close()  # gzip would leave a stream that it is given open
    return gzip.open(path)  # type: ignore[return-value]


def read_text(path: str | Path, offset: int, length: int) -> str:
    """A text that an event points at with `offset` and `length`."""
    try:
        with open_trace(path) as stream:
            stream.seek(offset)
            return plain_text(stream.read(length))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged: {error}.") from error


def find_traces(path: str | Path) -> list[Path]:
    """The trace files that a path stands for: itself, or the logs in a folder and those below it."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    if not os.access(path, os.R_OK | os.X_OK):  # the search below would pass over it in silence
        raise UsageError(f"{path} cannot be read: Permission denied.", hint="Ask its owner for access to the folder.")
    found = sorted(item for item in path.rglob("*") if item.is_file() and re.search(r"\.log(\.gz)?$", item.name))
    if not found:
        raise UsageError(f"{path} holds no trace.", hint=_FOREIGN_HINT)
    return found


def read_trace(path: str | Path) -> Iterator[TraceRecord]:
    """The records of a trace file. A record's payload can be had until the next record is asked for.

    Of a packed file that is damaged, what comes before that place is told first.
    """
    damage: list[Exception] = []
    with open_trace(path) as stream:
        read = stream.read if not isinstance(stream, gzip.GzipFile) else partial(_unpacked, stream, damage)
        yield from _records(read, Path(path), damage)
    if damage:
        reason = str(damage[0]).rstrip(".")
        raise UsageError(f"{path} is damaged: {reason}.", hint="Copy it again from where it was written.")


def _unpacked(stream: gzip.GzipFile, damage: list[Exception], size: int) -> bytes:
    """At most this much more of a packed file, nothing at its end or where it is damaged."""
    parts: list[bytes] = []
    left = size
    try:
        while left > 0 and not damage and (part := stream.read1(left)):
            parts.append(part)
            left -= len(part)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        damage.append(error)
    return b"".join(parts)


def _records(read: Callable[[int], bytes], path: Path, damage: list[Exception]) -> Iterator[TraceRecord]:
    clock = _Clock()
    buffer, base = read(_CHUNK), 0
    start = 0 if buffer[:1] == b"V" else buffer.find(b"\nV") + 1
    if _HEADER.match(buffer, start) is None:
        if damage:
            return
        if not buffer:
            raise UsageError(f"{path} is empty.", hint=_FOREIGN_HINT)
        raise UsageError(f"{path} is not a structured torch trace.", hint=_FOREIGN_HINT)
    searched = start
    while True:
        end = buffer.find(b"\nV", searched)
        if end < 0 or end + 3 > len(buffer):
            more = read(max(_CHUNK, len(buffer) - start))
            if not more:
                break
            buffer, base = buffer[start:] + more, base + start
            searched, start = 0, 0
            continue
        searched = end + 1
        if not 48 <= buffer[end + 2] <= 57:
            continue
        record = _record(buffer, start, end, base, clock)
        if record is not None:
            yield record
        start = end + 1
    record = _record(buffer, start, len(buffer) - buffer.endswith(b"\n"), base, clock)
    if record is not None:
        yield record


def _record(buffer: bytes, start: int, end: int, base: int, clock: _Clock) -> TraceRecord | None:
    # eight records of ten are the begin or end of a region, whose header is always the same
    region = _REGION.match(buffer, start, end)
    if region is not None:
        stamp, thread, frame, compiled = region.groups()
        payload = region.end()
        record = TraceRecord(
            _region(frame, compiled),
            at=clock.seconds(stamp),
            thread=int(thread),
            offset=base + payload,
            length=end - payload,
        )
        return record.keep(buffer, payload, end)
    return _other_record(buffer, start, end, base, clock)


@lru_cache(maxsize=1024)
def _region(frame: bytes, compiled: bytes) -> Mapping[str, Any]:
    return {"chromium_event": {}, "frame_id": int(frame), "frame_compile_id": int(compiled)}


def _other_record(buffer: bytes, start: int, end: int, base: int, clock: _Clock) -> TraceRecord | None:
    line_end = buffer.find(b"\n", start, end)
    line_end = end if line_end < 0 else line_end
    bracket = buffer.find(b"] {", start, line_end)
    if bracket < 0 or buffer.startswith(_DROPPED, bracket):
        return None
    try:
        metadata = _decode(buffer[bracket + 2 : line_end].decode("utf-8", "replace"))
    except ValueError:
        # a process that died while it wrote leaves half a record
        return None
    header = _HEADER.match(buffer, start)
    payload = min(line_end + 1, end)
    record = TraceRecord(
        metadata,
        at=clock.seconds(header[1]) if header else 0.0,
        thread=int(header[2]) if header else None,
        offset=base + payload,
        length=end - payload,
    )
    return record.keep(buffer, payload, end)


_REGION = re.compile(
    rb"V(\d{4} \d\d:\d\d:\d\d(?:\.\d+)?) +(\d+) [^\]\n]*"
    rb'\] \{"chromium_event": \{\}, "frame_id": (\d+), "frame_compile_id": (\d+), "attempt": \d+, '
    rb'"has_payload": "\w+"\}\n'
)
_decode = json.JSONDecoder(strict=False).decode
_HEADER = re.compile(rb"V(\d{4} \d\d:\d\d:\d\d(?:\.\d+)?)\S* +(\d+) ")


class _Clock:
    """Turns header times, which lack the year, into seconds since the first one."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._minute = b""
        self._minute_s = 0.0

    def seconds(self, stamp: bytes) -> float:
        if stamp[:10] != self._minute:
            self._minute = stamp[:10]
            day = _day(int(stamp[:2]), int(stamp[2:4]))
            self._minute_s = day * 86400.0 + int(stamp[5:7]) * 3600 + int(stamp[8:10]) * 60
        now = self._minute_s + float(stamp[11:])
        if self._first is None:
            self._first = now
        passed = now - self._first
        return passed if passed >= 0 else passed + 366 * 86400


def _day(month: int, day: int) -> int:
    """The number of a day within its year; of one that no year has, in a damaged file, the first of all."""
    try:
        # a leap year, so that every day of every year is one of its days
        return datetime(2000, month, day).toordinal()
    except ValueError:
        return datetime(2000, 1, 1).toordinal()
