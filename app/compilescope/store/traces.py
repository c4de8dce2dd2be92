"""The traces of stored runs: files in a folder for each run, beside the history, and members of an export."""

from __future__ import annotations

import gzip
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

from compilescope.domain import events as e

NAMES = ("trace.log", "trace.warm.log")
MAX_BYTES = 2048 * 2**20
_CHUNK = 2**20


def localised(event: e.Event, folder: Path) -> e.Event:
    """An event whose texts lie in the run's own folder, wherever it was recorded: no other file is ever opened."""
    match event:
        case e.Text():
            return replace(event, file=_local(event.file, folder))
        case e.Cache(components=e.TextSpan() as span):
            return replace(event, components=replace(span, file=_local(span.file, folder)))
    return event


def member(number: int, name: str) -> str:
    """What a trace of the run of this number is called in an export."""
    return f"runs/{number:04}.{name}"


def pack(archive: zipfile.ZipFile, number: int, folder: Path, date: tuple[int, int, int, int, int, int]) -> None:
    """Add a run's traces to an export, as far as they are there and can be read."""
    from compilescope.domain.trace import open_trace  # no window needs it to open

    for name in NAMES:
        if not (folder / name).is_file():
            continue
        info = zipfile.ZipInfo(member(number, name), date)
        info.compress_type = zipfile.ZIP_DEFLATED
        with open_trace(folder / name) as source, archive.open(info, "w", force_zip64=True) as target:
            for chunk in _chunks(source):
                target.write(chunk)


def unpack(file: Path, folders: Mapping[int, Path]) -> None:
    """Write the traces in an export into the folders of its runs, up to a limit. Only files of known names appear.

    Raises ValueError where they are larger; what was written by then is removed.
    """
    left = MAX_BYTES
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        for number, folder in folders.items():
            for name in NAMES:
                if member(number, name) in names:
                    folder.mkdir(parents=True, exist_ok=True)
                    with archive.open(member(number, name)) as source:
                        left -= _write(source, folder / name, left)


def remove(folders: Mapping[int, Path]) -> None:
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)


def _write(source: IO[bytes], target: Path, limit: int) -> int:
    size = 0
    with gzip.open(target, "wb", compresslevel=4) as packed:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise ValueError(f"its traces are larger than {MAX_BYTES} bytes")
            packed.write(chunk)
    return size


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    """What can be read of a trace: one that was cut is exported as far as it goes."""
    try:
        while chunk := source.read(_CHUNK):
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return


def _local(file: str, folder: Path) -> str:
    name = re.split(r"[\\/]", file)[-1]
    return str(folder / name) if name.strip(".") else ""
