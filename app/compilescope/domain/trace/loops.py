"""The loops of a source file: whether a line is repeated by one, and whether it decides that one goes on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compilescope.domain.events import Place

_Loop = ast.For | ast.AsyncFor | ast.While
_Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class _Loops:
    """Lines, first and last, that run once a round, and those of tests that end a loop."""

    repeated: tuple[_Span, ...] = ()
    tests: tuple[_Span, ...] = ()


def is_in_loop(frames: Iterable[Place]) -> bool:
    """Whether a frame's line is run in each round of a `for` or `while` of its file, if that file is here to look."""
    return any(_within(frame, _loops(frame.file).repeated) for frame in frames)


def ends_loop(frames: Iterable[Place]) -> bool:
    """Whether a frame's line is the test of a `while`, or of an `if` that leaves the loop around it."""
    return any(_within(frame, _loops(frame.file).tests) for frame in frames)


def _within(frame: Place, spans: Iterable[_Span]) -> bool:
    # a loop at module level is the caller's, not the model's
    if frame.line is None or frame.function == "<module>":
        return False
    return any(first <= frame.line <= last for first, last in spans)


@lru_cache(maxsize=64)
def _loops(file: str) -> _Loops:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return _Loops()
    loops = [node for node in ast.walk(tree) if isinstance(node, _Loop)]
    return _Loops(
        repeated=tuple(_repeated(node) for node in loops),
        tests=tuple(_span(test) for node in loops for test in _tests(node)),
    )


def _repeated(loop: _Loop) -> _Span:
    """The test of a `while` is part of each round; what a `for` runs over is made once, before the first."""
    first = loop.lineno if isinstance(loop, ast.While) else max(loop.lineno + 1, loop.body[0].lineno)
    return first, loop.end_lineno or loop.lineno


def _tests(loop: _Loop) -> Iterator[ast.expr]:
    if isinstance(loop, ast.While):
        yield loop.test
    for node in _own(loop.body):
        if isinstance(node, ast.If) and any(isinstance(each, ast.Break | ast.Return) for each in _own([node])):
            yield node.test


def _own(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes below, without those of loops and functions further in."""
    for node in statements:
        yield node
        if not isinstance(node, _Loop | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(ast.iter_child_nodes(node))


def _span(node: ast.expr) -> _Span:
    return node.lineno, node.end_lineno or node.lineno
