"""Long texts out of trace files, read in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Signal

from compilescope.domain import events as e
from compilescope.domain.errors import AppError

Span = e.Text | e.TextSpan
SMALL = 64_000


class Worker(QObject):
    """Runs functions in one thread, one after the other, and hands on what they return.

    A newer request for the same thing makes an older answer worthless: `done` is only told of the newest.
    """

    done = Signal(object, object)  # subject, result
    failed = Signal(object, str)  # subject, sentence
    _answered = Signal(object, object, int)
    _refused = Signal(object, str, int)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._newest = 0
        self._answered.connect(self._take)
        self._refused.connect(self._take_refusal)

    def ask(self, subject: object, work: Callable[[], Any]) -> None:
        """Work in the thread; the answer comes as a signal."""
        self._newest += 1
        self._pool.submit(self._work, subject, work, self._newest)

    def forget(self) -> None:
        """What was asked is no longer of interest."""
        self._newest += 1

    def close(self) -> None:
        self._newest += 1
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, subject: object, work: Callable[[], Any], number: int) -> None:
        """In the thread. What is no longer wanted is not begun."""
        if number != self._newest:
            return
        try:
            result = work()
        except (AppError, OSError) as error:
            self._refused.emit(subject, f"The trace cannot be read any more: {error}", number)
        else:
            self._answered.emit(subject, result, number)

    def _take(self, subject: object, result: object, number: int) -> None:
        if number == self._newest:
            self.done.emit(subject, result)

    def _take_refusal(self, subject: object, sentence: str, number: int) -> None:
        if number == self._newest:
            self.failed.emit(subject, sentence)


def text_of(span: Span) -> str:
    """The text that a span stands for."""
    from compilescope.domain.trace import read_text  # no window needs it to open

    return read_text(span.file, span.offset, span.length)
