"""What happens to errors that nobody expected: they are written down and told, and the window goes on."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO

from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from compilescope.domain.faults import LOG

MOST_BYTES = 1_000_000


class CrashLog(QObject):
    """Catches exceptions of every thread, Qt's messages and fatal signals. `caught` carries (sentence, traceback)."""

    caught = Signal(str, str)

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._file: IO[str] | None = None
        # faults that were told where they arose, and take nothing with them
        self._handler = _Written(self._write)

    def install(self) -> None:
        """Take over the hooks; the file is begun anew when it has grown large."""
        try:
            mode = "w" if self._path.exists() and self._path.stat().st_size > MOST_BYTES else "a"
            self._file = self._path.open(mode, encoding="utf-8", errors="backslashreplace")
            faulthandler.enable(self._file)
        except OSError as error:
            print(f"No crash log: {error}", file=sys.stderr)
        sys.excepthook = self._exception
        threading.excepthook = self._thread_exception
        qInstallMessageHandler(self._qt_message)
        LOG.addHandler(self._handler)

    def uninstall(self) -> None:
        """Give the hooks back and close the file."""
        sys.excepthook, threading.excepthook = sys.__excepthook__, threading.__excepthook__
        qInstallMessageHandler(None)
        LOG.removeHandler(self._handler)
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            self._file = None

    def _exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        text = "".join(traceback.format_exception(kind, error, trace))
        self._write(text)
        print(text, file=sys.stderr)
        self.caught.emit(f"Something in CompileScope went wrong: {kind.__name__}: {error}", text)

    def _thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit and args.exc_value is not None:
            self._exception(args.exc_type, args.exc_value, args.exc_traceback)

    def _qt_message(self, kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        if kind in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg):
            return
        self._write(f"Qt: {message}")
        print(message, file=sys.stderr)

    def _write(self, text: str) -> None:
        if self._file is not None:
            self._file.write(f"{datetime.now().isoformat(timespec='seconds')} {text.rstrip()}\n")
            self._file.flush()


class _Written(logging.Handler):
    """Hands what is logged to a function, as text."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._take = write

    def emit(self, record: logging.LogRecord) -> None:
        self._take(self.format(record))


def with_crash_log(path: Path, parent: QObject | None, tell: Callable[[str, str], None]) -> CrashLog:
    """An installed crash log that tells a person through `tell`."""
    log = CrashLog(path, parent)
    log.install()
    log.caught.connect(tell)
    return log
