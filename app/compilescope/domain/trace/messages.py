"""What torch tells by its loggers alone: the recompile limit, and CUDA graphs that were not recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compilescope.domain.events import Place
from compilescope.domain.trace.places import function_name, parse_stack

_LIMIT = re.compile(
    r"torch\._dynamo hit config\.(\w+) \((\d+)\)\s+function: '(.+?)' \((.+):(\d+)\)\s+last reason: (.*?)(?:\n|$)"
)
# how torch begins to say why
SKIP = "skipping cudagraphs due to"
_SKIPPED = re.compile(r"skipping cudagraphs (?:due to|because|for)\b", re.IGNORECASE)
_FOUND_FROM = re.compile(r"\.?\s*Found from\s*:?\s*\n?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class LimitMessage:
    """A function reached the recompile limit."""

    place: Place
    limit: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class CudaGraphMessage:
    """CUDA graphs were skipped, or torch warns about them. `state`: skipped, warning."""

    state: str
    reason: str
    place: Place | None


def parse_limit(text: str) -> LimitMessage | None:
    match = _LIMIT.search(text)
    if match is None:
        return None
    place = Place(file=match[4], line=int(match[5]), function=function_name(match[3]))
    return LimitMessage(place=place, limit=int(match[2]), reason=match[6].strip())


def parse_cudagraph(text: str) -> CudaGraphMessage | None:
    """The reason without its repeated preamble, and the innermost place it was found at."""
    if "cudagraph" not in text.lower():
        return None
    reason, *found = _FOUND_FROM.split(text, maxsplit=1)
    frames = parse_stack(found[0]) if found else []
    skipped = _SKIPPED.match(reason.strip()) is not None
    while match := _SKIPPED.match(reason := reason.strip()):
        reason = reason[match.end() :]
    return CudaGraphMessage(
        state="skipped" if skipped else "warning", reason=reason.rstrip(" .:"), place=frames[-1] if frames else None
    )
