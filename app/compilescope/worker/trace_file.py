"""The trace file that a worker writes: torch's records as TORCH_TRACE writes them, so that other tools read it too."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilescope.domain.events import Cache, Event, Text, Warning


class TraceFile:
    """Appends records and knows where their payloads lie. Owned by one process: a fork must not write to it.

    Where it cannot be written any more, as on a full disk, it stays as it is and `problem` says why: a run without its
    texts is still a run.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = Path(path).open("wb", buffering=1 << 18)  # noqa: SIM115
        self._pid = os.getpid()
        self._offset = 0
        self._told = False
        self.problem = ""

    def write(self, header: str, metadata: Mapping[str, Any], payload: str | None) -> tuple[int, int]:
        """Append a record; offset and length of its payload's lines."""
        head = f"{header} {json.dumps(metadata, default=repr)}\n".encode("utf-8", "replace")
        body = b"" if payload is None else ("\t" + payload.replace("\n", "\n\t") + "\n").encode("utf-8", "replace")
        with self._caring():
            self._file.write(head)
            self._file.write(body)
        start = self._offset + len(head)
        self._offset = start + len(body)
        return start, max(len(body) - 1, 0)

    def flush(self) -> None:
        if os.getpid() == self._pid and not self._file.closed:
            with self._caring():
                self._file.flush()

    def close(self) -> None:
        if os.getpid() == self._pid:
            with self._caring():
                self._file.close()

    def readable(self, events: list[Event]) -> list[Event]:
        """The events without pointers to what is not in the file; the first time with a word on why."""
        if not self.problem:
            return events
        kept = [
            replace(event, components=None) if isinstance(event, Cache) else event
            for event in events
            if not isinstance(event, Text)
        ]
        told, self._told = self._told, True
        return kept if told else [*kept, self._warning()]

    def _warning(self) -> Warning:
        return Warning(
            code="trace",
            message=f"The trace could not be written any further ({self.problem}): later graphs and code are missing.",
            hint="Free some space where CompileScope keeps its data, then run again.",
        )

    @contextlib.contextmanager
    def _caring(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.problem = self.problem or error.strerror or str(error)


def header(created: float, path: str, line: int) -> str:
    """What stands before a record's JSON. `created` is Unix time."""
    return f"V{_stamp(int(created))}.{int(created % 1 * 1e6):06d} {os.getpid()} {_shortened(path)}:{line}]"


@functools.lru_cache(maxsize=4)
def _stamp(second: int) -> str:
    return time.strftime("%m%d %H:%M:%S", time.localtime(second))


@functools.lru_cache(maxsize=256)
def _shortened(path: str) -> str:
    """A module's path from the folder that it was imported from, as torch writes it."""
    roots = [root for root in sys.path if root and path.startswith(root.rstrip(os.sep) + os.sep)]
    return os.path.relpath(path, max(roots, key=len)) if roots else path
