"""Where a graph break is whose line torch leaves out: told by what torch goes on with behind it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from compilescope.domain.events import Place

_RESUMED = "torch_dynamo_resume_in_"
# up to Python 3.12 each instruction has its offset, and the first of a line the line's number before it
_NUMBERED = re.compile(r"^\s*(\d+)\s+(?:-->\s+)?(?:>>\s+)?\d+\s+[A-Z][A-Z_]+", re.MULTILINE)
_BARE = re.compile(r"^\s*(\d+)\s+(?:L\d+:\s+)?[A-Z][A-Z_]+", re.MULTILINE)


def is_resumed(name: str | None) -> bool:
    """Whether a function is what follows a break of another one; its first line is the line of the break."""
    return bool(name) and str(name).startswith(_RESUMED)


def last_line(bytecode: str) -> int | None:
    """The last line in the code that torch makes of a function: of the instruction that it leaves to Python."""
    numbers = _NUMBERED.findall(bytecode) or _BARE.findall(bytecode)
    return int(numbers[-1]) if numbers else None


class Functions:
    """The functions that were compiled, to find the one that a line belongs to."""

    def __init__(self) -> None:
        self._first_lines: set[tuple[str, str | None, int]] = set()

    def add(self, place: Place) -> None:
        self._first_lines.add((place.file, place.function, place.line or 0))

    def first_line(self, place: Place) -> int | None:
        """Where the function begins that a resumed part belongs to."""
        lines = [
            line
            for file, function, line in self._first_lines
            if (file, function) == (place.file, place.function) and line <= (place.line or 0)
        ]
        return max(lines, default=None)


def last_place(function: Place, first: int | None, seen: Iterable[Place]) -> Place:
    """Where a break is behind which nothing was compiled: at the function's last call.

    `first`: where the function begins. `seen`: places that the compiler came past, the best guess without the source.
    """
    call = _last_call(function.file, first) if first else None
    if call is None:
        lines = [place.line for place in seen if place.file == function.file and place.line]
        call = max([function.line or 0, *lines])
    return Place(file=function.file, line=call or None, function=function.function)


@lru_cache(maxsize=64)
def _last_call(file: str, first: int) -> int | None:
    """The line of the last call in the function that begins at a line, with its decorators."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and first in (node.lineno, *(each.lineno for each in node.decorator_list)):
            lines = [each.lineno for part in node.body for each in ast.walk(part) if isinstance(each, ast.Call)]
            return max(lines, default=None)
    return None
