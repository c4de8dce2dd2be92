"""Cache keys of all stored runs, small and quick to compare.

A key has some 540 parts, of which nearly all are the same from one key to the next. Each part is stored once, and a
key as the numbers of its parts: a few hundred bytes.
"""

from __future__ import annotations

import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate, chain

from compilescope.domain.cachekeys import Component
from compilescope.domain.keyhistory import StoredKey

# of each kind, newest first: comparing this many takes a tenth of a second
MOST_COMPARED = 1_000

SCHEMA = """
CREATE TABLE key_parts (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (digest, name)
);
CREATE TABLE cache_keys (
    number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    process INTEGER NOT NULL,
    cache TEXT NOT NULL,
    key TEXT NOT NULL,
    graph TEXT,
    start TEXT NOT NULL,
    parts BLOB
);
CREATE INDEX cache_keys_by_key ON cache_keys (key, cache);
CREATE INDEX cache_keys_by_run ON cache_keys (run_id);
CREATE INDEX comparisons_by_script ON comparisons (script)
"""

_FROM = """
SELECT k.number, k.run_id, k.process, k.cache, k.key, k.graph, k.start, k.parts, r.label, r.began, c.title, c.script
FROM cache_keys AS k JOIN runs AS r ON r.id = k.run_id JOIN comparisons AS c ON c.id = r.comparison_id
WHERE k.cache = :cache AND c.deleted_at IS NULL AND k.run_id != :run
    AND r.began < coalesce((SELECT began FROM runs WHERE id = :run), 9e18)
"""
_SAME = f"{_FROM} AND k.key = :key ORDER BY r.began DESC LIMIT 1"
# the nearest of kin that there are: the same graph of the same script, another graph of it, any
_KIN = (
    f"{_FROM} AND k.parts IS NOT NULL AND c.script = :script AND k.graph IS :graph ORDER BY r.began DESC LIMIT :most",
    f"{_FROM} AND k.parts IS NOT NULL AND c.script = :script ORDER BY r.began DESC LIMIT :most",
    f"{_FROM} AND k.parts IS NOT NULL ORDER BY r.began DESC LIMIT :most",
)


def insert_keys(connection: sqlite3.Connection, run_id: str, keys: Sequence[StoredKey]) -> None:
    """Write a run's keys in place of those it had."""
    connection.execute("DELETE FROM cache_keys WHERE run_id = ?", (run_id,))
    for key in keys:
        numbers = sorted(_number(connection, part) for part in set(key.parts))
        connection.execute(
            "INSERT INTO cache_keys (run_id, process, cache, key, graph, start, parts) "
            "SELECT id, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ?",
            (key.process, key.cache, key.key, key.graph, key.start, _packed(numbers), run_id),
        )


def same_key(connection: sqlite3.Connection, asked: StoredKey) -> StoredKey | None:
    """The newest earlier run's lookup that asked for the very key."""
    row = connection.execute(_SAME, _values(asked)).fetchone()
    return _stored(row, ()) if row else None


def nearest_key(connection: sqlite3.Connection, asked: StoredKey) -> StoredKey | None:
    """The earlier key from which the fewest parts differ, among its nearest kin."""
    own = {_known_number(connection, part) for part in set(asked.parts)}
    for query in _KIN:
        rows = connection.execute(query, _values(asked) | {"most": MOST_COMPARED}).fetchall()
        if rows:
            nearest = min(_distinct(rows), key=lambda row: len(own ^ set(_unpacked(row["parts"]))))
            return _stored(nearest, _parts(connection, _unpacked(nearest["parts"])))
    return None


def drop_unused_parts(connection: sqlite3.Connection) -> None:
    """Remove parts that no key has any more: they hold pieces of the user's graphs."""
    rows = connection.execute("SELECT parts FROM cache_keys WHERE parts IS NOT NULL").fetchall()
    used = set(chain.from_iterable(_unpacked(row[0]) for row in rows))
    known = [row[0] for row in connection.execute("SELECT number FROM key_parts").fetchall()]
    connection.executemany("DELETE FROM key_parts WHERE number = ?", [(one,) for one in known if one not in used])


def _values(asked: StoredKey) -> dict[str, object]:
    names = {"cache": asked.cache, "key": asked.key, "script": asked.script, "graph": asked.graph}
    return {**names, "run": asked.run_id}


def _known_number(connection: sqlite3.Connection, part: Component) -> int:
    """A part's number; one that no stored key has gets a number that no other part has."""
    row = connection.execute(
        "SELECT number FROM key_parts WHERE digest = ? AND name = ?", (part.digest, part.name)
    ).fetchone()
    return int(row[0]) if row else -1 - abs(hash((part.digest, part.name)))


def _number(connection: sqlite3.Connection, part: Component) -> int:
    connection.execute(
        "INSERT INTO key_parts (name, digest, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (part.name, part.digest, part.value),
    )
    return _known_number(connection, part)


def _parts(connection: sqlite3.Connection, numbers: Iterable[int]) -> tuple[Component, ...]:
    query = "SELECT name, digest, value FROM key_parts WHERE number = ?"
    rows = [connection.execute(query, (number,)).fetchone() for number in numbers]
    return tuple(Component(name=row["name"], digest=row["digest"], value=row["value"]) for row in rows if row)


def _distinct(rows: Sequence[sqlite3.Row]) -> list[sqlite3.Row]:
    """Each key once: its newest."""
    found: dict[str, sqlite3.Row] = {}
    for row in rows:
        found.setdefault(row["key"], row)
    return list(found.values())


def _stored(row: sqlite3.Row, parts: tuple[Component, ...]) -> StoredKey:
    when = datetime.fromtimestamp(row["began"]).strftime("%Y-%m-%d %H:%M")
    return StoredKey(
        cache=row["cache"],
        key=row["key"],
        origin=f"{row['label']} of {row['title']} ({when}), {row['start']} start, compile {row['graph'] or '?'}",
        run_id=row["run_id"],
        process=row["process"],
        start=row["start"],
        script=row["script"],
        graph=row["graph"],
        parts=parts,
    )


def _packed(numbers: Sequence[int]) -> bytes | None:
    """Ascending numbers by their steps, which are mostly 1."""
    if not numbers:
        return None
    steps = array("I", (b - a for a, b in zip([0, *numbers], numbers, strict=False)))
    return zlib.compress(steps.tobytes())


def _unpacked(packed: bytes) -> list[int]:
    steps = array("I")
    steps.frombytes(zlib.decompress(packed))
    return list(accumulate(steps))
