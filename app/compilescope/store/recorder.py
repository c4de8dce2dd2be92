"""The one thread that writes the history."""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence

from compilescope.store.database import Database, is_damage
from compilescope.store.session import BEAT_S, Session

COMMIT_S = 0.1
RETRY_S = 2.0
WAITING_BYTES = 64 * 2**20

Operation = Callable[[sqlite3.Connection], None]
Lines = tuple[str, Sequence[str]]


class Recorder:
    """Writes what is put, in order, every 100 ms in one transaction.

    `put`, `submit` and `flush` are safe from any thread; the database's writing side belongs to the recorder's own.
    While nothing can be written (a full disk, a lock), `problem` says so, and what waits is tried again; beyond
    64 MiB the lines of events are let go, never the operations.
    """

    def __init__(self, database: Database, session: Session) -> None:
        self._database = database
        self._session = session
        self._items: deque[Operation | Lines] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._submitted = 0
        self._written = 0
        self._closing = False
        self._hurry = False
        self._next_beat = 0.0
        self._reason = ""
        self.problem = ""
        self.lost_lines = 0
        self.rejected: list[str] = []
        self._thread = threading.Thread(target=self._work, name="history-writer", daemon=True)
        self._thread.start()

    def put(self, run_id: str, lines: Sequence[str]) -> None:
        """Queue event lines of a run."""
        if not lines:
            return
        size = sum(map(len, lines))
        with self._changed:
            if self._waiting_bytes + size > WAITING_BYTES:
                self.lost_lines += len(lines)
                return
            self._waiting_bytes += size
            self._add((run_id, lines))

    def submit(self, operation: Operation) -> None:
        """Queue a change; it runs in the recorder's thread, inside its transaction."""
        with self._changed:
            self._add(operation)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until what was queued before is written; False where that did not happen in time."""
        deadline = time.monotonic() + timeout
        with self._changed:
            goal = self._submitted
            self._hurry = True
            self._changed.notify_all()
            while self._written < goal:
                rest = deadline - time.monotonic()
                if rest <= 0 or not self._thread.is_alive():
                    return False
                self._changed.wait(rest)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Write what is left, then end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)
        if self._items:
            self.problem = (
                f"The history could not be written to the end ({self._reason}): it has only a part of what ran last."
            )

    def _add(self, item: Operation | Lines) -> None:
        self._items.append(item)
        self._submitted += 1
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._closing, timeout=BEAT_S)
                # what comes within a moment is written together, unless someone waits for it
                self._changed.wait_for(lambda: self._hurry or self._closing, timeout=COMMIT_S)
                self._hurry = False
                closing = self._closing
                batch = list(self._items)
            written = self._write(batch)
            if closing and (not written or not self._items):
                return
            if not written:
                time.sleep(RETRY_S)

    def _write(self, batch: list[Operation | Lines]) -> bool:
        try:
            with self._database.writing() as connection:
                self._beat(connection)
                for item in merged(batch):
                    self._apply(connection, item)
        except sqlite3.Error as error:
            self.problem, self._reason = _sentence(error), str(error)
            self._next_beat = 0.0
            if isinstance(error, sqlite3.OperationalError):
                return False
        else:
            self.problem = ""
        with self._changed:
            for _ in batch:
                item = self._items.popleft()
                self._waiting_bytes -= 0 if callable(item) else sum(map(len, item[1]))
            self._written += len(batch)
            self._changed.notify_all()
        return True

    def _beat(self, connection: sqlite3.Connection) -> None:
        if time.monotonic() >= self._next_beat:
            self._session.beat(connection)
            self._next_beat = time.monotonic() + BEAT_S

    def _apply(self, connection: sqlite3.Connection, item: Operation | Lines) -> None:
        if callable(item):
            self._operate(connection, item)
            return
        run_id, lines = item
        # a run that was deleted meanwhile takes nothing any more
        connection.execute(
            "INSERT INTO events (run_id, lines) SELECT id, ? FROM runs WHERE id = ?", ("\n".join(lines), run_id)
        )

    def _operate(self, connection: sqlite3.Connection, operation: Operation) -> None:
        connection.execute("SAVEPOINT operation")
        try:
            operation(connection)
        except sqlite3.IntegrityError as error:
            # one bad change must not take its neighbours in the transaction with it
            connection.execute("ROLLBACK TO operation")
            self.rejected.append(str(error))
        connection.execute("RELEASE operation")


def merged(batch: Sequence[Operation | Lines]) -> list[Operation | Lines]:
    """The same items, with neighbouring lines of one run put together."""
    result: list[Operation | Lines] = []
    for item in batch:
        last = result[-1] if result else None
        if not callable(item) and last is not None and not callable(last) and last[0] == item[0]:
            result[-1] = (item[0], [*last[1], *item[1]])
        else:
            result.append(item)
    return result


def seal(connection: sqlite3.Connection, run_id: str) -> None:
    """Turn a run's rows of events into one compressed recording."""
    rows = connection.execute("SELECT lines FROM events WHERE run_id = ? ORDER BY number", (run_id,)).fetchall()
    text = "\n".join(row[0] for row in rows)
    connection.execute(
        "INSERT OR REPLACE INTO recordings (run_id, lines) SELECT id, ? FROM runs WHERE id = ?",
        (zlib.compress(text.encode(), 6), run_id),
    )
    connection.execute("DELETE FROM events WHERE run_id = ?", (run_id,))


def recorded_lines(connection: sqlite3.Connection, run_id: str) -> list[str]:
    """A run's event lines, whether it has ended or not."""
    row = connection.execute("SELECT lines FROM recordings WHERE run_id = ?", (run_id,)).fetchone()
    kept = zlib.decompress(row[0]).decode() if row else ""
    rows = connection.execute("SELECT lines FROM events WHERE run_id = ? ORDER BY number", (run_id,)).fetchall()
    return [line for text in (kept, *(row[0] for row in rows)) for line in text.split("\n") if line]


def _sentence(error: sqlite3.Error) -> str:
    if is_damage(error):
        return f"The history has been damaged while it was in use ({error}). A restart sets it aside and begins anew."
    return f"The history cannot be written just now ({error}). Runs go on; what they tell is kept in memory meanwhile."
