"""Finding lines in a log: by text, regular expression and level, a little at a time."""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_right
from dataclasses import dataclass

from compilescope.domain.errors import UsageError
from compilescope.domain.log import Block, Level, LogStore

_MAX_SPANS = 50


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """Which lines to show: those at least this loud that hold the text, whatever its case."""

    text: str = ""
    is_pattern: bool = False
    level: Level = Level.DEBUG

    def __post_init__(self) -> None:
        if self.is_pattern:
            try:
                re.compile(self.text)
            except (re.error, OverflowError, RecursionError) as error:
                hint = "Switch regular expressions off to find the text as it stands."
                raise UsageError(f"Not a regular expression: {error}.", hint=hint) from error

    @property
    def shows_all(self) -> bool:
        return not self.text and self.level == Level.DEBUG

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in a line the filter's text stands: (begin, end)."""
        if not self.text:
            return []
        pattern = self.text if self.is_pattern else re.escape(self.text)
        found = re.compile(pattern, re.IGNORECASE).finditer(text)
        return [match.span() for match, _ in zip(found, range(_MAX_SPANS), strict=False) if match[0]]


class LogSearch:
    """The lines of a store that a filter lets through, in order; follows the store as it grows."""

    def __init__(self, store: LogStore, wanted: LogFilter) -> None:
        self.matches = array("I")
        self._store = store
        self._filter = wanted
        self._read = 0
        self._needle = wanted.text.lower().encode() if wanted.text.isascii() else b""
        self._pattern = re.compile(wanted.text, re.IGNORECASE) if wanted.is_pattern else None

    @property
    def is_current(self) -> bool:
        """Whether every line of the store has been looked at."""
        return self._read >= len(self._store)

    @property
    def progress(self) -> float:
        """The share of lines that have been looked at."""
        return self._read / len(self._store) if len(self._store) else 1.0

    def advance(self, seconds: float) -> int:
        """Look at more lines for about so long; the number of new matches."""
        before = len(self.matches)
        deadline = time.perf_counter() + seconds
        for block, low, high in self._store.parts(self._read):
            self._scan(block, low, high, deadline)
            if time.perf_counter() >= deadline:
                break
        return len(self.matches) - before

    def _scan(self, block: Block, low: int, high: int, deadline: float) -> None:
        if self._pattern is not None or not self._filter.text.isascii():
            high = self._scan_lines(block, low, high, deadline)
        elif self._needle:
            self._scan_text(block, low, high)
        else:
            least, first = self._filter.level, block.first
            self.matches.extend(first + i for i in range(low, high) if block.levels[i] >= least)
        self._read = block.first + high

    def _scan_text(self, block: Block, low: int, high: int) -> None:
        # lower() and find() over a whole block are many times as fast as any look at single lines
        needle, ends, levels, least = self._needle, block.ends, block.levels, self._filter.level
        base = block.begin(low)
        text = block.text[base : ends[high - 1]].lower()
        hit = text.find(needle)
        while hit >= 0:
            index = bisect_right(ends, base + hit)
            if levels[index] >= least:
                self.matches.append(block.first + index)
            hit = text.find(needle, ends[index] - base)

    def _scan_lines(self, block: Block, low: int, high: int, deadline: float) -> int:
        """Look at line after line until the deadline; the line to go on with."""
        folded = self._filter.text.casefold()
        if self._pattern is None and folded not in block.text.decode().casefold():
            return high
        for index in range(low, high):
            if block.levels[index] >= self._filter.level:
                line = block.line(index).decode()
                if self._pattern.search(line) if self._pattern is not None else folded in line.casefold():
                    self.matches.append(block.first + index)
            if not index & 63 and time.perf_counter() >= deadline:
                return index + 1
        return high
