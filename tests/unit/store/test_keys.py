"""Keys of every stored run explain a miss, however long ago they were stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stories import recorded_run

from compilescope.domain.cachekeys import Component
from compilescope.domain.cacheledger import lookups
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.keyhistory import Explanation, Sources, StoredKey, explain, words
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload
from compilescope.store import keys
from compilescope.store.database import SCHEMA_1
from compilescope.store.history import History
from compilescope.store.records import StoredRequest

Opener = Callable[[], History]
SCRIPT = "/home/user/models/model.py"


def store(history: History, trace: str, name: str = "old") -> Run:
    """A run whose trace was recorded, as a comparison of its own."""
    run = recorded_run(trace, run_id=f"{name}-run")
    request = StoredRequest(id=run.id, config=Config(), workload=Workload(script=SCRIPT))
    history.start_comparison(Comparison(id=name, created=1.0, runs=[run]), [request])
    history.start_run(run.id)
    history.finish_run(run)
    history.flush()
    return run


def explained(history: History, trace: str) -> tuple[Explanation, str]:
    """What is said of the first lookup of a run that has just been made."""
    run = recorded_run(trace, run_id="new")
    row = lookups(run)[0]
    found = explain([run], run, row, Sources(history=history))
    return found, words(row.event, found)


def test_that_a_miss_is_explained_by_a_key_that_an_earlier_start_stored(open_history: Opener) -> None:
    first = open_history()
    store(first, "mlp_max_autotune", "far")
    store(first, "mlp_default", "near")
    first.close()

    found, sentence = explained(open_history(), "mlp_reduce_overhead")

    assert found.nearest and found.nearest.origin.startswith("default of model.py (")
    assert "•  inductor config triton.cudagraphs: False → True" in sentence


def test_that_a_key_that_an_earlier_start_stored_is_known_again(open_history: Opener) -> None:
    history = open_history()
    store(history, "mlp_default")

    found, sentence = explained(history, "mlp_default")

    assert found.is_same
    assert "had the same key: with one cache for both, this would have been a hit" in sentence


def test_that_keys_of_a_deleted_comparison_are_not_compared_and_purged_with_it(
    open_history: Opener, tmp_path: Path
) -> None:
    history = open_history()
    store(history, "mlp_default")

    history.delete("old")
    history.flush()
    assert explained(history, "mlp_reduce_overhead")[0].nearest is None
    history.purge(older_than_s=-1.0)
    history.flush()

    with sqlite3.connect(tmp_path / "history.sqlite3") as connection:
        left = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("cache_keys", "key_parts")
        ]
    connection.close()
    assert left == [0, 0]


def test_that_a_later_run_explains_nothing(open_history: Opener) -> None:
    history = open_history()
    first = store(history, "mlp_default", "first")
    store(history, "mlp_reduce_overhead", "second")

    row = lookups(first)[0]

    assert explain([first], first, row, Sources(history=history)).nearest is None


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.executescript(SCHEMA_1 + keys.SCHEMA)
    return connection


def key(name: str, *parts: str, graph: str = "0/0", script: str = SCRIPT) -> StoredKey:
    components = tuple(Component(digest=part, name=part[0], value=part) for part in ("common", *parts))
    return StoredKey(cache="fx_graph", key=name, origin="", script=script, graph=graph, start="cold", parts=components)


def insert(connection: sqlite3.Connection, number: int, stored: StoredKey) -> None:
    name = f"run{number}"
    connection.execute(
        "INSERT INTO comparisons (id, created, title, script) VALUES (?, 1, 'm', ?)", (name, stored.script)
    )
    connection.execute(
        "INSERT INTO runs (id, comparison_id, position, label, config, workload, request, began) "
        "VALUES (?, ?, 0, 'default', '', '', '', ?)", (name, name, number),
    )  # fmt: skip
    keys.insert_keys(connection, name, [stored])


def test_that_the_same_graph_of_the_same_script_comes_before_keys_that_are_nearer(
    connection: sqlite3.Connection,
) -> None:
    asked = key("asked", "a1", "b1", "c1")
    insert(connection, 1, key("other script", "a1", "b1", "c1", script="/other.py"))
    found = keys.nearest_key(connection, asked)
    assert found and found.key == "other script"

    insert(connection, 2, key("other graph", "a1", "b1", "c2", graph="1/0"))
    found = keys.nearest_key(connection, asked)
    assert found and found.key == "other graph"

    insert(connection, 3, key("far", "a2", "b2", "c2"))
    insert(connection, 4, key("near", "a1", "b2", "c2"))
    insert(connection, 5, key("far again", "a2", "b2", "c2"))
    found = keys.nearest_key(connection, asked)
    assert found and found.key == "near"
    assert {part.digest for part in found.parts} == {"common", "a1", "b2", "c2"}


def test_that_a_history_of_the_first_version_opens(open_history: Opener, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "history.sqlite3") as connection:
        connection.executescript(SCHEMA_1)
        connection.execute("INSERT INTO comparisons (id, created, title, script) VALUES ('old', 1, 'model.py', 'm')")
        connection.execute("PRAGMA user_version = 1")
    connection.close()

    history = open_history()

    assert history.notice == ""
    assert [row.id for row in history.comparisons()] == ["old"]
    store(history, "mlp_default", "new")
    assert explained(history, "mlp_default")[0].is_same
