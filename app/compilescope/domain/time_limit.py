"""A limit on the processor time of a piece of code that cannot be asked to stop, such as a regular expression."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TookTooLongError(Exception):
    """The limit was reached."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise TookTooLongError in what runs inside once the process has computed for so long.

    A match of `re` looks for signals on its way, so that one can end it. Works in the main thread, and where there are
    such timers (not on Windows); elsewhere there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLongError
