"""How long a script works on its own while it is loaded, without the imports of libraries."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter
from types import FrameType

INTERVAL_S = 0.1


class OwnTime(threading.Thread):
    """While this holds, looks ten times a second at what this thread runs. `seconds`: how much was the script's own.

    `is_own`: whether a file is one of the script's.
    """

    def __init__(self, is_own: Callable[[str], bool]) -> None:
        super().__init__(daemon=True)
        self._is_own = is_own
        self._watched = threading.get_ident()
        self._is_over = threading.Event()
        self.seconds = 0.0

    def __enter__(self) -> OwnTime:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        last = perf_counter()
        while not self._is_over.wait(INTERVAL_S):
            frame = sys._current_frames().get(self._watched)
            now = perf_counter()
            if frame is not None and not self._is_importing(frame):
                self.seconds += now - last
            last = now

    def _is_importing(self, innermost: FrameType) -> bool:
        """Whether a library's module is being found or run, whatever it calls meanwhile."""
        if innermost.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame: FrameType | None = innermost
        while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("compilescope.worker"):
            file = frame.f_code.co_filename
            if frame.f_code.co_name == "<module>" and not file.startswith("<") and not self._is_own(file):
                return True
            frame = frame.f_back
        return False
