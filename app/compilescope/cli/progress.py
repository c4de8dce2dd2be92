"""What a run is doing, on stderr: each stage on a terminal, a line a run elsewhere."""

from __future__ import annotations

import re
import sys
import time
from typing import TextIO

from compilescope.domain import units
from compilescope.domain.run import Run

LAST_LINES = 10
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\a\x1b]*(\a|\x1b\\))")


class Progress:
    """Tells the runs of one comparison. Owned by the main thread."""

    def __init__(self, runs: int, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty()
        self._runs = runs
        self._told = 0
        self._has_open_line = False
        self._began = time.monotonic()
        self._stage_began = self._began

    def begin(self, number: int, run: Run) -> None:
        self._told = 0
        self._began = self._stage_began = time.monotonic()
        self._line(f"[{number}/{self._runs}] {run.label}")

    def show(self, run: Run) -> None:
        """Tell the stages that ended since the last time, and on a terminal the one that is on."""
        if not self._is_live:
            return
        rows = [(process.start, row) for process in run.processes for row in process.stages]
        while self._told < len(rows) and rows[self._told][1].duration_s is not None:
            start, row = rows[self._told]
            self._told += 1
            self._stage_began = time.monotonic()
            if row.name != "done":
                self._line(f"  {start:5} {row.name:10} {units.duration(row.duration_s)}")
        if self._told < len(rows) and not run.is_over:
            start, row = rows[self._told]
            self._open_line(f"  {start:5} {row.name:10} … {time.monotonic() - self._stage_began:.0f} s")

    def end(self, run: Run) -> None:
        self.show(run)
        seconds = units.duration(time.monotonic() - self._began)
        self._line(f"  {(run.outcome or '').replace('_', ' ')} after {seconds}")
        if run.ended and run.outcome in ("failed", "crashed", "timed_out"):
            for line in run.ended.last_lines[-LAST_LINES:]:
                self._line(f"  | {line}")

    def say(self, text: str) -> None:
        self._line(text)

    def _line(self, text: str) -> None:
        self._write(f"{self._clear()}{_printable(text)}\n")
        self._has_open_line = False

    def _open_line(self, text: str) -> None:
        self._write(f"{self._clear()}{_printable(text)}")
        self._has_open_line = True

    def _clear(self) -> str:
        return "\r\x1b[K" if self._has_open_line else ""

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()


def _printable(text: str) -> str:
    """Foreign text without its colours, and unable to move the cursor."""
    plain = ESCAPES.sub("", text.expandtabs(4))
    return "".join(character if character.isprintable() else "\ufffd" for character in plain)
