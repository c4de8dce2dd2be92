"""Recompiles: which guard failed, of which argument or attribute, and what it expected."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain.events import Place
from compilescope.domain.trace.places import function_name

_FAILED = re.compile(r"\s*(!?\d+(?:/\d+)+): (.*)", re.DOTALL)
_TENSOR = re.compile(r"tensor '(.+?)' (.+?) mismatch(?: at index (\d+))?\. expected (.+?)(?:, actual (.+?))?$")
_COMPARED = re.compile(r"(?!len\()([A-Za-z_][\w.\[\]'\"()]*?(?:\.size\(\)\[\d+\])?) == (.+)$")
_LENGTH = re.compile(r"len\((.+)\) == (\d+)$")
_CALL = re.compile(r"___(check_\w+|tuple_iterator_len|dict_\w+)\((.+?)(?:, (.+))?\)(?:, type=(.+))?$")
_RANGE = re.compile(r"^(?=-?\d|.*<= )(?:(-?\d+) <= )?(.+?)\.size\(\)\[(\d+)\](?: <= (-?\d+))?$")
_AT = re.compile(r"#\s+(\S+\.py):(\d+) in (\S+)")
_LOCAL = re.compile(r"L\['(\w+)'\]")
_VARIADIC = re.compile(r"^args\[(\d+)\]")
_WRAPPER_STATE = re.compile(r"GLOBAL_STATE changed: (.*?) *$")


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why one earlier compile did not fit. `place`: the line that the guard protects."""

    text: str
    guard: str
    failed: str | None = None
    source: str | None = None
    dimension: int | None = None
    expected: str | None = None
    actual: str | None = None
    place: Place | None = None

    @property
    def property(self) -> tuple[str, str | None, int | None]:
        """What the guard tests: the aspect, of which argument or attribute, and of which dimension."""
        match = _TENSOR.search(self.guard)
        if match:
            return match[2].partition("=")[0], self.source, self.dimension
        if self.source is None:
            return self.guard, None, None
        return "check" if self.guard.startswith("___") else "value", self.source, self.dimension


def parse_reasons(payload: str) -> list[Reason]:
    """The reasons in a record, one for each earlier compile, the one that was used last first."""
    try:
        value = json.loads(payload)
    except ValueError:
        value = payload
    return [parse_reason(str(item)) for item in (value if isinstance(value, list) else [value])]


def parse_reason(text: str) -> Reason:
    """One reason, as written by torch 2.6 to 2.14."""
    first, *_ = text.strip().splitlines() or [""]
    found = _FAILED.match(first)
    failed, rest = (found[1], found[2]) if found else (None, first)
    at = _AT.search(rest)
    guard = re.split(r"\s{2,}#|\s+#\s|\s+\(HINT:", rest, maxsplit=1)[0].strip()
    source, dimension, expected, actual = _meaning(guard)
    return Reason(
        text=text.strip(),
        guard=guard,
        failed=failed,
        source=source,
        dimension=dimension,
        expected=expected,
        actual=actual,
        place=Place(file=at[1], line=int(at[2]), function=function_name(at[3])) if at else None,
    )


def _meaning(guard: str) -> tuple[str | None, int | None, str | None, str | None]:
    """Source, dimension, expected and actual value, as far as the guard tells them."""
    if match := _TENSOR.search(guard):
        index = int(match[3]) if match[3] else None
        expected = match[4].removeprefix(f"{match[2]}=")
        return plain_source(match[1]), index, expected, match[5]
    if match := _RANGE.match(guard):
        return plain_source(match[2]), int(match[3]), _span(match[1], match[4]), None
    if match := _LENGTH.search(guard):
        return f"len({plain_source(match[1])})", None, match[2], None
    if match := _CALL.search(guard):
        kind = match[4] or (f"the {match[1].removeprefix('check_')} {match[3]}" if match[3] else match[1])
        return plain_source(match[2]), None, kind, None
    if match := _WRAPPER_STATE.search(guard):
        return f"global state: {match[1]}".rstrip(": "), None, None, None
    if match := _COMPARED.search(guard):
        return plain_source(match[1]), None, match[2], None
    return None, None, None, None


def _span(low: str | None, high: str | None) -> str:
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}"


def plain_source(source: str, arguments: Sequence[str] = ()) -> str:
    """A source as the person wrote it: `x` for `L['x']`; with argument names also for a wrapper's `args[0]`."""
    plain = _LOCAL.sub(r"\1", source)
    plain = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", plain)
    if (match := _VARIADIC.match(plain)) and int(match[1]) < len(arguments):
        plain = arguments[int(match[1])] + plain[match.end() :]
    return plain
