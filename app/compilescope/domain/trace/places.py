"""Source places in a trace: interned names, stacks, and which frames are a person's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from compilescope.domain.events import Place

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
_STANDARD_LIBRARY = re.compile(r"[/\\][Ll]ib[/\\](?:python\d\.\d+[/\\])?(?!.*(?:site|dist)-packages)|^<frozen ")
_TORCH = re.compile(r"(?:^|[/\\])(?:site|dist)-packages[/\\](?:torch|functorch|triton)[/\\]|^<eval_with_key>")
_FRAME = re.compile(r'^\s*File "(.+?)", line (\d+)(?:, in (.+?))?\s*$', re.MULTILINE)


def function_name(name: str | None) -> str | None:
    """A function's own name, also where Dynamo made a part of it a function that resumes after a break."""
    while name and (match := _RESUMED.match(name)):
        name = match[1]
    return name


class Places:
    """Knows the interned file names, and which files are torch's or the program's own.

    `hidden`: folders whose frames are nobody's business, such as the program that started the compile.
    """

    def __init__(self, hidden: Sequence[str] = ()) -> None:
        self._names: dict[int, str] = {}
        self._hidden = tuple(folder.rstrip(os.sep) + os.sep for folder in hidden)

    def intern(self, name: str, number: int) -> None:
        self._names[number] = name

    def file(self, name: Any) -> str | None:
        """A file by its number in the intern table, or as it is."""
        return self._names.get(name) if isinstance(name, int) else str(name) if name else None

    def frame(self, value: Mapping[str, Any]) -> Place:
        """A place from a frame of a structured record."""
        file = self.file(value.get("filename")) or "?"
        return Place(file=file, line=value.get("line"), function=function_name(value.get("name")))

    @property
    def has_hidden(self) -> bool:
        return bool(self._hidden)

    def is_hidden(self, file: str) -> bool:
        return file.startswith(self._hidden)

    def is_torch(self, file: str) -> bool:
        return bool(_TORCH.search(file)) or self.is_hidden(file)

    def caller(self, frames: Sequence[Place]) -> Place | None:
        """The innermost frame outside torch and the standard library, be it hidden or not."""
        found = (f for f in reversed(frames) if not _TORCH.search(f.file) and not _STANDARD_LIBRARY.search(f.file))
        return next(found, None)

    def library(self, frames: Sequence[Place]) -> Place | None:
        """Torch's own line, where the innermost frame is in torch."""
        return frames[-1] if frames and _TORCH.search(frames[-1].file) else None

    def own(self, frames: Iterable[Place]) -> tuple[Place, ...]:
        """The frames that are neither torch's nor hidden; the same line twice in a row counts once."""
        kept: list[Place] = []
        for frame in frames:
            if not self.is_torch(frame.file) and (not kept or kept[-1] != frame):
                kept.append(frame)
        return tuple(kept)

    def innermost(self, frames: Sequence[Place]) -> Place | None:
        """The frame to point at: the last one outside torch and, if there is any, outside the standard library."""
        mine = [frame for frame in self.own(frames) if not _STANDARD_LIBRARY.search(frame.file)]
        return mine[-1] if mine else next(reversed(self.own(frames)), None)


def parse_stack(text: str) -> list[Place]:
    """The frames of a printed traceback."""
    return [
        Place(file=file, line=int(line), function=function_name(function) if function else None)
        for file, line, function in _FRAME.findall(text)
    ]


def resolve(shortened: str, candidates: Iterable[str | None]) -> str:
    """A full path for one of which torch printed only the last parts."""
    # it may begin amid a folder's name
    end = shortened.lstrip("./")
    name = end.rpartition("/")[2]
    return next((path for path in candidates if path and path.endswith(end) and PurePath(path).name == name), shortened)
