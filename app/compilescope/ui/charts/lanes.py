"""Compiler phases laid out for drawing: a lane for each depth of each thread, with what lies in a range found fast."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compilescope.domain.run import PhaseRow


@dataclass(kw_only=True)
class Lane:
    """Phases of one thread and depth, in the order in which they began."""

    rows: list[PhaseRow] = field(default_factory=list)
    begins: array[float] = field(default_factory=lambda: array("d"))

    def add(self, row: PhaseRow) -> None:
        if self.begins and row.began < self.begins[-1]:
            # told late: rare, and only then does a place have to be found
            at = bisect_right(self.begins, row.began)
            self.rows.insert(at, row)
            self.begins.insert(at, row.began)
            return
        self.rows.append(row)
        self.begins.append(row.began)

    def between(self, begin: float, end: float, *, now: float, least: float) -> Iterator[tuple[PhaseRow, float]]:
        """Phases within a range, each with its end; of those shorter than `least`, one for each such stretch."""
        at = max(bisect_right(self.begins, begin) - 1, 0)
        while at < len(self.rows) and self.begins[at] <= end:
            row = self.rows[at]
            stop = ends(row, now)
            if stop >= begin:
                yield row, stop
            at += 1
            if stop - row.began < least:
                at = max(at, bisect_left(self.begins, row.began + least))

    def at(self, when: float, *, now: float, slack: float) -> PhaseRow | None:
        """The phase at a time, or the next one within `slack`."""
        index = bisect_right(self.begins, when + slack) - 1
        best: PhaseRow | None = None
        for row in self.rows[max(index - 1, 0) : index + 1]:
            if row.began <= when <= ends(row, now):
                return row
            if row.began - slack <= when <= ends(row, now) + slack:
                best = row
        return best


class Lanes:
    """The lanes of every thread, in the order in which the threads were first heard of."""

    def __init__(self) -> None:
        self.threads: dict[int | None, list[Lane]] = {}
        self.groups: dict[str, None] = {}
        self.begin = 0.0
        self.count = 0

    def read(self, phases: Sequence[PhaseRow]) -> bool:
        """Take in the phases that have begun since; whether there were any."""
        fresh = phases[self.count :]
        for row in fresh:
            lanes = self.threads.setdefault(row.thread, [])
            while len(lanes) <= row.depth:
                lanes.append(Lane())
            lanes[row.depth].add(row)
            self.groups[row.group] = None
        if fresh and self.count == 0:
            self.begin = fresh[0].began
        self.count += len(fresh)
        return bool(fresh)


def ends(row: PhaseRow, now: float) -> float:
    """When a phase has ended; an open one reaches until now."""
    return row.began + row.duration_s if row.duration_s is not None else max(now, row.began)
