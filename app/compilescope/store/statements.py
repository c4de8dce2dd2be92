"""The changes that the history makes, as SQL."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilescope.domain import events as e
from compilescope.domain.keyhistory import StoredKey, stored_keys, with_parts
from compilescope.store import keys
from compilescope.store.exchange import Archive
from compilescope.store.recorder import recorded_lines, seal
from compilescope.store.records import Request, folded, request_json, stored_play_offs, stored_request, summary_of
from compilescope.store.session import Session

SOURCE_BYTES = 2**20

INTERRUPTED = e.Ended(
    outcome="stopped",
    error=e.RunError(
        stage="",
        type="Interrupted",
        message="CompileScope ended while this run was going on.",
        hint="Resume the comparison to run it again; what it told until then is kept.",
    ),
)

LIST = """
SELECT id, created, title, script, tags, notes, runs, finished, failed, unfinished, best_label, best_speedup,
    torch, device
FROM comparisons WHERE deleted_at IS NULL {search} ORDER BY created DESC, id LIMIT ?
"""

RUNS = """
SELECT r.id, r.comparison_id, c.title, r.label, r.config, r.workload, r.state, r.outcome, r.began, r.ended,
    r.eager_s, r.compiled_s, r.speedup, r.speedup_low, r.speedup_high, r.verdict, r.torch, r.device
FROM runs AS r JOIN comparisons AS c ON c.id = r.comparison_id
WHERE {where} ORDER BY c.created DESC, c.id, r.position LIMIT ?
"""

UNFINISHED = """
SELECT r.*, c.title, c.script FROM runs AS r JOIN comparisons AS c ON c.id = r.comparison_id
WHERE c.deleted_at IS NULL AND r.state = 'interrupted' ORDER BY c.created DESC, c.id, r.position
"""

SUMMARY = """
SELECT count(*) AS runs, coalesce(sum(outcome = 'finished'), 0) AS finished,
    coalesce(sum(outcome IN ('failed', 'crashed', 'timed_out')), 0) AS failed,
    coalesce(sum(state != 'over'), 0) AS unfinished,
    -- with one max(), the column beside it comes from the row that holds the maximum
    max(CASE WHEN verdict = 'faster' THEN speedup END) AS best_speedup, label AS best_label,
    (SELECT torch FROM runs WHERE comparison_id = ?1 AND torch IS NOT NULL ORDER BY position LIMIT 1) AS torch,
    (SELECT device FROM runs WHERE comparison_id = ?1 AND device IS NOT NULL ORDER BY position LIMIT 1) AS device
FROM runs WHERE comparison_id = ?1
"""


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, object]) -> None:
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def update(connection: sqlite3.Connection, table: str, row_id: str, values: Mapping[str, object]) -> None:
    assignments = ", ".join(f"{name} = ?" for name in values)
    connection.execute(f"UPDATE {table} SET {assignments} WHERE id = ?", (*values.values(), row_id))


def run_values(comparison_id: str, request: Request, label: str, session: Session) -> dict[str, Any]:
    """The row of a run that has not begun."""
    if request.config is None or request.workload is None:
        raise ValueError("only runs that compile something belong in the history")
    return {
        "id": request.id,
        "comparison_id": comparison_id,
        "position": 0,
        "session_id": session.id,
        "label": label or request.config.label,
        "config": json.dumps(request.config.to_json()),
        "workload": json.dumps(request.workload.to_json()),
        "request": request_json(request),
    }


def insert_comparison(
    connection: sqlite3.Connection, row: Mapping[str, object], runs: Sequence[Mapping[str, object]], source: str | None
) -> None:
    insert(connection, "comparisons", row)
    if source is not None:
        insert(connection, "sources", {"comparison_id": row["id"], "text": source})
    for position, values in enumerate(runs):
        insert(connection, "runs", dict(values) | {"position": position})
    summarise(connection, str(row["id"]))


def append_run(connection: sqlite3.Connection, values: Mapping[str, object]) -> None:
    comparison_id = str(values["comparison_id"])
    position = connection.execute(
        "SELECT coalesce(max(position), -1) + 1 FROM runs WHERE comparison_id = ?", (comparison_id,)
    ).fetchone()[0]
    insert(connection, "runs", dict(values) | {"position": position})
    summarise(connection, comparison_id)


def arrange(connection: sqlite3.Connection, comparison_id: str, run_ids: Sequence[str]) -> None:
    """Number the runs in this order; others of the comparison keep theirs."""
    places = [(position, run_id, comparison_id) for position, run_id in enumerate(run_ids)]
    connection.executemany("UPDATE runs SET position = ? WHERE id = ? AND comparison_id = ?", places)


def begin_run(connection: sqlite3.Connection, run_id: str, session_id: str, began: float) -> None:
    """Note that a run goes on, without what an earlier attempt left."""
    connection.execute("DELETE FROM events WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM recordings WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM cache_keys WHERE run_id = ?", (run_id,))
    values = {"state": "running", "outcome": None, "began": began, "ended": None, "session_id": session_id}
    update(connection, "runs", run_id, values)
    _summarise_owner(connection, run_id)


def end_run(
    connection: sqlite3.Connection, run_id: str, values: Mapping[str, object], found: Sequence[StoredKey]
) -> None:
    """Fill a run's row, keep the cache keys that it asked for, and seal its recording."""
    update(connection, "runs", run_id, values)
    keys.insert_keys(connection, run_id, found)
    seal(connection, run_id)
    _summarise_owner(connection, run_id)


def _summarise_owner(connection: sqlite3.Connection, run_id: str) -> None:
    owner = connection.execute("SELECT comparison_id FROM runs WHERE id = ?", (run_id,)).fetchone()
    if owner:
        summarise(connection, owner[0])


def dismiss_unfinished(connection: sqlite3.Connection, comparison_id: str) -> None:
    connection.execute(
        "UPDATE runs SET state = 'over' WHERE comparison_id = ? AND state = 'interrupted'", (comparison_id,)
    )
    summarise(connection, comparison_id)


def purge(connection: sqlite3.Connection, before: float) -> None:
    if connection.execute("DELETE FROM comparisons WHERE deleted_at < ?", (before,)).rowcount:
        keys.drop_unused_parts(connection)


def summarise(connection: sqlite3.Connection, comparison_id: str) -> None:
    """Write anew what the list shows of a comparison's runs, and the text that the search looks in."""
    row = connection.execute(
        "SELECT title, script, tags, notes FROM comparisons WHERE id = ?", (comparison_id,)
    ).fetchone()
    if row is None:
        return
    summary = dict(connection.execute(SUMMARY, (comparison_id,)).fetchone())
    if summary["best_speedup"] is None:
        summary["best_label"] = ""
    runs = connection.execute(
        "SELECT DISTINCT label, verdict, outcome, torch, device FROM runs WHERE comparison_id = ?", (comparison_id,)
    ).fetchall()
    words = [row["title"], row["script"], *json.loads(row["tags"]), row["notes"]]
    words += sorted({str(value) for run in runs for value in run if value is not None})
    update(connection, "comparisons", comparison_id, summary | {"words": "\n".join(words).casefold()})


def mark_interrupted(connection: sqlite3.Connection, living: Set[str], folder: Path) -> None:
    """Close the runs of instances that are gone: what they told is kept, and they can be run again."""
    rows = connection.execute("SELECT * FROM runs WHERE state IN ('queued', 'running')").fetchall()
    for row in rows:
        if row["session_id"] in living:
            continue
        if row["state"] == "running":
            _close(connection, row, folder / row["id"])
        else:
            update(connection, "runs", row["id"], {"state": "interrupted"})
            summarise(connection, row["comparison_id"])
    gone = [row[0] for row in connection.execute("SELECT id FROM sessions").fetchall() if row[0] not in living]
    connection.executemany("DELETE FROM sessions WHERE id = ?", [(session,) for session in gone])


def _close(connection: sqlite3.Connection, row: sqlite3.Row, folder: Path) -> None:
    run = folded(stored_request(row), row["label"], recorded_lines(connection, row["id"]), folder)
    # one that had told its end, and was only not sealed yet, is not interrupted
    state = "over" if run.is_over else "interrupted"
    if not run.is_over:
        last_at = run.processes[-1].last_at if run.processes else 0.0
        ended = replace(INTERRUPTED, at=last_at)
        run.apply(ended)
        insert(connection, "events", {"run_id": row["id"], "lines": e.encode(ended)})
    end_run(connection, row["id"], summary_of(run) | {"state": state}, with_parts(stored_keys(run)))


def insert_archive(
    connection: sqlite3.Connection, comparison_id: str, archive: Archive, found: Mapping[str, Sequence[StoredKey]]
) -> None:
    """Add an imported comparison. `found`: the cache keys of its runs, under their ids here, in their order."""
    ids = {str(run.values["id"]): run_id for run, run_id in zip(archive.runs, found, strict=True)}
    play_offs = [row.renamed(ids).to_json() for row in stored_play_offs(archive.comparison["play_offs"])]
    own = {"id": comparison_id, "play_offs": json.dumps(play_offs)}
    insert(connection, "comparisons", dict(archive.comparison) | own)
    if archive.source is not None:
        insert(connection, "sources", {"comparison_id": comparison_id, "text": archive.source})
    for position, (run, run_id) in enumerate(zip(archive.runs, found, strict=True)):
        values = {"id": run_id, "comparison_id": comparison_id, "position": position, "state": "over"}
        insert(connection, "runs", dict(run.values) | values)
        blob = zlib.compress("\n".join(run.lines).encode(), 6)
        insert(connection, "recordings", {"run_id": run_id, "lines": blob})
        keys.insert_keys(connection, run_id, found[run_id])
    summarise(connection, comparison_id)


def source_of(script: str) -> str | None:
    """The script's text, where it is a text file of a sane size."""
    try:
        with Path(script).open("rb") as file:
            content = file.read(SOURCE_BYTES + 1)
    except OSError:
        return None
    return content.decode("utf-8", "replace") if len(content) <= SOURCE_BYTES else None
