"""Dynamic shapes: which dimensions became symbolic, which were specialised, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.trace.places import Places
from compilescope.domain.trace.recompiles import plain_source
from compilescope.domain.trace.records import TraceRecord

_SYMBOL = re.compile(r"\b[a-z]{1,3}\d+\b")
# Inductor asks whether 32 bits suffice to index; every dynamic graph does
_INDEX_LIMIT = "2147483647"


class Symbols:
    """Tells each symbol's fate once a compile, however often the compiler retries."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._told: set[tuple[object, ...]] = set()
        self._constrained: dict[tuple[str | None, str], e.Place] = {}

    def tell(self, record: TraceRecord, arguments: tuple[str, ...]) -> e.Symbol | None:
        """The event of one record, or None where nothing new is said. `arguments`: names that a wrapper lost."""
        kind, compile_id = record.kind, record.compile_id
        value: Mapping[str, Any] = record.value
        place = self._places.innermost([self._places.frame(frame) for frame in value.get("user_stack") or ()])
        expression = str(value.get("expr") or "")
        names = _SYMBOL.findall(expression)
        symbol = str(value.get("symbol") or (names[0] if names else ""))
        sources = value.get("sources") or [value.get("source")]
        state = _STATES[kind]
        if kind == "guard_added_fast":
            if place is None or _INDEX_LIMIT in expression:
                return None
            self._constrained[compile_id, symbol] = place
        place = place or self._constrained.get((compile_id, symbol))
        key = (compile_id, state, symbol, expression, str(sources[0]))
        if key in self._told:
            return None
        self._told.add(key)
        return e.Symbol(
            file=place.file if place else None,
            line=place.line if place else None,
            function=place.function if place else None,
            state=state,
            symbol=symbol,
            source=plain_source(str(sources[0]), arguments) if sources[0] else None,
            value=str(value["val"]) if "val" in value else str(value["value"]) if "value" in value else None,
            range=str(value["vr"]) if value.get("vr") else None,
            reason=expression or value.get("reason"),
        )


_STATES = {
    "create_symbol": "symbolic",
    "create_unbacked_symbol": "unbacked",
    "guard_added_fast": "constrained",
    "symbolic_shape_specialization": "specialised",
}
