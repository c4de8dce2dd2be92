"""Where in the script an error comes from that the compiler raised, or the code that it made.

Neither has the script's frames in its traceback: a captured graph stands for their lines, and what the compiler works
on names them. An error of the code that runs is no failure of the compiler.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from compilescope.domain.events import Place

Line = tuple[str, int]

_NODES = "compilescope_nodes"
_COMPILER = re.compile(
    r"[/\\]torch[/\\](?:_dynamo[/\\](?:convert_frame|symbolic_convert)|_inductor[/\\]compile_fx)\.py$"
)
_TORCH = re.compile(r"[/\\]torch[/\\]")
_ASSIGNED = re.compile(r"\s*(\w+)(?:\s*:[^=]*)? = ")
_SOURCES = re.compile(r"#.*?Source Nodes: \[(.*?)\]")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# a line as a guard names it: its code, and the end of its path
_NAMED = re.compile(r"#\s+(\S+\.py):(\d+) in ")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """`ran`: compiled code raised the error as it ran; else torch raised it as it compiled. `lines`: the script's, the
    innermost last."""

    ran: bool
    lines: tuple[Line, ...] = ()


def note(error: BaseException, nodes: Mapping[str, Place]) -> None:
    """Keep with an error the lines that the captured graphs' nodes stand for: generated code knows these by name."""
    with contextlib.suppress(AttributeError):  # an exception class of the script's may take no attributes
        setattr(error, _NODES, dict(nodes))


def origin_of(error: BaseException) -> Origin | None:
    """None for an error that came neither from the compiler nor from its code."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if any(_COMPILER.search(frame.f_code.co_filename) for frame, _ in frames):
        if frames and not _TORCH.search(frames[-1][0].f_code.co_filename):
            return None
        return Origin(ran=False, lines=tuple(_compiled_lines(error, [frame for frame, _ in frames])))
    ran = [(frame, line) for frame, line in frames if _is_graph(frame) or _is_generated(frame)]
    if not ran:
        return None
    frame, line = ran[-1]
    found = _node_lines(frame, line) if _is_graph(frame) else _source_lines(frame, line, getattr(error, _NODES, {}))
    return Origin(ran=True, lines=tuple(found))


def caught_by(lines: tuple[Line, ...]) -> Line | None:
    """The innermost `try` of the script with an `except` around one of the lines."""
    for file, line in reversed(lines):
        try:
            tree = ast.parse(Path(file).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        around = [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Try)
            and node.handlers
            and node.body[0].lineno <= line <= (node.body[-1].end_lineno or node.body[-1].lineno)
        ]
        if around:
            return file, max(around)
    return None


def _is_graph(frame: FrameType) -> bool:
    """Whether a frame is that of a captured graph, run as it is."""
    return frame.f_code.co_filename.startswith("<eval_with_key>")


def _is_generated(frame: FrameType) -> bool:
    """Whether a frame is that of a module that Inductor wrote."""
    return "async_compile" in frame.f_globals or "inductor_ops" in frame.f_globals


def _node_lines(frame: FrameType, line: int) -> Iterator[Line]:
    """The stack of the node that a line of a captured graph computes."""
    name = _ASSIGNED.match(linecache.getline(frame.f_code.co_filename, line, frame.f_globals))
    graph = getattr(frame.f_locals.get("self"), "graph", None)
    for node in getattr(graph, "nodes", ()) if name else ():
        if name and node.name == name[1]:
            yield from _parsed(str(node.meta.get("stack_trace") or ""))


def _source_lines(frame: FrameType, line: int, nodes: Mapping[str, Place]) -> Iterator[Line]:
    """The line of the last node that the comment above a line of generated code names."""
    for above in reversed(linecache.getlines(frame.f_code.co_filename)[:line]):
        if found := _SOURCES.search(above):
            names = [name.strip() for name in found[1].split(",")]
            places = [nodes[name] for name in names if name in nodes]
            if places and places[-1].line is not None:
                yield places[-1].file, places[-1].line
            return
        if above.lstrip().startswith("def "):
            return


def _compiled_lines(error: BaseException, frames: list[FrameType]) -> Iterator[Line]:
    """The function that was being compiled, then the line that the compiler was at, where it says so."""
    codes = (frame.f_locals.get("code") for frame in frames)
    code = next((found for found in codes if isinstance(found, CodeType)), None)
    if code is None:
        return
    yield code.co_filename, code.co_firstlineno
    summary = getattr(error, "innermost_user_frame_summary", None)
    if (file := getattr(summary, "filename", None)) and getattr(summary, "lineno", None):
        yield file, summary.lineno  # type: ignore[union-attr]
        return
    for frame in frames:
        yield from _guarded_line(frame.f_locals.get("guard"), code)


def _guarded_line(guard: Any, code: CodeType) -> Iterator[Line]:
    """The line that a guard on sizes comes from."""
    said = _NAMED.search(str(getattr(getattr(guard, "sloc", None), "maybe_user_loc", None) or ""))
    # torch cuts a path anywhere
    if said and Path(said[1]).name == Path(code.co_filename).name:
        yield code.co_filename, int(said[2])


def _parsed(stack: str) -> Iterator[Line]:
    for file, line in _FRAME.findall(stack):
        yield file, int(line)
