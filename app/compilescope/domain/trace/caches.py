"""Cache lookups: hit, miss or bypass, the key and what was saved."""

from __future__ import annotations

import re

_NAME = re.compile(r"(.+?)_cache_(hit|miss|bypass)$")
_NAMES = {"aotautograd": "aot_autograd"}
_STRING = r'"{}": "((?:[^"\\]|\\.)*)"'
_NUMBER = r'"{}": (-?[\d.e+]+)'


def cache_name(artifact: str) -> tuple[str, str] | None:
    """Cache and state in an artifact's name: "fx_graph_cache_miss" is ("fx_graph", "miss")."""
    match = _NAME.match(artifact)
    return (_NAMES.get(match[1], match[1]), match[2]) if match else None


def without_components(payload: str) -> str:
    """The payload's own fields. The key's components are most of it, and are read only when two keys are compared."""
    start = payload.find('"components": [')
    if start < 0:
        return payload
    # what follows the list is found from the end: components are free text and may hold brackets
    end = max(payload.rfind('"],'), payload.rfind('"\n],'), start)
    return payload[:start] + payload[end:]


def text_field(payload: str, name: str) -> str | None:
    match = re.search(_STRING.format(name), payload)
    return match[1].encode().decode("unicode_escape", "replace") if match else None


def number_field(payload: str, name: str) -> float | None:
    match = re.search(_NUMBER.format(name), payload)
    return float(match[1]) if match else None


def seconds_saved(fields: str) -> float | None:
    """What a hit saved, by torch's own account."""
    nanoseconds = number_field(fields, "time_saved_ns")
    if nanoseconds is not None:
        return nanoseconds / 1e9
    parts = [number_field(fields, f"{direction}_time_saved_ms") for direction in ("forward", "backward")]
    known = [part for part in parts if part is not None]
    return sum(known) / 1e3 if known else None


def seconds_taken(fields: str) -> float | None:
    nanoseconds = number_field(fields, "time_taken_ns")
    return nanoseconds / 1e9 if nanoseconds is not None else None
