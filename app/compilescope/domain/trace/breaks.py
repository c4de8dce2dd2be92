"""Graph breaks, from the text that Dynamo writes about each."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from compilescope.domain.events import Place
from compilescope.domain.trace.loops import ends_loop, is_in_loop
from compilescope.domain.trace.places import Places, parse_stack

_NEXT_CAUSE = "*** While handling this graph break, another graph break occurred: ***"
_LOCATION = re.compile(r"Graph break in user code at (.*):(\d+)")
_REASON = re.compile(
    r"^(?:Graph Break )?Reason: (.*?)(?=^(?:User code traceback:|Stack variable source attribution:)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_STACK = re.compile(
    r"^(?:User code traceback:|.*from user code at:|The graph break occurred in the following user code:)[ ]*\n"
    r"((?:[ \t]+.*\n?|\n)*)",
    re.MULTILINE,
)
_SOURCES = re.compile(r"^Stack variable source attribution:\n(.*?)^User code traceback:", re.DOTALL | re.MULTILINE)
_ID = re.compile(r"/gb/gb(\d+)\.html")
# torch 2.9 prints no link where a branch depends on data
_UNLINKED = {"Data-dependent branching": "GB0170"}
_PREAMBLES = ("Encountered graph break", "Failed to handle graph break gracefully")
_SKIPPED = (
    "Failed to handle graph break gracefully",
    "cannot properly resume",
    "Graph break: skip",
    "graph break in loop",
    "Skip frame due to graph break in a for/while loop",
)
# below the innermost frame of a stack stands its line, and from Python 3.11 on marks under it
_WHILE = re.compile(r"^[ \t]*while\b.*\n(?:[ \t]*[~^]+[ \t]*\n)?\s*\Z", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:torch\.)?[\w.]*?(\w*(?:Unsupported|Error|Exception)\w*): (.+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One block of a break's text."""

    kind: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Break:
    """What a break's text says. `causes`: root cause first, then what followed from it.

    `library`: torch's own line, where the break is in code of torch. `caller`: the innermost line outside torch, be it
    hidden or not. `lines`: of the file that was compiled, those that
    what was on the stack came from. `is_omitted`: the compiled function's frame does not stand in the text, and `place`
    is empty. Torch takes frames of one name that follow each other for parts of one function and keeps the innermost:
    of a module's forward that calls the forward of one of torch's layers, it keeps the layer's.
    """

    causes: tuple[Cause, ...]
    place: Place | None
    stack: tuple[Place, ...]
    frame_skipped: bool
    in_loop: bool
    ends_loop: bool
    library: Place | None = None
    caller: Place | None = None
    is_omitted: bool = False
    lines: tuple[Place, ...] = ()


def parse_cause(text: str) -> Cause:
    """One block: the kind, then `Explanation:`, `Hint:`s and a link with the break's id."""
    head: list[str] = []
    explanation: list[str] = []
    hints: list[list[str]] = []
    part = head
    for line in (raw.strip() for raw in text.splitlines()):
        if line.startswith("Explanation:"):
            part, line = explanation, line[12:].strip()
        elif line.startswith("Hint:"):
            hints.append([])
            part, line = hints[-1], line[5:].strip()
        elif line.startswith(("Developer debug context:", "For more details about this graph break")):
            part, line = [], ""
        elif not line and part is head and head:
            part = []
        if line and not (part is head and line.startswith(_PREAMBLES)):
            part.append(line)
    found = _ID.search(text)
    kind = head[0].removeprefix("Unsupported: ").removeprefix("Graph break: ") if head else ""
    return Cause(
        kind=kind,
        explanation=" ".join(explanation) or " ".join(head[1:]),
        hints=tuple(" ".join(hint) for hint in hints),
        id=f"GB{found[1]}" if found else _UNLINKED.get(kind),
    )


def parse_causes(text: str) -> tuple[Cause, ...]:
    """All blocks of a message, root cause first."""
    return tuple(cause for block in text.split(_NEXT_CAUSE) if (cause := parse_cause(block)).kind)


def parse_error_stack(text: str, places: Places) -> tuple[Place, ...]:
    """The frames, none of torch's, that lead to an error: of those inlined, all are there."""
    _, found, stack = text.rpartition("\nfrom user code:")
    return places.own(parse_stack(stack)) if found else ()


def parse_break(text: str, places: Places, above: Collection[Place] | None = None) -> Break:
    """A break from its payload, as written by torch 2.6 to 2.14.

    `above`: the frames that called the function which is being compiled, where they are known.
    """
    reason = _REASON.search(text)
    causes = parse_causes(reason[1]) if reason else ()
    stack = _STACK.search(text)
    frames = parse_stack(stack[1]) if stack else []
    location = _LOCATION.search(text)
    if not causes:
        # a skipped frame's text names no reason of its own; the exception printed below it does
        error = _EXCEPTION.search(text)
        causes = parse_causes(text[error.start(2) :]) if error else ()
    library = places.library(frames)
    is_omitted = library is not None and above is not None and not places.own(_below(frames, above))
    place = None if is_omitted else places.innermost(frames)
    if place is None and location and not is_omitted:
        place = Place(file=location[1], line=int(location[2]))
    reported = reason[1] if reason else text
    innermost = () if is_omitted else places.own(frames)[-1:]
    at_while = stack is not None and _WHILE.search(stack[1]) is not None
    return Break(
        causes=causes or (Cause(kind="Unknown reason"),),
        place=place,
        stack=(*places.own(frames), library) if library else places.own(frames),
        frame_skipped=any(sign in text[:400] or sign in reported for sign in _SKIPPED),
        # of the frames outside, a training loop around the model is no loop in the model
        in_loop=at_while or "graph break in loop" in reported or is_in_loop(innermost),
        ends_loop=at_while or ends_loop(innermost),
        library=library,
        caller=places.caller(frames),
        is_omitted=is_omitted,
        lines=tuple(parse_stack(sources[1])) if (sources := _SOURCES.search(text)) else (),
    )


def _below(frames: Sequence[Place], above: Collection[Place]) -> Sequence[Place]:
    """The frames from the function that is being compiled on."""
    called = [index for index, frame in enumerate(frames) if frame in above]
    return frames[called[-1] + 1 :] if called else frames
