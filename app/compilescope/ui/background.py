"""Work that would make the window wait, in a thread of its own; the outcome comes back to the GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal

from compilescope.domain.errors import AppError
from compilescope.domain.faults import HINT, fault

Result = TypeVar("Result")


class Background(QObject):
    """One thread, one job after the other. `failed` tells what went wrong with a job, as a sentence and a hint."""

    failed = Signal(str, str)
    _done = Signal(object, object)  # what to do with the result, the result

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._is_closed = False
        self._done.connect(self._finish)

    def do(self, work: Callable[[], Result], then: Callable[[Result], None] | None = None) -> None:
        """Run `work` in the thread, then `then` with its result in the GUI thread."""
        if not self._is_closed:
            self._pool.submit(self._work, work, then)

    def close(self) -> None:
        """Wait for what has been asked for."""
        self._is_closed = True
        self._pool.shutdown(wait=True)

    def _work(self, work: Callable[[], Any], then: Callable[[Any], None] | None) -> None:
        try:
            result = work()
        except AppError as error:
            self.failed.emit(error.message, error.hint)
        except OSError as error:
            self.failed.emit(f"{error.filename or 'The file'}: {error.strerror or error}.", "")
        except Exception as error:  # nobody looks at the pool's future, where it would be lost
            self.failed.emit(fault("That did not work", error), HINT)
        else:
            if then is not None:
                self._done.emit(then, result)

    def _finish(self, then: Callable[[Any], None], result: Any) -> None:
        # what was under way when the window closed has nobody left to tell
        if not self._is_closed:
            then(result)
