"""Saved traces and exported timelines: what the File menu does with them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from compilescope.domain import units
from compilescope.domain.chrometrace import write_chrome_trace
from compilescope.domain.errors import AppError
from compilescope.report.trace_folder import WARNING, save_trace_folder
from compilescope.ui.state import BUSY, AppState

if TYPE_CHECKING:
    # the reader of traces is loaded when one is opened: the window opens without it
    from compilescope.domain.savedtraces import Progress, SavedTrace

TRACE_SUFFIXES = (".log", ".gz")
SCRIPT_SUFFIXES = (".py", ".pyw")
WANTED = "Drop a model script (.py), or a trace: a log that TORCH_TRACE wrote, or a folder of them."


def is_trace_path(path: Path) -> bool:
    """Whether a dropped path is meant as a trace and not as a script."""
    return path.is_dir() or path.suffix in TRACE_SUFFIXES


def refusal(path: Path) -> str:
    """Why a dropped file is neither a script nor a trace; empty where it may be either."""
    if is_trace_path(path) or path.suffix.lower() in SCRIPT_SUFFIXES:
        return ""
    return f"{path.name} is neither a model script nor a trace."


class TraceReader(QObject):
    """Reads a saved trace in a thread of its own; a newer one ends an older one."""

    progressed = Signal(str)
    opened = Signal(object)  # SavedTrace
    failed = Signal(str, str)  # sentence, hint
    _read = Signal(object, int)
    _refused = Signal(str, str, int)
    _told = Signal(str, int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._number = 0
        self._thread: threading.Thread | None = None
        self._read.connect(self._take)
        self._refused.connect(self._take_refusal)
        self._told.connect(self._take_progress)

    @property
    def is_reading(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def open(self, path: Path) -> None:
        self._number += 1
        self._thread = threading.Thread(target=self._work, args=(path, self._number), name="trace", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading and wait for the thread."""
        self._number += 1
        if self._thread is not None:
            self._thread.join(5.0)

    def _work(self, path: Path, number: int) -> None:
        """In the thread. The runs are folded here, and belong to the window from then on."""
        from compilescope.domain.savedtraces import ReadingStoppedError, read_saved

        def report(progress: Progress) -> bool:
            self._told.emit(_progress_text(progress), number)
            return number == self._number

        try:
            found = read_saved(path, report)
        except ReadingStoppedError:
            return
        except AppError as error:
            self._refused.emit(error.message, error.hint, number)
        except OSError as error:
            self._refused.emit(f"{path} cannot be read: {error.strerror or error}.", "", number)
        else:
            self._read.emit(found, number)

    def _take(self, found: SavedTrace, number: int) -> None:
        if number == self._number:
            self.opened.emit(found)

    def _take_refusal(self, message: str, hint: str, number: int) -> None:
        if number == self._number:
            self.failed.emit(message, hint)

    def _take_progress(self, text: str, number: int) -> None:
        if number == self._number:
            self.progressed.emit(text)


class TraceCommands(QObject):
    """Open trace, save trace, export timeline. `said` goes to the status bar."""

    began = Signal()
    said = Signal(str)
    failed = Signal(str, str)
    informed = Signal(str)

    def __init__(self, state: AppState, window: QWidget) -> None:
        super().__init__(window)
        self._state = state
        self._window = window
        self._path = Path()
        self.reader = TraceReader(self)
        self.reader.progressed.connect(self.said)
        self.reader.failed.connect(self._refuse)
        self.reader.opened.connect(self._show)

    def open(self, path: Path) -> None:
        """Read a log or a folder; the window shows it once it is read."""
        if self._state.is_busy:
            self.failed.emit(BUSY, "Stop it first (Esc), then open the trace.")
            return
        self._path = path
        self.began.emit()
        self.said.emit(f"Reading {path.name} …")
        self.reader.open(path)

    def ask_and_open(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Open a saved trace", str(Path.home()), "Traces (*.log *.gz);;All files (*)"
        )
        if name:
            self.open(Path(name))

    def ask_and_open_folder(self) -> None:
        """Several ranks or processes of one job lie in one folder."""
        name = QFileDialog.getExistingDirectory(self._window, "Open a folder of saved traces", str(Path.home()))
        if name:
            self.open(Path(name))

    def export_timeline(self) -> None:
        """The shown run's timeline, for Perfetto or chrome://tracing."""
        run = self._state.shown
        if run is None:
            return
        name, _ = QFileDialog.getSaveFileName(
            self._window, "Export the compile timeline", "timeline.json", "Chrome trace (*.json)"
        )
        if name:
            self._attempt(
                lambda: write_chrome_trace(run, name), f"Written: {name}. Perfetto (ui.perfetto.dev) opens it."
            )

    def save_trace(self) -> None:
        """The shown run's trace, as TORCH_TRACE would have written it."""
        run = self._state.shown
        if run is None:
            return
        name = QFileDialog.getExistingDirectory(self._window, "Save the trace in a folder", str(Path.home()))
        if name and self._attempt(lambda: save_trace_folder(run, name), f"Written to {name}."):
            self.informed.emit(f"The trace is in {name}; tlparse reads it. {WARNING}")

    def close(self) -> None:
        self.reader.close()

    def _attempt(self, do: Callable[[], object], done: str) -> bool:
        try:
            do()
        except AppError as error:
            self.failed.emit(error.message, error.hint)
            return False
        self.said.emit(done)
        return True

    def _refuse(self, message: str, hint: str) -> None:
        self.said.emit("")
        if self._path.is_dir() and not any(self._path.rglob("*.log*")):
            # a folder is rarely meant as one of traces when it has none
            message, hint = f"{self._path.name} is a folder without a trace in it.", WANTED
        self.failed.emit(message, hint)

    def _show(self, found: SavedTrace) -> None:
        self._state.show_trace(found.path, found.comparison)
        self.said.emit(f"Read: {found.path.name}, {units.plural(len(found.runs), 'process', 'processes')}.")
        if found.problems:
            from compilescope.domain.savedtraces import problems_text

            self.informed.emit(problems_text(found.problems))


def _progress_text(progress: Progress) -> str:
    share = f"{progress.share:.0%}" if progress.share is not None else units.plural(progress.phases, "phase")
    return f"Reading {progress.file}: {share}"
