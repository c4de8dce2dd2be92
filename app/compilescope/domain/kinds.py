"""Kinds of figures: how a value of each is written for people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from compilescope.domain import units, words
from compilescope.domain.breakeven import calls_text
from compilescope.domain.measures import Summary
from compilescope.domain.statistics import Interval
from compilescope.domain.verdict import interval_text


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`text`: of a known value in a cell, with its unit; `long`: the same where there is more room. `key`: what sorts.

    `to_json` and `from_json`: a value with the unit that its JSON name tells. `schema`: of that, where it is known.
    `unit`: of what sorts, where a column of a report may choose a larger or smaller one.
    `parts`: of a value that is an object in the JSON, the keys that a CSV has a column for."""

    text: Callable[[Any], str]
    schema: Mapping[str, Any]
    long: Callable[[Any], str] | None = None
    key: Callable[[Any], Any] = _same
    to_json: Callable[[Any], Any] = _same
    from_json: Callable[[Any], Any] = _same
    parts: tuple[str, ...] = ()
    unit: Literal["s", "B", ""] = ""
    is_number: bool = True

    def at_length(self, value: Any) -> str:
        return (self.long or self.text)(value)

    def shown(self, value: Any) -> str:
        """The text of a value, known or not."""
        return words.UNKNOWN if value is None else self.text(value)


def _summary_json(found: Summary) -> dict[str, Any]:
    return {
        "median": found.median * 1e3,
        "p05": found.p05 * 1e3,
        "p95": found.p95 * 1e3,
        "samples": found.samples,
        "processes": [{"start": start, "median": median * 1e3} for start, median in found.processes],
    }


def _summary(found: Mapping[str, Any]) -> Summary:
    return Summary(**{name: found[name] / 1e3 for name in ("median", "p05", "p95")}, samples=found["samples"])


def _interval(found: Mapping[str, Any]) -> Interval:
    return Interval(value=found["value"], low=found["low"], high=found["high"])


NUMBER = {"type": "number"}
SECONDS = Kind(text=units.duration, schema=NUMBER, unit="s")
MILLISECONDS = Kind(
    text=units.duration,
    schema=NUMBER,
    unit="s",
    to_json=lambda seconds: seconds * 1e3,
    from_json=lambda value: value / 1e3,
)
# seconds per call of one side, as a distribution
TIMES = Kind(
    text=lambda found: units.duration(found.median),
    long=lambda found: f"{units.duration(found.median)}, 95th percentile {units.duration(found.p95)}",
    schema={"$ref": "#/$defs/summary"},
    key=lambda found: found.median,
    to_json=_summary_json,
    from_json=_summary,
    parts=("median", "p05", "p95", "samples"),
    unit="s",
)
SPEEDUP = Kind(
    text=interval_text,
    schema={"$ref": "#/$defs/interval"},
    key=lambda found: found.value,
    to_json=asdict,
    from_json=_interval,
    parts=("value", "low", "high", "confidence"),
)
RATIO = Kind(text=units.ratio, schema=NUMBER)
SHARE = Kind(text=units.percent, schema=NUMBER)
BYTES = Kind(text=units.size, schema={"type": "integer"}, unit="B")
COUNT = Kind(text=units.count, schema={"type": "integer"})
# a mean of counts
COUNTS = Kind(text=lambda value: units.count(value) if value >= 10 else f"{value:.3g}", schema=NUMBER)
CALLS = Kind(text=calls_text, schema=NUMBER)
ERROR = Kind(text=lambda value: f"{value:.3g}", schema=NUMBER)
FLAG = Kind(text=lambda value: "yes" if value else "no", schema={"type": "boolean"}, is_number=False)
TEXT = Kind(text=str, schema={"type": "string"}, is_number=False)
AGREEMENT = Kind(text=lambda value: words.AGREEMENTS[value], schema={"enum": [*words.AGREEMENTS]}, is_number=False)
