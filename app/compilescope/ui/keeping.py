"""The history behind the window: what has run is stored, comes back, and can be resumed after a crash."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from compilescope.domain import units
from compilescope.domain.comparison import Comparison
from compilescope.domain.run import Run
from compilescope.domain.workload import Measurement
from compilescope.engine.request import RunRequest, default_python
from compilescope.recording import RecordedFeed, sweep_runs
from compilescope.ui.background import Background
from compilescope.ui.findings import Findings
from compilescope.ui.selection import selection_of
from compilescope.ui.session import Session
from compilescope.ui.state import BUSY, AppState

if TYPE_CHECKING:
    from compilescope.store.history import History
    from compilescope.store.records import ComparisonRow, StoredRequest, Unfinished

TROUBLE_MS = 2_000
# what is deleted within so long after the last time is undone with it
UNDO_TOGETHER_S = 30.0
FILES = "Comparison (*.compilescope)"
SUFFIX = ".compilescope"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A comparison out of the history, with what belongs to it."""

    comparison: Comparison
    source: str | None
    measurement: Measurement | None
    log_tails: Mapping[str, str]  # run id → the last that it wrote


class HistoryCommands(QObject):
    """What can be done with stored comparisons. Reading and writing them happens in a thread."""

    said = Signal(str)
    failed = Signal(str, str)  # sentence, hint
    informed = Signal(str)
    asked = Signal(str, object)  # sentence, answers: (what the button says, what it does), …
    changed = Signal()  # what the list shows
    opened = Signal(object)  # Stored
    compared = Signal(object)  # tuple[Stored, Stored]

    def __init__(self, feed: RecordedFeed, state: AppState, findings: Findings, session: Session) -> None:
        super().__init__()
        self._feed = feed
        self._state = state
        self._session = session
        self._trouble = ""
        self._deleted: list[ComparisonRow] = []
        self._deleted_at = 0.0
        self._background = Background("history", self)
        self._background.failed.connect(self.failed)
        self._timer = QTimer(self)
        self._timer.setInterval(TROUBLE_MS)
        self._timer.timeout.connect(self._look_for_trouble)
        findings.judged.connect(self._finish)
        state.script_changed.connect(self._look_back)
        self.changed.connect(self._look_back)

    @property
    def history(self) -> History:
        history = self._feed.history
        assert history is not None, "the window always keeps what runs"
        return history

    def start(self) -> None:
        """Open the history; say what is wrong with its file, and offer what was interrupted."""
        self._timer.start()
        self.history.purge()
        self._background.do(self._sweep)
        if self.history.notice:
            self.failed.emit(self.history.notice, "")
        self._look_back()
        unfinished = self.history.unfinished()
        if unfinished:
            self._offer(unfinished[0])

    def close(self) -> None:
        """Store what is over; what goes on will be offered again at the next start. Call before the engine ends."""
        self._timer.stop()
        self._background.close()
        for run in self._state.runs:
            if run.is_over:
                self._feed.finish(run)
        self._feed.let_go()

    def open(self, comparison_id: str) -> None:
        """Show a stored comparison in the window, as it was."""
        if self._state.is_busy:
            self.failed.emit(BUSY, "Stop it first (Esc), then open another one.")
            return
        self._background.do(partial(self._load, comparison_id), self._show)

    def compare(self, comparison_ids: Sequence[str]) -> None:
        """Set two stored comparisons side by side."""
        first, second = comparison_ids
        self._background.do(lambda: (self._load(first), self._load(second)), self.compared.emit)

    def resume(self, unfinished: Unfinished) -> None:
        """Run what an interrupted comparison has left to do; what was measured stays."""
        if self._state.is_busy:
            self.failed.emit(BUSY, "Resume the other one from the history when it is over.")
            return
        self._background.do(partial(self._load, unfinished.comparison_id), partial(self._resume, unfinished))

    def resume_id(self, comparison_id: str) -> None:
        found = next((one for one in self.history.unfinished() if one.comparison_id == comparison_id), None)
        if found:
            self.resume(found)

    def delete(self, rows: Sequence[ComparisonRow]) -> None:
        """Take comparisons off the list; the message that says so can undo it, with what was deleted just before."""
        shown = self._state.comparison
        if self._state.is_busy and shown is not None and any(row.id == shown.id for row in rows):
            self.failed.emit(BUSY, "Stop it first (Esc), then delete it.")
            return
        for row in rows:
            self.history.delete(row.id)
        self._announce()
        now = time.monotonic()
        self._deleted = [*(self._deleted if now - self._deleted_at < UNDO_TOGETHER_S else ()), *rows]
        self._deleted_at = now
        whole = list(self._deleted)
        what = whole[0].title if len(whole) == 1 else units.plural(len(whole), "comparison")
        self.asked.emit(f"Deleted: {what}.", (("Undo", partial(self._undo_delete, whole)),))

    def export(self, row: ComparisonRow, window: QWidget) -> None:
        """Write a comparison as one file that can be sent and imported."""
        start = str(Path.home() / f"{Path(row.title).stem}-{row.id[:8]}{SUFFIX}")
        name, _ = QFileDialog.getSaveFileName(window, "Export the comparison; it holds the script", start, FILES)
        if name:
            path = Path(name) if Path(name).suffix else Path(f"{name}{SUFFIX}")
            done = partial(self.said.emit, f"Written: {path}")
            self._background.do(partial(self.history.export, row.id, path), lambda _: done())

    def import_(self, window: QWidget) -> None:
        kinds = f"{FILES};;All files (*)"
        name, _ = QFileDialog.getOpenFileName(window, "Import a comparison", str(Path.home()), kinds)
        if name:
            self.import_file(Path(name))

    def import_file(self, path: Path) -> None:
        """Add a comparison from a file to the list. Nothing in it is executed."""
        self._background.do(partial(self.history.import_, path), lambda _: self._imported(path))

    def edit(self, row: ComparisonRow, *, tags: Sequence[str], notes: str) -> None:
        if tuple(tags) != row.tags:
            self.history.set_tags(row.id, tags)
        if notes != row.notes:
            self.history.set_notes(row.id, notes)
        self._announce()

    def _imported(self, path: Path) -> None:
        self.said.emit(f"Imported: {path.name}")
        self._announce()

    def _undo_delete(self, rows: Sequence[ComparisonRow]) -> None:
        self._deleted = []
        for row in rows:
            self.history.undo_delete(row.id)
        self._announce()

    def _announce(self) -> None:
        """Changes are queued: the list reads what the recorder has written."""
        self._background.do(self.history.flush, lambda _: self.changed.emit())

    def _sweep(self) -> None:
        """In the thread: the files of runs that nobody can open any more."""
        if self.history.flush():
            sweep_runs(self.history)

    def _offer(self, unfinished: Unfinished) -> None:
        left = units.plural(len(unfinished.requests), "configuration")
        self.asked.emit(
            f"A comparison was interrupted: {unfinished.title}, {left} left to run.",
            (("Resume", partial(self.resume, unfinished)), ("Dismiss", partial(self._dismiss, unfinished))),
        )

    def _dismiss(self, unfinished: Unfinished) -> None:
        self.history.dismiss_unfinished(unfinished.comparison_id)
        self._announce()

    def _look_back(self) -> None:
        """How long the open script took before, for the forecast."""
        script = self._state.script
        if script is not None and self._feed.is_history_open:
            self._background.do(partial(self.history.earlier, str(script)), partial(self._state.set_earlier, script))

    def _load(self, comparison_id: str) -> Stored:
        """In the thread."""
        history = self.history
        comparison = history.load(comparison_id)
        return Stored(
            comparison=comparison,
            log_tails={run.id: history.log_tail(run.id) for run in comparison.runs},
            source=history.source(comparison_id),
            measurement=history.measurement(comparison_id),
        )

    def _show(self, stored: Stored) -> None:
        comparison = stored.comparison
        if not comparison.runs:
            self.failed.emit("This comparison has no run that told anything.", "Resume it, or delete it.")
            return
        self._show_whole(comparison, stored)
        self.opened.emit(stored)

    def _show_whole(self, comparison: Comparison, stored: Stored) -> None:
        """With the options that made it: Run then measures what is shown, and nothing that was ticked before."""
        self._state.show_stored(comparison, source=stored.source, measurement=stored.measurement)
        self._state.set_selection(selection_of(comparison.runs, stored.measurement, self._state.selection))

    def _resume(self, unfinished: Unfinished, stored: Stored) -> None:
        again = {request.id for request in unfinished.requests}
        runs = [run for run in stored.comparison.runs if run.id not in again]
        runs += [Run(row.id, config=row.config, workload=row.workload, label=row.label) for row in unfinished.requests]
        comparison = Comparison(
            id=stored.comparison.id,
            created=stored.comparison.created,
            runs=runs,
            noise_floor=stored.comparison.noise_floor,
            play_offs=stored.comparison.play_offs,
        )
        self._show_whole(comparison, stored)
        self._session.resume([_request(row) for row in unfinished.requests])
        self.opened.emit(stored)

    def _finish(self, run: Run) -> None:
        """A run is over and has been judged: its figures go into the list."""
        if self._feed.keeps(run.id):
            self._background.do(partial(self._feed.finish, run), lambda _: self._announce())

    def _look_for_trouble(self) -> None:
        trouble = self.history.problem
        if trouble and trouble != self._trouble:
            self.failed.emit(trouble, "")
        elif self._trouble and not trouble:
            self.informed.emit("The history can be written again. Nothing was lost.")
        self._trouble = trouble


def _request(stored: StoredRequest) -> RunRequest:
    return RunRequest(
        id=stored.id,
        config=stored.config,
        workload=stored.workload,
        measurement=stored.measurement,
        timeout_s=stored.timeout_s,
        cache="mine" if stored.cache == "mine" else "fresh",
        python=stored.python or default_python(),
        devices=stored.devices,
    )
