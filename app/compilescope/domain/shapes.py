"""Dynamic shapes: what became of each dimension, and which line decided it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compilescope.domain import events as e

_SIZE = re.compile(r"^(.*)\.(size|stride)\(\)\[(\d+)\]$")
_RANGE = re.compile(r"^(?:VR)?\[(-?\w+), (-?\w+)\]$")
_RANK = {"symbolic": 0, "unbacked": 1, "constrained": 2, "specialised": 3}
_REASONS = {
    "range_refined_to_singleton": "what the code asks of it leaves one value",
    "replaced": "it was found equal to another size",
}


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One symbol of one compile: where it comes from, its last state, and the events that led there."""

    compile_id: str | None
    symbol: str
    events: tuple[e.Symbol, ...]

    @property
    def state(self) -> str:
        return max((event.state for event in self.events), key=lambda state: _RANK.get(state, 0))

    @property
    def source(self) -> str:
        """`x, dimension 0`, or what else the symbol stands for."""
        text = next((event.source for event in self.events if event.source), None)
        if text is None:
            return "a value computed from data" if self.state == "unbacked" else "–"
        match = _SIZE.match(text)
        if not match:
            return text
        return f"{match[1]}, {'dimension' if match[2] == 'size' else 'stride'} {match[3]}"

    @property
    def value(self) -> str | None:
        text = next((event.value for event in reversed(self.events) if event.value), None)
        if text is None or self.is_size:
            return text
        try:
            return f"{float(text):.4g}"
        except ValueError:
            return text

    @property
    def range(self) -> str:
        text = next((event.range for event in reversed(self.events) if event.range), "")
        match = _RANGE.match(text)
        if not match:
            return text
        low, high = match[1], match[2]
        if "oo" in high:
            return f"{low} or more" if "oo" not in low else "any"
        return low if low == high else f"{low} to {high}"

    @property
    def place(self) -> e.Place | None:
        """The line that decided: of what constrained or specialised it, the last."""
        for event in sorted(self.events, key=lambda event: _RANK.get(event.state, 0), reverse=True):
            if event.file:
                return e.Place(file=event.file, line=event.line, function=event.function)
        return None

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the code asked of it."""
        return tuple(dict.fromkeys(e.reason for e in self.events if e.state == "constrained" and e.reason))

    @property
    def sentence(self) -> str:
        """Its fate in words."""
        conditions = ", ".join(self.conditions[:3])
        match self.state:
            case "specialised":
                reason = next((event.reason for event in self.events if event.state == "specialised"), None)
                why = f"since {conditions}" if conditions else _REASONS.get(reason or "", reason or "")
                return f"fixed to {self.value or 'one value'}{': ' if why else ''}{why}"
            case "constrained":
                return f"any size, as long as {conditions}"
            case "unbacked":
                return "known only when it runs"
            case _:
                return "any size" if self.is_size else "any value"

    @property
    def is_size(self) -> bool:
        """Whether it is a tensor's dimension; numbers become symbols too."""
        return any(_SIZE.match(event.source or "") for event in self.events)


def dimensions(events: Iterable[e.Symbol]) -> list[Dimension]:
    """The symbols in the order in which they came up; those of a later compile are others."""
    grouped: dict[tuple[str | None, str], list[e.Symbol]] = {}
    for event in events:
        grouped.setdefault((event.compile_id, event.symbol), []).append(event)
    return [
        Dimension(compile_id=compile_id, symbol=symbol, events=tuple(rows))
        for (compile_id, symbol), rows in grouped.items()
    ]


def sentence(rows: Iterable[Dimension]) -> str:
    """How many dimensions became symbolic, and how many were fixed after all."""
    states = [row.state for row in rows]
    fixed = states.count("specialised")
    symbolic = len(states) - fixed
    if not states:
        return "Every size is compiled in as it was: no dimension became symbolic."
    parts = [f"{symbolic} symbolic" if symbolic else "", f"{fixed} specialised after all" if fixed else ""]
    return f"Of {len(states)} symbols: " + ", ".join(part for part in parts if part) + "."
