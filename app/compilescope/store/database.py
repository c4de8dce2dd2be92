"""The history's SQLite file: opened, migrated, and set aside where it is damaged."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from compilescope import paths
from compilescope.store import keys

FILE_NAME = "history.sqlite3"
OPEN_TIMEOUT_S = 1.0
BUSY_TIMEOUT_S = 5.0

SCHEMA_1 = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    seen REAL NOT NULL
);
CREATE TABLE comparisons (
    id TEXT PRIMARY KEY,
    created REAL NOT NULL,
    title TEXT NOT NULL,
    script TEXT NOT NULL,
    noise_floor REAL NOT NULL DEFAULT 0.005,
    tags TEXT NOT NULL DEFAULT '[]',
    notes TEXT NOT NULL DEFAULT '',
    words TEXT NOT NULL DEFAULT '',
    runs INTEGER NOT NULL DEFAULT 0,
    finished INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    unfinished INTEGER NOT NULL DEFAULT 0,
    best_label TEXT NOT NULL DEFAULT '',
    best_speedup REAL,
    torch TEXT,
    device TEXT,
    deleted_at REAL
);
CREATE TABLE sources (
    comparison_id TEXT PRIMARY KEY REFERENCES comparisons (id) ON DELETE CASCADE,
    text TEXT NOT NULL
);
CREATE INDEX comparisons_by_date ON comparisons (created DESC);
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    comparison_id TEXT NOT NULL REFERENCES comparisons (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    session_id TEXT,
    label TEXT NOT NULL,
    config TEXT NOT NULL,
    workload TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    outcome TEXT,
    began REAL,
    ended REAL,
    eager_s REAL,
    compiled_s REAL,
    speedup REAL,
    speedup_low REAL,
    speedup_high REAL,
    verdict TEXT,
    torch TEXT,
    device TEXT,
    log_tail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX runs_by_comparison ON runs (comparison_id, position);
CREATE INDEX runs_unfinished ON runs (state) WHERE state IN ('queued', 'running');
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    lines TEXT NOT NULL
);
CREATE INDEX events_by_run ON events (run_id, number);
CREATE TABLE recordings (
    run_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    lines BLOB NOT NULL
);
"""

SCHEMA_3 = "ALTER TABLE comparisons ADD COLUMN play_offs TEXT NOT NULL DEFAULT '[]'"


def _execute(script: str, connection: sqlite3.Connection) -> None:
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)


# migration i leads from version i to i + 1; a published one is never changed again
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    partial(_execute, SCHEMA_1),
    partial(_execute, keys.SCHEMA),
    partial(_execute, SCHEMA_3),
)


class NewerSchemaError(Exception):
    """The file was written by a later version of the application."""


class Database:
    """Two connections to one file: one to write, one to read, each used by one thread at a time.

    Where the file cannot be used, the history lives in memory until the application ends, and `problem` says why.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.problem = ""
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._writer = self._open(path)
        if self.path is None:
            self._reader, self._read_lock = self._writer, self._write_lock
        else:
            self._reader = _connect(self.path, BUSY_TIMEOUT_S)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock:
            yield self._reader

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # a full disk may have ended the transaction already
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if path is not None:
            try:
                return self._open_file(path)
            except NewerSchemaError:
                self.problem = (
                    f"The history {path} was written by a newer CompileScope. "
                    "It is left untouched; what runs now is kept only until you close the application."
                )
            except (sqlite3.OperationalError, OSError) as error:
                self.problem = (
                    f"The history {path} cannot be used ({error}). "
                    "What runs now is kept only until you close the application."
                )
        self.path = None
        connection = _connect(":memory:", BUSY_TIMEOUT_S)
        _migrate(connection)
        return connection

    def _open_file(self, path: Path) -> sqlite3.Connection:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _prepared(path)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            aside = set_aside(path)
            self.problem = f"The history was damaged ({error}). It is kept as {aside}, and a new one has been started."
            return _prepared(path)


def own_file() -> Path:
    """Where the user's history lies."""
    try:
        return paths.data() / FILE_NAME
    except OSError as error:
        # the folder cannot be made; the database says so in a sentence, and lives in memory
        return Path(error.filename or "") / FILE_NAME


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file itself is bad, rather than locked, full or unreachable."""
    # "not a database" and "malformed" come as the plain class; all else as one of its subclasses
    return type(error) is sqlite3.DatabaseError


def has_set_aside(path: Path) -> bool:
    """Whether a damaged file lies beside this one, to be mended some day."""
    return any(path.parent.glob(f"{path.stem}-damaged-*"))


def set_aside(path: Path) -> Path:
    """Rename a damaged file and what belongs to it; the new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    target = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.stem}-damaged-{stamp}-{number}{path.suffix}")
    for ending in ("", "-wal", "-shm"):
        part = Path(f"{path}{ending}")
        if part.exists():
            part.rename(f"{target}{ending}")
    return target


def _connect(target: Path | str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(target, timeout=timeout, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    # in WAL a killed process loses nothing by this; only a power cut can take the last moments
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _prepared(path: Path) -> sqlite3.Connection:
    connection = _connect(path, OPEN_TIMEOUT_S)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        _migrate(connection)
        # every page of the small tables is read once; the recordings are checked when they are opened
        connection.execute("SELECT count(words), max(length(notes)) FROM comparisons").fetchall()
        connection.execute("SELECT count(log_tail), max(length(request)) FROM runs").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # read again: another instance may have migrated while this one waited for the lock
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise NewerSchemaError
        for migrate in MIGRATIONS[version:]:
            migrate(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
