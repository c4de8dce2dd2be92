"""The bootstrap, in arrays: hundreds of resamples of a run's blocks in a few milliseconds.

Apart from `statistics`, which the worker reads where there may be no NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compilescope.domain.statistics import FEWEST, Interval, Pairs, interval_from

RESAMPLES = 400
# drawn values held at a time, some 10 MB of them
MOST_VALUES = 1_000_000


def ratio_interval(processes: Sequence[Pairs], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval | None:
    """The interval of eager over compiled from all processes; None for too few pairs."""
    used = [pairs for pairs in processes if len(pairs)]
    if not used or any(len(pairs) < FEWEST for pairs in used):
        return interval_from(used, [])
    rng = random.Random(seed)
    return interval_from(used, [_variance(pairs, rng, resamples) for pairs in used])


def _variance(pairs: Pairs, rng: random.Random, resamples: int) -> float:
    # the variance of many pairs is small and its own error does not matter, so that long series cost no more
    return log_ratio_variance(pairs, rng, max(100, min(resamples, 120_000 // len(pairs))))


def log_ratio_variance(pairs: Pairs, rng: random.Random, resamples: int) -> float:
    """The variance of the log ratio of a process's pairs.

    Moving-block bootstrap (Künsch 1989): runs of about n^(1/3) pairs in a row are drawn until there are n.
    """
    size = len(pairs)
    run = max(1, round(size ** (1 / 3)))
    draws = -(-size // run)
    ratios = np.asarray(pairs.neighbours, dtype=np.float64)
    found: list[NDArray[np.float64]] = []
    while (left := resamples - sum(map(len, found))) > 0:
        rows = min(left, max(MOST_VALUES // (draws * run), 1))
        drawn = (_starts(rng, (rows, draws, 1), size - run + 1) + np.arange(run)).reshape(rows, draws * run)
        found.append(_medians(ratios[drawn].reshape(rows, -1)))
    return float(np.var(np.concatenate(found), ddof=1))


def _starts(rng: random.Random, shape: tuple[int, int, int], below: int) -> NDArray[np.int64]:
    """Whole numbers from 0, each as likely; from Python's generator, whose stream is the same in every version."""
    drawn = np.frombuffer(rng.randbytes(4 * shape[0] * shape[1] * shape[2]), dtype="<u4").astype(np.uint64)
    return ((drawn * np.uint64(below)) >> np.uint64(32)).astype(np.int64).reshape(shape)


def _medians(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each row; the row's order is lost."""
    half, is_odd = divmod(rows.shape[1], 2)
    rows.partition((half,) if is_odd else (half - 1, half), axis=1)
    middle: NDArray[np.float64] = rows[:, half] if is_odd else (rows[:, half - 1] + rows[:, half]) / 2
    return middle
