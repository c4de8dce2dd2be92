"""What a run is doing, on stderr: each stage on a terminal, a line a run elsewhere."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from compilescope.domain import units, words
from compilescope.domain.run import Run
from compilescope.domain.standing import standing

LAST_LINES = 10
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\a\x1b]*(\a|\x1b\\))")


@dataclass(kw_only=True)
class _Told:
    """What has been said of a run that goes on."""

    number: int
    stages: int = 0
    began: float = field(default_factory=time.monotonic)
    stage_began: float = field(default_factory=time.monotonic)


class Progress:
    """Tells the runs of one comparison, of which several may go on at once. Owned by the main thread."""

    def __init__(self, runs: int, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty()
        self._runs = runs
        self._going: dict[str, _Told] = {}
        self._has_open_line = False

    def begin(self, number: int, run: Run) -> None:
        self._going[run.id] = _Told(number=number)
        self._line(f"[{number}/{self._runs}] {run.label}")

    def begin_play_off(self, run: Run) -> None:
        self._going[run.id] = _Told(number=0)
        self._line(run.label)

    def show(self, run: Run) -> None:
        """Tell the stages that ended since the last time, and on a terminal the one that is on."""
        told = self._going.get(run.id)
        if not self._is_live or told is None:
            return
        rows = [(process.start, row) for process in run.processes for row in process.stages]
        while told.stages < len(rows) and rows[told.stages][1].duration_s is not None:
            start, row = rows[told.stages]
            told.stages += 1
            told.stage_began = time.monotonic()
            if row.name != "done":
                self._line(f"{self._mark(told)}{start:5} {row.name:10} {units.duration(row.duration_s)}")
        # with several at once, one line could not say what each is doing
        if told.stages < len(rows) and not run.is_over and len(self._going) == 1:
            start, row = rows[told.stages]
            self._open_line(f"  {start:5} {row.name:10} … {time.monotonic() - told.stage_began:.0f} s")

    def end(self, run: Run) -> None:
        self.show(run)
        told = self._going.get(run.id)
        if told is None:  # stopped while it waited
            self._line(f"  {run.label}: {standing(run, None)}")
            return
        seconds = units.duration(time.monotonic() - told.began)
        mark = self._mark(told)
        self._line(f"{mark}{words.OUTCOMES.get(run.outcome or '', 'ended')} after {seconds}")
        if run.ended and run.outcome in ("failed", "crashed", "timed_out"):
            for line in run.ended.last_lines[-LAST_LINES:]:
                self._line(f"{mark}| {line}")
        self._going.pop(run.id, None)

    def _mark(self, told: _Told) -> str:
        """Which run a line is about, where several go on."""
        return f"  [{told.number}] " if len(self._going) > 1 else "  "

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
