"""When compiling has paid for itself."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.domain import units
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
    """The calls after which compiling has paid off; None where it is not shown to save anything. Of a run ask its
    verdict, which knows the noise floor and whether the results are right.

    `eager_s`: the median of an eager call. A call that the first one made anyway is taken off its cost.
    """
    if first_call_s is None or eager_s is None or speedup is None or speedup.low <= 1:
        return None

    def calls(ratio: float) -> float:
        cost = max(first_call_s - eager_s / ratio, 0.0)
        return max(cost / (eager_s * (1 - 1 / ratio)), 1.0)

    value = calls(speedup.value)
    return BreakEven(calls=value, calls_low=calls(speedup.high), calls_high=calls(speedup.low), seconds=value * eager_s)


def break_even_text(found: BreakEven) -> str:
    """A break-even in a phrase: "4 200 calls (3 900 to 4 500), about 70 s"."""
    low, high = calls_text(found.calls_low), calls_text(found.calls_high)
    span = f" ({low} to {high})" if low != high else ""
    return f"{calls_text(found.calls)} calls{span}, about {units.duration(found.seconds)}"


def calls_text(calls: float) -> str:
    """A number of calls with the three digits that it may carry."""
    return units.count(float(f"{calls:.3g}"))
