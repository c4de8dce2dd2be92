"""A run's log: a million lines in little memory, each with its time, run and level.

Lines are kept as UTF-8 bytes in blocks, as they are to be shown: colours removed, progress bars in their last state,
whatever is no text escaped.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import BinaryIO


class Level(IntEnum):
    """How loud a line is. OUTPUT is what a program prints without naming a level."""

    DEBUG = 0
    OUTPUT = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


BLOCK_BYTES = 256 * 1024
BLOCK_LINES = 4096
# about two and a half million lines of 80 characters
ROOM_BYTES = 240 << 20
LINE_BYTES = 16
_CHUNK = 1024

_WORDS = {
    **dict.fromkeys((b"V", b"D", b"TRACE", b"DEBUG"), Level.DEBUG),
    **dict.fromkeys((b"I", b"INFO", b"NOTICE"), Level.INFO),
    **dict.fromkeys((b"W", b"WARN", b"WARNING", b"warning"), Level.WARNING),
    **dict.fromkeys((b"E", b"F", b"C", b"ERROR", b"CRITICAL", b"FATAL", b"error"), Level.ERROR),
}
_NAMED = rb"(TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)"
# every branch begins with something that tells most lines apart at their first character
_AT_START = re.compile(
    rb"(?=[\[VDIWEFC])(?:\[rank\d+\]:\s?)?(?:"
    rb"\[?([VDIWEFC])\d{4} \d\d:\d\d"  # torch and glog: W1129 12:34:56.789000 …
    rb"|\[([VDIWEF]) \S+:\d+\])"  # c10: [W TensorImpl.cpp:12]
    rb"|(?=[\[<(TDINWECF])[\[<(]?" + _NAMED + rb"(?:[\]>):\s]|$)"
    rb"|(?=[\[(\d])[\[(]?\d{2,4}[-/:]\d\d[-/:.\d][^\n]{0,80}?[\s\[|:-]" + _NAMED + rb"[\]\s|:-]"  # after a time
    rb"|(Traceback \(most recent call last\)|During handling of the above|The above exception was the direct"
    rb"|from user code:|[Ff]atal\b|Segmentation fault|Aborted|terminate called|[Ee]rror[: ])"
    rb"|(?=[A-Za-z_][\w.]*:)(?:([\w.]*(?:Error|Exception|Interrupt):)|([\w.]*[Ww]arning: ))"
)
# a file and a line first, as Python's warnings and C++ compilers have it
_AT_PLACE = re.compile(
    rb"[^\n]{1,300}?:\d+(?::\d+)?: (?:(?:fatal )?(error|warning): |(\w*Warning): )",
)
_ERROR_PHRASES = (5, 6)
_TRACEBACK = b"Traceback (most recent call last)"

_ORDINARY = bytes([9, 10, *range(32, 127), *range(128, 256)])
_COLOUR = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\-~])")
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


class _Mood:
    """What the lines before say about an indented one: it belongs to the warning or error above it."""

    def __init__(self) -> None:
        self.level = Level.OUTPUT
        self.in_traceback = False

    def levels(self, lines: Sequence[bytes], blob: bytes) -> bytearray:
        names_places = b"arning: " in blob or b"error: " in blob
        match, result = _AT_START.match, bytearray()
        add = result.append
        for line in lines:
            found = match(line)
            if found is not None:
                add(self._found(found.lastindex or 0, found))
            elif names_places and (found := _place(line)):
                add(self._found(0, found))
            elif self.level < Level.WARNING:
                add(Level.OUTPUT)
            else:
                add(self._after_trouble(line))
        return result

    def _found(self, group: int, found: re.Match[bytes]) -> Level:
        text = found[found.lastindex or 0]
        if group in _ERROR_PHRASES:
            self.level = Level.ERROR
        else:
            self.level = _WORDS.get(text, Level.WARNING)
        self.in_traceback = text == _TRACEBACK
        return self.level

    def _after_trouble(self, line: bytes) -> Level:
        if line[:1] in (b" ", b"\t"):
            return self.level
        if self.in_traceback:
            # the exception itself, whatever its name
            self.in_traceback = False
            return Level.ERROR
        if line:
            self.level = Level.OUTPUT
        return Level.OUTPUT


def _place(line: bytes) -> re.Match[bytes] | None:
    return _AT_PLACE.match(line) if b"arning: " in line or b"error: " in line else None


def displayed(line: bytes) -> bytes:
    """A line as it is shown: UTF-8 without colours and control characters, a progress bar in its last state."""
    if b"\x1b" in line:
        line = _COLOUR.sub(b"", line)
    if b"\r" in line:
        states = [state for state in line.split(b"\r") if state.strip()]
        line = states[-1] if states else b""
    line = _CONTROL.sub(_escaped, line)
    return line.decode("utf-8", "backslashreplace").encode("utf-8")


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found[0][0]


class Block:
    """Some consecutive lines; `ends[i]` is the offset after line i's line end in `text`."""

    __slots__ = ("at", "ends", "first", "levels", "runs", "text")

    def __init__(self, first: int) -> None:
        self.first = first
        self.text = bytearray()
        self.ends = array("I")
        self.levels = bytearray()
        self.at = array("d")
        self.runs = array("H")

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def is_full(self) -> bool:
        return len(self.text) >= BLOCK_BYTES or len(self.ends) >= BLOCK_LINES

    def begin(self, index: int) -> int:
        return self.ends[index - 1] if index else 0

    def line(self, index: int, limit: int | None = None) -> bytes:
        begin, end = self.begin(index), self.ends[index] - 1
        return bytes(self.text[begin : end if limit is None else min(end, begin + limit)])

    def lines(self, begin: int, end: int) -> bytearray:
        """Some lines at once, each with its line end."""
        return self.text[self.begin(begin) : self.begin(end)]


class LogStore:
    """The lines of a session's log, in the order of arrival. Owned by one thread.

    A line keeps its number, counted from 0. Beyond `room_bytes` of text the oldest lines go, so that a script that
    prints for ever does not fill the memory: `begin` is the number of the first line that is still there.
    """

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self.clear()

    def clear(self) -> None:
        """Forget every line."""
        self.blocks: list[Block] = []
        self.counts = [0] * len(Level)
        self.labels: list[str] = []
        self.begin = self.end = 0
        self._bytes = 0
        self._firsts: list[int] = []
        self._moods: dict[str, _Mood] = {}

    def __len__(self) -> int:
        return self.end - self.begin

    def append(self, label: str, at: float, lines: Sequence[bytes]) -> None:
        """Add lines (without their line ends) that the run named `label` wrote at the time `at`."""
        if label not in self._moods:
            self._moods[label] = _Mood()
            self.labels.append(label)
        run = min(self.labels.index(label), 0xFFFF)
        for begin in range(0, len(lines), _CHUNK):
            self._append(run, self._moods[label], at, lines[begin : begin + _CHUNK])

    def text(self, index: int, limit: int | None = None) -> str:
        """A line; only its first `limit` bytes where a limit is given."""
        block, at = self._place(index)
        return block.line(at, limit).decode("utf-8", "ignore")

    def level(self, index: int) -> Level:
        block, at = self._place(index)
        return Level(block.levels[at])

    def at(self, index: int) -> float:
        block, at = self._place(index)
        return block.at[at]

    def label(self, index: int) -> str:
        block, at = self._place(index)
        return self.labels[block.runs[at]]

    def write(self, file: BinaryIO, indices: Iterable[int] | None = None) -> None:
        """Write the lines, or those of `indices`, as UTF-8 text."""
        if indices is None:
            for block in self.blocks:
                file.write(block.text)
            return
        for index in indices:
            block, at = self._place(index)
            file.write(block.line(at) + b"\n")

    def parts(self, begin: int) -> Iterator[tuple[Block, int, int]]:
        """What lies from line `begin` on: blocks, each with the range of its lines."""
        at = max(bisect_right(self._firsts, begin) - 1, 0)
        for block in self.blocks[at:]:
            low = max(begin - block.first, 0)
            if low < len(block):
                yield block, low, len(block)

    def _place(self, index: int) -> tuple[Block, int]:
        if not self.begin <= index < self.end:
            raise IndexError(index)
        block = self.blocks[bisect_right(self._firsts, index) - 1]
        return block, index - block.first

    def _append(self, run: int, mood: _Mood, at: float, lines: Sequence[bytes]) -> None:
        blob = b"\n".join(lines)
        if blob.translate(None, _ORDINARY) or not _is_utf8(blob):
            lines = [displayed(line) for line in lines]
            blob = b"\n".join(lines)
        levels = mood.levels(lines, blob)
        block = self._open_block()
        start = len(block.text)
        block.text += blob
        block.text += b"\n"
        # each line takes its length and a line end
        sizes = [len(line) + 1 for line in lines]
        sizes[0] += start
        block.ends.extend(accumulate(sizes))
        block.levels += levels
        block.at.extend([at] * len(lines))
        block.runs.extend([run] * len(lines))
        self.end += len(lines)
        self._bytes += len(blob) + LINE_BYTES * len(lines)
        for level in range(len(Level)):
            self.counts[level] += levels.count(level)

    def _open_block(self) -> Block:
        if not self.blocks or self.blocks[-1].is_full:
            self.blocks.append(Block(self.end))
            self._firsts.append(self.end)
            self._make_room()
        return self.blocks[-1]

    def _make_room(self) -> None:
        while self._bytes > self._room_bytes and len(self.blocks) > 1:
            old = self.blocks.pop(0)
            del self._firsts[0]
            self.begin = self.blocks[0].first
            self._bytes -= len(old.text) + LINE_BYTES * len(old)
            for level in range(len(Level)):
                self.counts[level] -= old.levels.count(level)


def _is_utf8(blob: bytes) -> bool:
    if blob.isascii():
        return True
    try:
        blob.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
