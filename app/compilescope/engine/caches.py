"""Compiler caches of our own: one fresh folder a run, gone when the run is over."""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
from pathlib import Path
from typing import IO

from compilescope import paths

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "in-use.lock"
YOUNG_S = 60.0
OLD_S = 7 * 86400.0


class FreshCaches:
    """The caches of this app process. A lock that dies with the process tells which folders nobody uses any more."""

    def __init__(self, root: Path | None = None) -> None:
        self._chosen_root = root
        self._folder: Path | None = None
        self._lock: IO[bytes] | None = None

    @property
    def _root(self) -> Path:
        # looked up when it is needed, so that a folder that cannot be made fails a run and not the start of the app
        return self._chosen_root or paths.inductor_caches()

    def make(self, run_id: str) -> Path:
        """A new, empty cache folder."""
        if self._folder is None:
            self._folder = self._root / uuid.uuid4().hex[:12]
            self._folder.mkdir(parents=True)
            self._lock = (self._folder / LOCK).open("wb")
            try_lock(self._lock)
        cache = self._folder / run_id
        cache.mkdir(parents=True)
        return cache

    def remove(self, cache: Path) -> None:
        shutil.rmtree(cache, ignore_errors=True)

    def close(self) -> None:
        """Remove everything of this process."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        self._folder = self._lock = None

    def clean(self) -> None:
        """Remove what app processes left that are gone."""
        with contextlib.suppress(OSError):
            for folder in list(self._root.iterdir()):
                if folder != self._folder and folder.is_dir() and _is_stale(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def is_in_use(folder: Path) -> bool:
    """Whether an app process, this one among them, still holds a folder of caches."""
    return is_held(folder / LOCK)


def is_held(lock: Path) -> bool:
    """Whether a living process has locked a file; where locks cannot be had, whether it is there and not old."""
    try:
        with lock.open("rb+") as file:
            return not try_lock(file) if fcntl else time.time() - lock.stat().st_mtime < OLD_S
    except OSError:
        return False


def _is_stale(folder: Path) -> bool:
    try:
        age = time.time() - folder.stat().st_mtime
        if age < YOUNG_S:  # its owner may be about to lock it
            return False
        with (folder / LOCK).open("rb+") as lock:
            return try_lock(lock) if fcntl else age > OLD_S
    except FileNotFoundError:
        return True
    except OSError:
        return False


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed or its process ends; False where another has it, or locks are unknown."""
    if fcntl is None:
        return False
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
