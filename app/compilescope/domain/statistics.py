"""Medians, quantiles, and how much faster one of two functions timed in turn is, and how surely.

The speed of a machine wanders, on a shared one by several percent within seconds, and both sides of a comparison meet
it: a block is compared with the blocks right before and after it, and the median of these ratios is the estimate. That
is the idea of duet benchmarking [7], in turn instead of at once. On recorded series it spread two to four times less
than the ratio of the two sides' medians on a shared machine, and no more on a calm one.

A comparison is measured in few processes (two: cold and warm), each with many pairs of neighbouring eager and compiled
blocks. What varies from block to block can be resampled [1]; what varies from process to process hardly, with two
of them, although it is often the larger part [2, 3]: resampling two processes covers the truth about half the time.
So blocks are bootstrapped (in runs of neighbours, since they are correlated [4]) within each process, and the spread
between processes is a parameter with a weakly informative prior, as recommended for two groups [5, 6]; the prior's
scale is how far the blocks of one process leave its own ratio open, or where the sides are unlike a share of how they
scatter, which are the best hints of it that the data hold.

All of this is about the ratio, whose two sides are timed in turn. How far the speed of both sides moves together from
process to process says little about it: seen on a GPU, 26 % of it left 4 % in the ratio.

[1] Efron, Tibshirani: An Introduction to the Bootstrap, 1993.
[2] Kalibera, Jones: Rigorous Benchmarking in Reasonable Time, ISMM 2013.
[3] Georges, Buytaert, Eeckhout: Statistically Rigorous Java Performance Evaluation, OOPSLA 2007.
[4] Künsch: The Jackknife and the Bootstrap for General Stationary Observations, Annals of Statistics 17, 1989.
[5] Friede, Röver, Wandel, Neuenschwander: Meta-analysis of two studies in the presence of heterogeneity,
    Biometrical Journal 59, 2017.
[6] Gelman: Prior distributions for variance parameters in hierarchical models, Bayesian Analysis 1, 2006.
[7] Bulej et al.: Duet Benchmarking: Improving Measurement Accuracy in the Cloud, ICPE 2020.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

CONFIDENCE = 0.95
NOISE_FLOOR = 0.005
WINDOWS = 8
# pairs of a process from which it tells its own spread
FEWEST = 10
# a spread between processes below this is never assumed, however calm the series: alignment and placement in memory
# differ from process to process and show in no series. By clock: with a function beside itself, processes on a CPU were
# 0.3 to 0.4 % apart where noise was taken off, and those of a product on an H200 0.03 to 0.05 %, for which 0.1 is
# assumed
LEAST_SPREAD = {"wall": 0.004, "cuda_event": 0.001}
# how far processes may be expected to differ, in standard errors of what the blocks of one leave open
ERROR_SHARE = 0.7
# and where the sides are unlike, as a share of how their blocks scatter, since a process keeps for itself some of what
# moves its blocks. Seen: on a CPU 0.25; on an H200 0.4 for a product, 0.6 for an encoder, 0.8 to 1.6 for a small model
# that waits for its launches
SCATTER_SHARE = {"wall": 0.2, "cuda_event": 0.5}

# how far a machine's own speed, which both sides share, differs from one process to the next at least: on a shared
# machine windows some seconds apart were 2 to 4 % apart, however calm each was
LEAST_LEVEL = 0.03

# a difference that matters: nobody may say "no difference" of an interval that reaches as far, to either side
TOO_NOISY = 0.1

_Z = 1.959964
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and the range that holds the truth with this confidence."""

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def half_width(self) -> float:
        """Half the range, relative to the value: 0.01 is "± 1 %"."""
        return (self.high - self.low) / 2 / self.value

    @property
    def spread(self) -> float:
        """Half the range, in the value's own unit."""
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high

    def overlaps(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The timed blocks of one process: `eager[i]` and `compiled[i]` are neighbours in time. `clock`: see `Samples`."""

    eager: Sequence[float]
    compiled: Sequence[float]
    clock: str = "wall"

    def __len__(self) -> int:
        return min(len(self.eager), len(self.compiled))

    @cached_property
    def neighbours(self) -> tuple[tuple[float, float], ...]:
        """The log ratios of each compiled block: of the eager block before it to it, and of the one after it."""
        size = len(self)
        eager = [math.log(value) for value in self.eager[:size]]
        compiled = [math.log(value) for value in self.compiled[:size]]
        following = [*eager[1:], *eager[-1:]]
        return tuple((one - own, two - own) for one, two, own in zip(eager, following, compiled, strict=True))

    @cached_property
    def log_ratio(self) -> float:
        """The logarithm of eager over compiled: the median of the ratios of neighbours in time."""
        return median([value for both in self.neighbours for value in both])

    @cached_property
    def windows(self) -> tuple[float, ...]:
        """The log ratio of each of some equal stretches; of each pair where there are few."""
        size = len(self)
        count = WINDOWS if size >= 3 * WINDOWS else size // 3 if size >= 15 else size
        edges = itertools.pairwise(size * i // count for i in range(count + 1))
        return tuple(Pairs(eager=self.eager[a:b], compiled=self.compiled[a:b]).log_ratio for a, b in edges)

    @property
    def least(self) -> float:
        """The least spread between processes to be assumed of equal sides."""
        return _of_clock(LEAST_SPREAD, self.clock)

    @cached_property
    def least_spread(self) -> float:
        """The least spread of log ratios between processes to be assumed of such blocks.

        What disturbs a machine disturbs both sides of a pair. Sides of equal speed share it and their ratio hardly
        moves from process to process; unlike sides answer it differently, the more so the more they differ.
        """
        apart = min(abs(self.log_ratio) / 0.1, 1.0)
        return max(self.least, _of_clock(SCATTER_SHARE, self.clock) * apart * self.scatter)

    @cached_property
    def scatter(self) -> float:
        """The standard deviation of the blocks' log ratios, from their middle half, which stragglers do not reach."""
        logs = [math.log(one / two) for one, two in zip(self.eager, self.compiled, strict=False)]
        return (quantile(logs, 0.75) - quantile(logs, 0.25)) / 1.349


def median(values: Sequence[float]) -> float:
    """The middle value; of an even number, the mean of the middle two."""
    return _middle(sorted(values))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of all lie, linear between neighbours."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def balanced(groups: Sequence[Sequence[float]]) -> list[float]:
    """One sorted sample of several that are sorted, in which each weighs the same: the values of a smaller one are
    repeated, evenly over its range."""
    size = max(map(len, groups))
    spread = (
        group if len(group) == size else [group[(2 * i + 1) * len(group) // (2 * size)] for i in range(size)]
        for group in groups
    )
    # sorted parts sort fast, here and within the quantiles
    return sorted(itertools.chain.from_iterable(spread))


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that ratios have: that of eager over that of compiled is the mean of their ratios."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def difference(interval: Interval | None, noise_floor: float = NOISE_FLOOR) -> str | None:
    """Says "faster" or "slower" where a speedup's interval excludes 1 and its estimate lies beyond the noise floor."""
    if interval is None or abs(interval.value - 1) <= noise_floor or interval.contains(1.0):
        return None
    if interval.low == interval.high:
        # a clock that ticks too coarsely, or a single value: what shows no spread shows no difference
        return None
    return "faster" if interval.value > 1 else "slower"


def is_settled(interval: Interval | None) -> bool:
    """Whether a speedup is known well enough to say that nothing differs: its whole interval lies near 1.

    A narrow one that reaches farther leaves a gain or a loss open that matters.
    """
    return interval is not None and interval.low >= 1 / (1 + TOO_NOISY) and interval.high <= 1 + TOO_NOISY


def is_told(interval: Interval) -> bool:
    """Whether a speedup may stand among others by its value: it is a difference or none, within a factor of two."""
    is_known = is_settled(interval) or not interval.contains(1.0)
    return is_known and interval.high <= 2 * interval.low


def quick_interval(pairs: Pairs) -> Interval | None:
    """The interval of eager over compiled within one process; None for fewer than three pairs.

    Cheap enough to ask after every block. It knows nothing of other processes, so it may decide when to stop measuring
    and nothing else.
    """
    if len(pairs) < 3:
        return None
    centre, windows = pairs.log_ratio, pairs.windows
    half = _t(len(windows) - 1) * _deviation(windows) / math.sqrt(len(windows))
    return Interval(value=math.exp(centre), low=math.exp(centre - half), high=math.exp(centre + half))


def expected_half_width(pairs: Pairs) -> float | None:
    """The half width of the whole run's interval, should its other process be as restless as this one, and as far from
    it as that makes likely.

    What one process may stop at: a narrow interval of its own says nothing about the next.
    """
    if len(pairs) < 3:
        return None
    centre = pairs.log_ratio
    variance = _variances([pairs])[0]
    scale = _prior_scale([pairs], [variance])
    # the median distance of two draws
    apart = 0.6745 * math.sqrt(2 * variance + scale**2)
    return math.sinh(_half_width([centre - apart / 2, centre + apart / 2], [variance, variance], scale))


def rough_interval(processes: Sequence[Pairs]) -> Interval | None:
    """The interval of eager over compiled from all processes, from a cheap guess of the spread within each: for what is
    redrawn while the run goes on. None for too few pairs.
    """
    return interval_from(processes, [])


def interval_from(processes: Sequence[Pairs], variances: Sequence[float]) -> Interval | None:
    """The interval of eager over compiled from all processes; None for too few pairs.

    The estimate is the geometric mean of the processes' own. `variances`: of each process's log ratio;
    guessed where there are none.
    """
    used = [pairs for pairs in processes if len(pairs)]
    freedom = sum(len(pairs) - 1 for pairs in used)
    if freedom < 2:
        return None
    ratios = [pairs.log_ratio for pairs in used]
    widening = (_t(freedom) / _Z) ** 2
    centre = math.fsum(ratios) / len(ratios)
    widened = [value * widening for value in variances or _variances(used)]
    half = _half_width(ratios, widened, _prior_scale(used, widened))
    half = max(half, max(abs(value - centre) for value in ratios))
    return Interval(value=math.exp(centre), low=math.exp(centre - half), high=math.exp(centre + half))


def level_interval(value: float, processes: Sequence[Sequence[float]]) -> Interval:
    """The interval of one side's own time per call, from the seconds of its blocks in each process.

    It moves with the machine's speed, of which a ratio is free: processes are expected to differ by as much as blocks.
    """
    logs = [math.log(median(seconds)) for seconds in processes]
    scatters = [math.log(quantile(seconds, 0.75) / quantile(seconds, 0.25)) / 1.349 for seconds in processes]
    # a median of normal values varies pi / 2 times as much as their mean
    variances = [scatter**2 * math.pi / 2 / len(row) for scatter, row in zip(scatters, processes, strict=True)]
    scale = max(LEAST_LEVEL, math.sqrt(math.fsum(scatter**2 for scatter in scatters) / len(scatters)))
    half = max(_half_width(logs, variances, scale), *(abs(log - math.log(value)) for log in logs))
    return Interval(value=value, low=value * math.exp(-half), high=value * math.exp(half))


def disagree(processes: Sequence[Pairs]) -> bool | None:
    """Whether two processes' own intervals exclude each other by more than noise; None where that cannot be told."""
    intervals = [found for pairs in processes if (found := quick_interval(pairs))]
    if len(intervals) < 2:
        return None
    return any(
        not one.overlaps(other) and abs(math.log(one.value / other.value)) > NOISE_FLOOR
        for one, other in itertools.combinations(intervals, 2)
    )


def _of_clock(known: Mapping[str, float], clock: str) -> float:
    """Of a clock that another version may have had, the most cautious value."""
    return known.get(clock, max(known.values()))


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _deviation(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _variances(processes: Sequence[Pairs]) -> list[float]:
    """A guess of the variance of each process's log ratio; from pairs pooled over processes where one holds few."""
    if all(len(pairs) >= FEWEST for pairs in processes):
        return [_deviation(pairs.windows) ** 2 / len(pairs.windows) for pairs in processes]
    logs = [[math.log(e / c) for e, c in zip(pairs.eager, pairs.compiled, strict=False)] for pairs in processes]
    pooled = math.fsum((len(row) - 1) * _deviation(row) ** 2 for row in logs) / sum(len(row) - 1 for row in logs)
    # a few values that are equal by chance show no calm
    pooled = max(pooled, max(pairs.least for pairs in processes) ** 2)
    # a median of normal values varies pi / 2 times as much as their mean
    return [pooled * math.pi / 2 / len(row) for row in logs]


def _prior_scale(processes: Sequence[Pairs], variances: Sequence[float]) -> float:
    """How far processes may be expected to differ in their log ratio, from the variance within each and the scatter."""
    least = max(pairs.least_spread for pairs in processes)
    return max(least, ERROR_SHARE * math.sqrt(math.fsum(variances) / len(variances)))


def _half_width(ratios: Sequence[float], variances: Sequence[float], scale: float) -> float:
    """Half the central interval of the mean log ratio, over the posterior of the spread between processes.

    The prior of the spread is a half-Cauchy distribution [6]: of those as narrow where processes agree, it gives way
    most where they do not.
    """
    farthest = 8 * (max(ratios) - min(ratios)) + 30 * scale
    spreads = [farthest * (i / 80) ** 2 for i in range(81)]
    # the grid is quadratic, so that a cell's width grows with its index
    weights = [
        max(i, 0.25) / (1 + (tau / scale) ** 2) * _likelihood(ratios, variances, tau) for i, tau in enumerate(spreads)
    ]
    deviations = [math.sqrt(math.fsum(v + tau**2 for v in variances)) / len(ratios) for tau in spreads]
    return _mixture_quantile(weights, deviations)


def _likelihood(ratios: Sequence[float], variances: Sequence[float], tau: float) -> float:
    """The likelihood of a spread between processes, the common ratio integrated out."""
    totals = [v + tau**2 + 1e-14 for v in variances]
    precision = math.fsum(1 / total for total in totals)
    mean = math.fsum(r / total for r, total in zip(ratios, totals, strict=True)) / precision
    misfit = math.fsum((r - mean) ** 2 / total for r, total in zip(ratios, totals, strict=True))
    return math.exp(-misfit / 2) / math.sqrt(math.prod(totals) * precision)


def _mixture_quantile(weights: Sequence[float], deviations: Sequence[float]) -> float:
    """The half width that leaves out 5 % of a mixture of centred normal distributions."""
    whole = math.fsum(weights)
    low, high = 0.0, 10 * max(deviations)
    parts = [(weight, 1 / (sd * math.sqrt(2))) for weight, sd in zip(weights, deviations, strict=True) if sd]
    for _ in range(40):
        half = (low + high) / 2
        outside = sum([weight * math.erfc(half * scale) for weight, scale in parts])
        low, high = (half, high) if outside > (1 - CONFIDENCE) * whole else (low, half)
    return high


def _t(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's distribution."""
    if freedom <= len(_T):
        return _T[max(freedom, 1) - 1]
    # Cornish-Fisher expansion, right to three digits from here on
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
