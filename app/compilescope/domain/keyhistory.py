"""Why a lookup missed although earlier ones were stored: the nearest earlier key, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from compilescope.domain import events as e
from compilescope.domain.cachekeys import Component, Difference, differences, distance, parse_components
from compilescope.domain.cacheledger import Lookup, lookups
from compilescope.domain.comparison import Comparison
from compilescope.domain.errors import AppError
from compilescope.domain.run import Run

MOST_COMPARED = 80
MOST_TOLD = 40

Read = Callable[[Sequence[e.TextSpan]], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class StoredKey:
    """A key that some lookup asked for, and so was stored afterwards. `origin` says which one, for people.

    `graph` is its compile id. Its parts are there, or lie in a trace at `components`.
    """

    cache: str
    key: str
    origin: str
    run_id: str = ""
    process: int = 0
    start: str = ""
    script: str = ""
    graph: str | None = None
    components: e.TextSpan | None = None
    parts: tuple[Component, ...] = ()


class KeyHistory(Protocol):
    """The keys of all stored runs that began before the one of the key that is asked about."""

    def same_key(self, asked: StoredKey) -> StoredKey | None: ...

    def nearest_key(self, asked: StoredKey) -> StoredKey | None: ...


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where explanations come from besides the runs at hand. Each may take a while: for a thread.

    `in_own_cache` says of a cache and a key whether the user's own cache folder holds an entry for it.
    """

    history: KeyHistory | None = None
    in_own_cache: Callable[[str, str], bool | None] = lambda _cache, _key: None
    read: Read = lambda spans: [_read_one(span) for span in spans]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is known of one key beside earlier ones. `nearest` None: there is no earlier one to compare with.

    `folder_was_empty`: the process began with an empty cache folder, so that a miss says nothing about the key.
    """

    nearest: StoredKey | None = None
    is_same: bool = False
    is_own: bool = False  # the nearest is of the same process
    differences: tuple[Difference, ...] = ()
    folder_was_empty: bool | None = None
    in_own_cache: bool | None = None


def stored_keys(run: Run) -> list[StoredKey]:
    """The keys of a run's lookups, in order."""
    return [stored for row in lookups(run) if (stored := stored_key(run, row))]


def with_parts(keys: Sequence[StoredKey], read: Read = Sources().read) -> list[StoredKey]:
    """The same keys, each once, with the parts that their traces hold."""
    distinct = _distinct(keys)
    known = [key for key in distinct if key.components]
    texts = read([key.components for key in known if key.components])
    parts = {key.key: parse_components(text) for key, text in zip(known, texts, strict=True)}
    return [replace(key, parts=parts.get(key.key, ())) for key in distinct]


def earlier_keys(runs: Sequence[Run], run: Run, lookup: Lookup, before: Iterable[StoredKey] = ()) -> list[StoredKey]:
    """Keys of the same cache that came before a lookup, the newest first; `before`: those of earlier comparisons."""
    found = [key for key in before if key.cache == lookup.event.cache]
    for other in runs:
        for row in lookups(other):
            if other is run and row.event is lookup.event:
                return found[::-1]
            stored = stored_key(other, row)
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
    runs: Sequence[Run], run: Run, lookup: Lookup, sources: Sources, before: Sequence[StoredKey] = ()
) -> Explanation:
    """Compare a lookup's key with all earlier ones: of `runs` and `before`, and of the history."""
    own = stored_key(run, lookup)
    if own is None:
        return Explanation()
    found = _same(runs, run, lookup, sources, before)
    if lookup.event.state != "miss":
        return found or Explanation()
    was_empty = run.processes[lookup.process].hello.cache_was_empty
    return replace(
        found or _nearest(runs, run, comparable(run, lookup), sources, before),
        folder_was_empty=was_empty,
        in_own_cache=sources.in_own_cache(own.cache, own.key) if was_empty else None,
    )


def words(event: e.Cache, found: Explanation) -> str:
    """The explanation as text, for a lookup in any state."""
    if event.state == "bypass":
        return f"The cache was not asked: {event.reason or 'torch gives no reason'}."
    if event.state == "hit":
        origin = f" It was stored by {found.nearest.origin}." if found.nearest and found.is_same else ""
        return f"Found under its key.{origin}"
    return "\n".join([*_empty_words(found), *_miss_words(found)])


def with_keys(result: dict[str, Any], comparison: Comparison, sources: Sources) -> dict[str, Any]:
    """A comparison's JSON with `cache_keys` in each run: why each of its lookups missed."""
    runs = comparison.runs
    for values, run in zip(result["runs"], runs, strict=True):
        missed = [row for row in lookups(run) if row.event.state == "miss"]
        values["cache_keys"] = [_key_json(row, explain(runs, run, row, sources)) for row in missed]
    return result


def _key_json(row: Lookup, found: Explanation) -> dict[str, Any]:
    return {
        "start": row.start,
        "cache": row.event.cache,
        "compile_id": row.event.compile_id,
        "key": row.event.key,
        "folder_was_empty": found.folder_was_empty,
        "in_own_cache": found.in_own_cache,
        "same_key_as": found.nearest.origin if found.nearest and found.is_same else None,
        "nearest": found.nearest.origin if found.nearest and not found.is_same else None,
        "differences": [{"part": row.name, "words": row.words} for row in found.differences],
        "words": words(row.event, found),
    }


def stored_key(run: Run, row: Lookup) -> StoredKey | None:
    """The key that a lookup asked for; None where it asked for none."""
    event = row.event
    if not event.key or event.state == "bypass":
        return None
    start = "" if run.is_trace else f"{row.start} start, "
    return StoredKey(
        cache=event.cache,
        key=event.key,
        origin=f"{run.label}, {start}compile {event.compile_id or '?'}",
        run_id=run.id,
        process=row.process,
        start=row.start,
        script=run.workload.script,
        graph=event.compile_id,
        components=event.components,
    )


def _same(
    runs: Sequence[Run], run: Run, lookup: Lookup, sources: Sources, before: Sequence[StoredKey]
) -> Explanation | None:
    own = stored_key(run, lookup)
    earlier = earlier_keys(runs, run, lookup, before)
    same = next((key for key in earlier if own and key.key == own.key), None)
    if same is None and own and sources.history:
        same = _found(sources.history.same_key, own)
    if same is None or own is None:
        return None
    return Explanation(nearest=same, is_same=True, is_own=(same.run_id, same.process) == (own.run_id, own.process))


def _nearest(
    runs: Sequence[Run], run: Run, lookup: Lookup, sources: Sources, before: Sequence[StoredKey]
) -> Explanation:
    own = stored_key(run, lookup)
    if own is None or own.components is None:
        return Explanation()
    earlier = [key for key in _distinct(earlier_keys(runs, run, lookup, before)) if key.components][:MOST_COMPARED]
    *candidates, own = with_parts([*(key for key in earlier if key.key != own.key), own], sources.read)
    if not own.parts:
        return Explanation()
    stored = _found(sources.history.nearest_key, own) if sources.history else None
    readable = [key for key in (*candidates, *([stored] if stored else [])) if key.parts]
    if not readable:
        return Explanation()
    nearest = min(readable, key=lambda key: (kinship(key, own), distance(key.parts, own.parts)))
    return Explanation(nearest=nearest, differences=differences(nearest.parts, own.parts))


def _found(ask: Callable[[StoredKey], StoredKey | None], own: StoredKey) -> StoredKey | None:
    """What the history answers; one that cannot be read costs the explanation alone."""
    try:
        return ask(own)
    except AppError:
        return None


def kinship(key: StoredKey, own: StoredKey) -> int:
    """0 for the same graph of the same script, 1 for another graph of it, 2 for any other."""
    return 2 if key.script != own.script else int(key.graph != own.graph)


def _empty_words(found: Explanation) -> list[str]:
    if not found.folder_was_empty or found.is_own:
        return []
    lines = ["This start began with an empty cache folder, so a key that it asks for the first time is never found."]
    if found.in_own_cache is not None:
        lines.append(
            "Your own cache holds an entry under this key: with it (cache: mine), this would have been a hit."
            if found.in_own_cache
            else "Your own cache holds nothing under this key either."
        )
    return lines


def _miss_words(found: Explanation) -> list[str]:
    nearest, empty = found.nearest, found.folder_was_empty
    if nearest is None:
        first = "" if empty else "Nothing was stored under this key. "
        return [f"{first}No earlier key of this cache is known to compare it with."]
    if found.is_own:
        return [
            f"{nearest.origin}, asked for the same key before and did not find it either: "
            "nothing was stored under it in between."
        ]
    if found.is_same:
        first = "" if empty else "Nothing was stored under this key in this run's cache. "
        return [f"{first}{nearest.origin}, had the same key: with one cache for both, this would have been a hit."]
    first = (
        "No run that is known had this key, so a cache that is kept would not have had it. The"
        if empty and not found.in_own_cache
        else "The"
        if empty
        else "Nothing was stored under this key. The"
    )
    lines = [f"{first} nearest earlier one is of {nearest.origin}. What differs:"]
    lines += [f"•  {difference.words}" for difference in found.differences[:MOST_TOLD]]
    more = len(found.differences) - MOST_TOLD
    return [*lines, f"•  and {more} more"] if more > 0 else lines


def _distinct(keys: Iterable[StoredKey]) -> list[StoredKey]:
    """Each key once, at its first place."""
    found: dict[tuple[str, str], StoredKey] = {}
    for key in keys:
        found.setdefault((key.cache, key.key), key)
    return list(found.values())


def _read_one(span: e.TextSpan) -> str:
    """The payload; one that is gone is an empty text."""
    from compilescope.domain.trace import read_text  # no window needs it to open

    try:
        return read_text(span.file, span.offset, span.length)
    except (AppError, OSError):
        return ""
