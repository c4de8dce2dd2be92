"""When compiling has paid for itself."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.domain.statistics import Interval


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """When compiling has paid for itself: the call, and the time until then. `low` and `high` follow the speedup's
    interval."""

    calls: float
    calls_low: float
    calls_high: float
    seconds: float


def break_even(first_call_s: float | None, eager_s: float | None, speedup: Interval | None) -> BreakEven | None:
    """The calls after which compiling has paid off; None where it is not shown to save anything.

    `eager_s`: the median of an eager call. A call that the first one made anyway is taken off its cost.
    """
    if first_call_s is None or eager_s is None or speedup is None or speedup.low <= 1:
        return None

    def calls(ratio: float) -> float:
        cost = max(first_call_s - eager_s / ratio, 0.0)
        return max(cost / (eager_s * (1 - 1 / ratio)), 1.0)

    value = calls(speedup.value)
    return BreakEven(calls=value, calls_low=calls(speedup.high), calls_high=calls(speedup.low), seconds=value * eager_s)
