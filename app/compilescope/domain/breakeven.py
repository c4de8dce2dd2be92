"""When compiling has paid for itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from compilescope.domain import units
from compilescope.domain.statistics import Interval

# how far the next first call may be from the one that was timed. One value shows no spread of its own, and the time of
# a compile moves with the machine's load and its disk: on a calm machine by a few percent, on a shared one by this
FIRST_CALL_SPREAD = 0.2
# from here on between the ends of its interval a break-even is not known
MOST_APART = 2.0


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """When compiling has paid for itself: the call, and the time until then. `calls_low` and `calls_high` hold the
    spread of all that it comes from."""

    calls: float
    calls_low: float
    calls_high: float
    seconds: float

    @property
    def seconds_low(self) -> float:
        return self.seconds * self.calls_low / self.calls

    @property
    def is_known(self) -> bool:
        return self.calls_high <= MOST_APART * self.calls_low


@dataclass(frozen=True, kw_only=True)
class _Parts:
    first_call_s: float
    eager_s: float
    ratio: float

    @property
    def calls(self) -> float:
        """A call that the first one made anyway is taken off its cost."""
        cost = max(self.first_call_s - self.eager_s / self.ratio, 0.0)
        return max(cost / (self.eager_s * (1 - 1 / self.ratio)), 1.0)


def break_even(first_call_s: float | None, eager: Interval | None, speedup: Interval | None) -> BreakEven | None:
    """The calls after which compiling has paid off; None where it is not shown to save anything. Of a run ask its
    verdict, which knows the noise floor and whether the results are right.

    `eager`: the time of an eager call. The errors of the first call, of eager's time and of the speedup add up as
    independent ones do.
    """
    if first_call_s is None or eager is None or speedup is None or speedup.low <= 1:
        return None
    best = _Parts(first_call_s=first_call_s, eager_s=eager.value, ratio=speedup.value)
    fewest = (
        replace(best, first_call_s=first_call_s / (1 + FIRST_CALL_SPREAD)),
        replace(best, eager_s=eager.high),
        replace(best, ratio=speedup.high),
    )
    most = (
        replace(best, first_call_s=first_call_s * (1 + FIRST_CALL_SPREAD)),
        replace(best, eager_s=eager.low),
        replace(best, ratio=speedup.low),
    )
    below = math.hypot(*(math.log(best.calls / parts.calls) for parts in fewest))
    above = math.hypot(*(math.log(parts.calls / best.calls) for parts in most))
    return BreakEven(
        calls=best.calls,
        calls_low=max(best.calls * math.exp(-below), 1.0),
        calls_high=best.calls * math.exp(above),
        seconds=best.calls * eager.value,
    )


def break_even_text(found: BreakEven) -> str:
    """A break-even in a phrase: "4 200 calls (3 400 to 5 200), about 70 s"."""
    low, high = calls_text(found.calls_low), calls_text(found.calls_high)
    if not found.is_known:
        return f"not known: between {low} and {high} calls"
    span = f" ({low} to {high})" if low != high else ""
    return f"{calls_text(found.calls)} calls{span}, about {units.duration(found.seconds)}"


def pays_off_text(found: BreakEven, own: BreakEven | None = None) -> str:
    """The same as a clause. `own`: without what the first call would have paid for any model."""
    text = f"pays off {_when(found)}"
    return text if own is None else f"{text}; the model's own part of the first call {_when(own)}"


def _when(found: BreakEven) -> str:
    if found.is_known:
        return f"after {break_even_text(found)}"
    return f"somewhere between {calls_text(found.calls_low)} and {calls_text(found.calls_high)} calls"


def calls_text(calls: float) -> str:
    """A number of calls with the two digits that it may carry."""
    return units.count(float(f"{calls:.2g}"))
