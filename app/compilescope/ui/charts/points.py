"""Samples of a run as points to draw: seconds per call over the seconds spent measuring."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilescope.domain.run import COMPILED, EAGER, ProcessStory

Floats = NDArray[np.float64]

# what a chunk is taken to cover where nothing says when measuring began
_CHUNK_S = 0.25


class Buffer:
    """Points that are only ever added to; the arrays behind them double when they are full."""

    def __init__(self) -> None:
        self._x = np.empty(256)
        self._y = np.empty(256)
        self.count = 0
        self.last_at: float | None = None

    def extend(self, x: Floats, y: Floats) -> None:
        need = self.count + len(x)
        if need > len(self._x):
            size = max(need, 2 * len(self._x))
            self._x, self._y = np.resize(self._x, size), np.resize(self._y, size)
        self._x[self.count : need] = x
        self._y[self.count : need] = y
        self.count = need

    @property
    def x(self) -> Floats:
        return self._x[: self.count]

    @property
    def y(self) -> Floats:
        return self._y[: self.count]


class Points:
    """Every process of a run side by side on one axis: the next begins where the one before has ended."""

    def __init__(self, measure: str = "back_to_back") -> None:
        self.series: dict[tuple[int, str], Buffer] = {}
        self.begins: list[float] = []
        self._measure = measure
        self._origins: list[float] = []
        self._voids = 0

    @property
    def count(self) -> int:
        return sum(buffer.count for buffer in self.series.values())

    @property
    def end(self) -> float:
        return max((float(b.x[-1]) for b in self.series.values() if b.count), default=0.0)

    def side(self, side: str) -> Floats:
        """All samples of a side, in seconds."""
        parts = [buffer.y for (_, name), buffer in self.series.items() if name == side]
        return np.concatenate(parts) if parts else np.empty(0)

    def read(self, processes: Sequence[ProcessStory]) -> bool:
        """Take in what is new; whether there was anything."""
        voids = sum(len(process.voids) for process in processes)
        is_changed = voids != self._voids
        if is_changed:
            # a block that was read may not count any more
            self.series.clear()
            self.begins.clear()
            self._origins.clear()
            self._voids = voids
        for index, process in enumerate(processes):
            for side in (EAGER, COMPILED):
                is_changed = self._read(index, process, side) or is_changed
        return is_changed

    def _read(self, index: int, process: ProcessStory, side: str) -> bool:
        if (0, side, self._measure) not in process.series:
            return False
        series = process.samples(side, measure=self._measure)
        buffer = self.series.get((index, side))
        done = buffer.count if buffer else 0
        if done >= len(series.seconds):
            return False
        at = np.array(series.at[done:])
        self._begin(index, process, float(at[0]))
        buffer = self.series.setdefault((index, side), Buffer())
        previous = buffer.last_at if buffer.last_at is not None else self._origins[index]
        x = spread(at, previous) - self._origins[index] + self.begins[index]
        buffer.extend(x, np.array(series.seconds[done:]))
        buffer.last_at = float(at[-1])
        return True

    def _begin(self, index: int, process: ProcessStory, first: float) -> None:
        while len(self.begins) <= index:
            began = [row.began for row in process.stages if row.name == "measure" and row.began < first]
            self._origins.append(began[-1] if began else first - _CHUNK_S)
            self.begins.append(self.end)


def spread(at: Floats, previous: float) -> Floats:
    """Samples of one chunk carry its time; spread them over the time since the chunk before."""
    result = np.empty(len(at))
    edges = [0, *(np.flatnonzero(np.diff(at)) + 1).tolist(), len(at)]
    for begin, end in pairwise(edges):
        steps = np.arange(1, end - begin + 1) / (end - begin)
        result[begin:end] = previous + (at[begin] - previous) * steps
        previous = float(at[begin])
    return result
