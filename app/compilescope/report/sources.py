"""The source lines that a report shows beside what the compiler said of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from compilescope.report.blocks import Code

AROUND = 2
LARGEST = 2**20
LONGEST_LINE = 160

Reader = Callable[[str], str | None]


def reader(script: str, source: str | None) -> Reader:
    """Reads source files: the script as it was when it ran where that is known, other Python files from disk."""

    @lru_cache(maxsize=64)
    def read(file: str) -> str | None:
        if source is not None and (file == script or Path(file) == Path(script)):
            return source
        # names of files come from events, which may be someone else's
        return _python_file(file)

    return read


def excerpt(read: Reader, file: str | None, line: int | None, around: int = AROUND) -> Code | None:
    """The line and those around it; None where the file is not there or has no such line."""
    text = read(file) if file and line else None
    if text is None or line is None:
        return None
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return None
    first = max(line - around, 1)
    shown = [_cut(part.expandtabs(4)) for part in lines[first - 1 : line + around]]
    return Code(text="\n".join(shown), first_line=first, marked=line)


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"


def _python_file(file: str) -> str | None:
    path = Path(file)
    try:
        if path.suffix != ".py" or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
