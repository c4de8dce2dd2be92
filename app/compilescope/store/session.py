"""Which instance of the application a run belongs to, and whether that one still lives."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import time
import uuid
from dataclasses import dataclass, field

BEAT_S = 5.0
SILENT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """One running instance."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)

    def beat(self, connection: sqlite3.Connection) -> None:
        """Say that this instance lives; the newest word counts."""
        connection.execute(
            "INSERT INTO sessions (id, host, pid, seen) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET seen = excluded.seen",
            (self.id, self.host, self.pid, time.time()),
        )

    def end(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM sessions WHERE id = ?", (self.id,))

    def others(self, connection: sqlite3.Connection) -> set[str]:
        """The instances besides this one that live."""
        rows = connection.execute("SELECT id, host, pid, seen FROM sessions WHERE id != ?", (self.id,)).fetchall()
        return {row["id"] for row in rows if self._lives(row)}

    def _lives(self, row: sqlite3.Row) -> bool:
        if row["host"] == self.host and not _process_exists(row["pid"]):
            return False
        # the number may have gone to another process since
        return bool(time.time() - row["seen"] < SILENT_S)


def _process_exists(pid: int) -> bool:
    if sys.platform == "win32":
        # signal 0 would end the process there, so its silence has to tell
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
