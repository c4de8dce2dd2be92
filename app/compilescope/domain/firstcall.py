"""The first compiled call, second by second: each belongs to one part, so that the parts add up to the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compilescope.domain import events as e
from compilescope.domain.run import COMPILED, PhaseRow, ProcessStory

FIRST_USE = "first use"
OUTSIDE = "outside the compiler"
# where preparations lie; they count before the phases around them
_PREPARING = -1


@dataclass(frozen=True, kw_only=True)
class FirstCallParts:
    """Seconds. `parts` by (group, name) of the innermost compiler phase that was on, or (FIRST_USE, what was used), or
    (OUTSIDE, ""); they add up to `total_s`."""

    total_s: float
    parts: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def groups(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for (group, _), seconds in self.parts.items():
            found[group] = found.get(group, 0.0) + seconds
        return found


@dataclass(kw_only=True)
class _Span:
    key: tuple[str, str]
    thread: int | None
    begin: float
    end: float


def first_use_s(process: ProcessStory | None) -> float | None:
    """Of the first compiled call, the seconds that the process would have paid for any model; None before its end."""
    call = first_call(process)
    if process is None or call is None:
        return None
    return sum(use.duration_s for use in process.first_uses if call.at - call.duration_s < use.at <= call.at)


def first_call(process: ProcessStory | None) -> e.FirstCall | None:
    """The first compiled call: a step, where it was one."""
    calls = process.first_calls if process else {}
    return calls.get((COMPILED, "step")) or calls.get((COMPILED, "forward"))


def first_call_parts(process: ProcessStory | None) -> FirstCallParts | None:
    """The parts of a process's first compiled call; None where it had none.

    Of phases that run at once in several threads, those of the thread that called count.
    """
    call = first_call(process)
    if process is None or call is None:
        return None
    begin, end = call.at - call.duration_s, call.at
    spans = [span for span in _spans(process, end) if span.begin < span.end and span.begin < end and span.end > begin]
    return FirstCallParts(total_s=call.duration_s, parts=_swept(spans, begin, end))


def _spans(process: ProcessStory, end: float) -> Iterator[_Span]:
    for phase in process.phases:
        yield _Span(key=(phase.group, phase.name), thread=phase.thread, begin=phase.began, end=_end(phase, end))
    for use in process.first_uses:
        yield _Span(key=(FIRST_USE, use.name), thread=_PREPARING, begin=use.at - use.duration_s, end=use.at)


def _end(phase: PhaseRow, end: float) -> float:
    return end if phase.duration_s is None else phase.began + phase.duration_s


def _swept(spans: list[_Span], begin: float, end: float) -> dict[tuple[str, str], float]:
    """Go through all begins and ends in order, and give the time between two to what is on."""
    threads = [_PREPARING, *(span.thread for span in sorted(spans, key=lambda span: span.begin))]
    order = {thread: number for number, thread in enumerate(dict.fromkeys(threads))}
    begins = [(span.begin, True, index) for index, span in enumerate(spans)]
    ends = [(span.end, False, index) for index, span in enumerate(spans)]
    on: dict[int, _Span] = {}
    parts: dict[tuple[str, str], float] = {}
    before = begin
    for at, is_begin, index in [*sorted(begins + ends), (end, False, -1)]:
        now = min(max(at, begin), end)
        if now > before:
            # a thread's phases lie within each other: the one that began last is the innermost
            innermost = min(reversed(on.values()), key=lambda span: order[span.thread], default=None)
            key = innermost.key if innermost else (OUTSIDE, "")
            parts[key] = parts.get(key, 0.0) + now - before
            before = now
        if is_begin:
            on[index] = spans[index]
        else:
            on.pop(index, None)
    return parts
