"""The folders in which runs keep their traces: packed when a run is over, gone when nobody needs them any more."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import time
import uuid
from collections.abc import Container
from pathlib import Path
from typing import IO

from compilescope import paths
from compilescope.engine.caches import YOUNG_S, is_held, try_lock

OWNER = "owner"  # in a run's folder: the name of its app process's lock
LOCK_SUFFIX = ".lock"
PACKED = b"\x1f\x8b"


class RunFolders:
    """The run folders of this app process. A lock that dies with the process tells whose they were."""

    def __init__(self, root: Path | None = None) -> None:
        self._chosen_root = root
        self._lock: IO[bytes] | None = None

    @property
    def _root(self) -> Path:
        # looked up when it is needed, so that a folder that cannot be made fails a run and not the start of the app
        return self._chosen_root or paths.runs()

    def make(self, run_id: str) -> Path:
        """The folder of a run that is about to begin."""
        folder = self._root / run_id
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # a full disk: the run may do without
            if self._lock is None:
                self._lock = (self._root / f"{uuid.uuid4().hex[:12]}{LOCK_SUFFIX}").open("wb")
                try_lock(self._lock)
            (folder / OWNER).write_text(Path(self._lock.name).name, "ascii")
        return folder

    def pack(self, run_id: str) -> None:
        """Compress what a run that is over has written; readers of traces take both. Its files keep their names."""
        try:
            files = list((self._root / run_id).glob("*.log"))
        except OSError:  # the folder could not be made, and the run has told so; the next run is still to come
            return
        for file in files:
            with contextlib.suppress(OSError):  # a full disk: it stays as it is
                _pack(file)

    def close(self) -> None:
        """Give the folders up: from now on the history says which are wanted."""
        if self._lock is not None:
            self._lock.close()
            Path(self._lock.name).unlink(missing_ok=True)
            self._lock = None


def sweep(wanted: Container[str], root: Path | None = None) -> None:
    """Remove the folders of runs that are not `wanted`, except those of app processes that live."""
    root = root or paths.runs()
    with contextlib.suppress(OSError):
        for item in list(root.iterdir()):
            if _is_young(item):  # its owner may be about to say so
                continue
            if item.suffix == LOCK_SUFFIX and item.is_file():
                if not is_held(item):
                    item.unlink(missing_ok=True)
            elif item.is_dir() and item.name not in wanted and not _is_owned(item):
                shutil.rmtree(item, ignore_errors=True)


def _is_owned(folder: Path) -> bool:
    try:
        name = (folder / OWNER).read_text("ascii")
    except (OSError, ValueError):
        return False
    return is_held(folder.parent / Path(name).name)


def _is_young(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < YOUNG_S
    except OSError:
        return True


def _pack(file: Path) -> None:
    with file.open("rb") as source:
        if source.read(2) == PACKED:
            return
        source.seek(0)
        part = file.with_suffix(".part")
        try:
            with gzip.open(part, "wb", compresslevel=4) as packed:
                shutil.copyfileobj(source, packed)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
