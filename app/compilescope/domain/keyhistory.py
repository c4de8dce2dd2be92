"""Why a lookup missed although earlier ones were stored: the nearest earlier key, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain.cachekeys import Difference, differences, distance, parse_components
from compilescope.domain.cacheledger import Lookup, lookups
from compilescope.domain.run import Run

MOST_COMPARED = 80


@dataclass(frozen=True, kw_only=True)
class StoredKey:
    """A key that some lookup asked for, and so was stored afterwards. `origin` says which one, for people."""

    cache: str
    key: str
    origin: str
    components: e.TextSpan | None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is known of one key beside earlier ones. `nearest` None: there is no earlier one to compare with."""

    nearest: StoredKey | None
    is_same: bool = False
    differences: tuple[Difference, ...] = ()


def stored_keys(run: Run) -> list[StoredKey]:
    """The keys of a run's lookups, in order."""
    return [stored for row in lookups(run) if (stored := _stored(run, row))]


def earlier_keys(runs: Sequence[Run], run: Run, lookup: Lookup, before: Iterable[StoredKey] = ()) -> list[StoredKey]:
    """Keys of the same cache that came before a lookup, the newest first; `before`: those of earlier comparisons."""
    found = [key for key in before if key.cache == lookup.event.cache]
    for other in runs:
        for row in lookups(other):
            if other is run and row.event is lookup.event:
                return found[::-1]
            stored = _stored(other, row)
            if stored and stored.cache == lookup.event.cache:
                found.append(stored)
    return found[::-1]


def comparable(run: Run, lookup: Lookup) -> Lookup:
    """The lookup whose key can be compared: newer torch keeps the parts of Inductor's key alone."""
    if lookup.event.components is not None:
        return lookup
    others = (row for row in lookups(run) if row.process == lookup.process and row.event.components is not None)
    return next((row for row in others if row.event.compile_id == lookup.event.compile_id), lookup)


def explain(
    event: e.Cache, earlier: Sequence[StoredKey], read: Callable[[Sequence[e.TextSpan]], Sequence[str]]
) -> Explanation:
    """Compare a key with earlier ones. `read` fetches payloads, which takes time."""
    same = next((key for key in earlier if key.key == event.key), None)
    if same is not None:
        return Explanation(nearest=same, is_same=True)
    candidates = [key for key in _distinct(earlier) if key.components][:MOST_COMPARED]
    if event.components is None or not candidates:
        return Explanation(nearest=None)
    own_text, *texts = read([event.components, *(key.components for key in candidates if key.components)])
    own = parse_components(own_text)
    parsed = [(key, parse_components(text)) for key, text in zip(candidates, texts, strict=True)]
    readable = [(key, parts) for key, parts in parsed if parts]
    if not own or not readable:
        return Explanation(nearest=None)
    nearest, parts = min(readable, key=lambda pair: distance(pair[1], own))
    return Explanation(nearest=nearest, differences=differences(parts, own))


def words(event: e.Cache, found: Explanation) -> str:
    """The explanation as text, for a lookup in any state."""
    if event.state == "bypass":
        return f"The cache was not asked: {event.reason or 'torch gives no reason'}."
    nearest = found.nearest
    if event.state == "hit":
        origin = f" It was stored by {nearest.origin}." if nearest and found.is_same else ""
        return f"Found under its key.{origin}"
    if nearest is None:
        return "Nothing was stored under this key, and no earlier key of this cache is known to compare it with."
    if found.is_same:
        return (
            f"Nothing was stored under this key in this run's cache. {nearest.origin} had the same key: with one cache "
            "for both, this would have been a hit."
        )
    lines = [f"Nothing was stored under this key. The nearest earlier one is of {nearest.origin}. What differs:"]
    lines += [f"•  {difference.words}" for difference in found.differences]
    return "\n".join(lines)


def _stored(run: Run, row: Lookup) -> StoredKey | None:
    event = row.event
    if not event.key or event.state == "bypass":
        return None
    start = "" if run.is_trace else f"{row.start} start, "
    origin = f"{run.label}, {start}compile {event.compile_id or '?'}"
    return StoredKey(cache=event.cache, key=event.key, origin=origin, components=event.components)


def _distinct(keys: Iterable[StoredKey]) -> list[StoredKey]:
    return list({key.key: key for key in reversed(list(keys))}.values())[::-1]
