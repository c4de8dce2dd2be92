"""Finding lines in a log: by text, regular expression and level, a little at a time."""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compilescope.domain.errors import UsageError
from compilescope.domain.log import Block, Level, LogStore
from compilescope.domain.time_limit import TookTooLongError, processor_time

TOO_SLOW = "This regular expression takes too long on a line of this log: try one with fewer repeats in repeats."
_MAX_SPANS = 50
# for some dozens of lines at a time; some expressions take years for a single one
_LIMIT_S = 0.2
_AT_ONCE = 64
# expressions that reached the limit, which are not tried again
_too_slow: set[str] = set()


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
        if self.text in _too_slow:
            return []
        try:
            with processor_time(_LIMIT_S):
                return [match.span() for match, _ in zip(found, range(_MAX_SPANS), strict=False) if match[0]]
        except TookTooLongError:
            _too_slow.add(self.text)
            return []


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
    def problem(self) -> str:
        """Why the search was given up; empty where it was not."""
        return TOO_SLOW if self._pattern is not None and self._filter.text in _too_slow else ""

    @property
    def is_current(self) -> bool:
        """Whether every line of the store has been looked at, or the search was given up."""
        return self._read >= self._store.end or bool(self.problem)

    @property
    def progress(self) -> float:
        """The share of lines that have been looked at."""
        store = self._store
        return (self._read - store.begin) / len(store) if self._read > store.begin else float(self.is_current)

    def advance(self, seconds: float) -> int:
        """Look at more lines for about so long; the number of new matches."""
        before = len(self.matches)
        deadline = time.perf_counter() + seconds
        for block, low, high in self._store.parts(self._read):
            if self.problem:
                break
            self._scan(block, low, high, deadline)
            if time.perf_counter() >= deadline:
                break
        return len(self.matches) - before

    def trim(self) -> int:
        """Forget matches that are no longer in the store; how many there were."""
        gone = bisect_left(self.matches, self._store.begin)
        del self.matches[:gone]
        return gone

    def _scan(self, block: Block, low: int, high: int, deadline: float) -> None:
        if self._pattern is not None:
            try:
                high = self._scan_for_pattern(block, low, high, deadline)
            except TookTooLongError:
                _too_slow.add(self._filter.text)
                return
        elif self._filter.text:
            self._add(block, self._with_text(block, low, high))
        else:
            self._add(block, range(low, high))
        self._read = block.first + high

    def _add(self, block: Block, found: Iterable[int]) -> None:
        least, levels, first = self._filter.level, block.levels, block.first
        self.matches.extend(first + index for index in found if levels[index] >= least)

    def _with_text(self, block: Block, low: int, high: int) -> Iterable[int]:
        # case is folded over a whole block and most blocks hold no match: many times as fast as line after line
        text = block.lines(low, high)
        folded = text.lower() if self._needle else text.decode().casefold()
        needle: Any = self._needle or self._filter.text.casefold()
        if needle not in folded:
            return ()
        lines: list[Any] = folded.split(b"\n" if self._needle else "\n")  # type: ignore[arg-type]
        return (low + index for index, line in enumerate(lines) if needle in line)

    def _scan_for_pattern(self, block: Block, low: int, high: int, deadline: float) -> int:
        """Look at line after line until the deadline; the line to go on with."""
        assert self._pattern is not None
        search, found = self._pattern.search, []
        lines = block.lines(low, high).decode().split("\n")
        for begin in range(low, high, _AT_ONCE):
            end = min(begin + _AT_ONCE, high)
            with processor_time(_LIMIT_S):
                found += [index for index in range(begin, end) if search(lines[index - low])]
            if time.perf_counter() >= deadline:
                high = end
                break
        self._add(block, found)
        return high
