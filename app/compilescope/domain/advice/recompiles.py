"""Advice on compiling again and again: changing sizes, counters, the recompile limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from compilescope.domain import units
from compilescope.domain.advice.rule import (
    CONFIG,
    DYNAMIC_SHAPES,
    RECOMPILES,
    Advice,
    Case,
    one_line,
    place_text,
    places_of,
)
from compilescope.domain.config import Config
from compilescope.domain.events import Recompile
from compilescope.domain.run import ProcessStory, RecompileRow, Run

_SIZE = re.compile(r"size mismatch|\.size\(|\.shape\b|\bSYMBOLIC_SHAPE_GUARD|shape\[", re.IGNORECASE)
_COMPILED = re.compile(r"recompil|compiled again", re.IGNORECASE)
_RECOMPILING = ("recompiles_every_call", "recompiles_while_timed")
# Dynamo's name for what was on the stack where it left the graph
_LEFT = "___stack"
_REMEDY = "Make what the guard tests the same for every call, or pass it as a tensor."
# one change is told from a counter by what comes after it
_COUNTER_VALUES = 2


def is_size(row: RecompileRow) -> bool:
    """Whether a tensor's size changed."""
    event = row.event
    # the reason holds what other variants say as well
    cause = event.guard or event.reason
    if "stride mismatch" in cause:
        return False
    return event.dimension is not None or _SIZE.search(cause) is not None


def counters(story: ProcessStory) -> dict[str, list[Recompile]]:
    """Python numbers that went on changing, by name, each with the recompiles that it caused.

    A guard holds one value, so each value is a row of its own.
    """
    found: dict[str, list[Recompile]] = {}
    for row in story.recompiles.values():
        is_of_tensor = "mismatch" in row.event.guard
        if row.event.source and not is_size(row) and not is_of_tensor and _is_number(row.event.expected):
            found.setdefault(row.event.source, []).extend(row.events)
    return {
        name: events for name, events in found.items() if len({event.expected for event in events}) >= _COUNTER_VALUES
    }


def recompile_limit(case: Case) -> Iterator[Advice]:
    """The compiler stopped compiling a function again; other inputs run eager."""
    rows = case.story.recompile_limits
    if rows:
        limit = next((row.limit for row in rows if row.limit is not None), None)
        places = places_of(rows)
        yield Advice(
            code="recompile_limit",
            title="The recompile limit was reached",
            evidence=f"{rows[0].function or 'A function'}{place_text(places)} was compiled "
            f"{f'{limit} times' if limit else 'too often'}; from then on what matches none of them runs eager. "
            f"Last reason: {one_line(rows[-1].reason, 'not given')}",
            remedy="Remove the cause of the recompiles. A higher torch._dynamo.config.recompile_limit only pays where "
            "the set of variants is small and known.",
            source=RECOMPILES,
            severity="problem",
            places=places,
        )


def changing_sizes(case: Case) -> Iterator[Advice]:
    """Recompiles since an input's size changed."""
    rows = [row for row in case.story.recompiles.values() if is_size(row)]
    if not rows:
        return
    event, places = rows[0].event, places_of([row.event for row in rows])
    count, what = sum(row.count for row in rows), event.source or "an input"
    others = len({row.event.source for row in rows}) - 1
    settled = count == 1 and case.run.config.dynamic is None
    dimension = "" if event.dimension is None else f", dimension {event.dimension}"
    more = f", and {units.plural(others, 'other tensor')}" if others else ""
    change = f" (from {event.expected} to {event.actual})" if event.expected and event.actual else ""
    yield Advice(
        code="changing_sizes",
        title="Sizes change, and each change compiles again",
        evidence=f"{units.plural(count, 'recompile')} for {what}{dimension}{change}{more}{place_text(places)}.",
        remedy=_size_remedy(case.run.config, event, tried_dynamic(case.run, event, case.others)),
        source=DYNAMIC_SHAPES,
        # auto compiles a changing size again once, with that dimension symbolic
        severity="note" if settled else "cost",
        places=places,
    )


def changing_number(case: Case) -> Iterator[Advice]:
    """A step counter or another Python number: every new value is a new constant."""
    for name, events in counters(case.story).items():
        places = places_of(events)
        values = ", ".join(dict.fromkeys(str(event.expected) for event in events[:4]))
        is_attribute = name.startswith(("self.", "L['self']"))
        setting = "; for an integer attribute, torch._dynamo.config.allow_unspec_int_on_nn_module = True also helps"
        yield Advice(
            code="changing_number",
            title="A number that changes with every call is compiled in",
            evidence=f"{name} was guarded on {values} …, and {units.plural(len(events), 'recompile')} followed"
            f"{place_text(places)}.",
            remedy=f"Keep the number in a tensor (a buffer), or out of forward{setting if is_attribute else ''}.",
            source=CONFIG if is_attribute else RECOMPILES,
            places=places,
        )


def other_recompiles(case: Case) -> Iterator[Advice]:
    """Recompiles of any other cause, each with its guard."""
    numbers = counters(case.story)
    for row in case.story.recompiles.values():
        if is_size(row) or row.event.source in numbers:
            continue
        event, places = row.event, places_of([row.event])
        yield Advice(
            code="recompile",
            title="Compiled again",
            evidence=f"{units.plural(row.count, 'recompile')} of {event.function or 'a function'}{place_text(places)}, "
            f"since this no longer held: {one_line(event.guard or event.reason)}",
            remedy=fix(case.run, row, case.others),
            source=RECOMPILES,
            severity="note",
            places=places,
        )


def recompiles_while_timing(case: Case) -> Iterator[Advice]:
    """Repeated calls with the same inputs still compiled: the steady state is none."""
    processes = case.run.processes
    voids = {(i, row.block) for i, p in enumerate(processes) for row in p.voids if _COMPILED.search(row.reason)}
    warned = next((row for p in processes for row in p.warnings if row.code in _RECOMPILING), None)
    if voids or warned:
        blocks = units.plural(len(voids), "timed block")
        yield Advice(
            code="recompiles_while_timing",
            title="Repeated equal calls still compile",
            evidence=one_line(warned.message) if warned else f"{blocks} held a compile with unchanged inputs.",
            remedy="Something that the code keeps from call to call is compiled in as a constant. See the recompiles "
            "for its name; the medians here leave that cost out.",
            source=RECOMPILES,
            severity="problem",
        )


def tried_dynamic(run: Run, event: Recompile, others: Sequence[Run]) -> Run | None:
    """Another run of the comparison with dynamic=True that was compiled again for the same size all the same."""
    for other in others:
        if other is run or not other.config.dynamic or other.workload != run.workload or other.story is None:
            continue
        rows = (row for row in other.story.recompiles.values() if is_size(row))
        if any((row.event.source, row.event.dimension) == (event.source, event.dimension) for row in rows):
            return other
    return None


def fix(run: Run, row: RecompileRow, others: Sequence[Run] = ()) -> str:
    """What to do about one kind of recompile, in one sentence. `others`: of the same comparison."""
    event = row.event
    source, guard = event.source or "", event.guard or event.reason
    if is_size(row):
        return _size_remedy(run.config, event, tried_dynamic(run, event, others))
    if "GLOBAL_STATE" in guard or source.startswith("global state"):
        return "Call it in the same state every time: grad mode, autocast and the like are compiled in."
    if source.startswith(_LEFT):
        return "It is a number that the code had at a graph break, such as one from .item(): keep it a tensor."
    if "requires_grad" in guard:
        return f"Let {source or 'the tensor'} always require gradients, or never."
    if _is_number(event.expected):
        return f"Keep {source or 'the number'} in a tensor (a buffer), or out of forward: each value is compiled in."
    if "check_type_id" in guard or "check_obj_id" in guard:
        return f"Pass the same object or type for {source or 'it'} every time, or leave it out of the compiled part."
    if "stride mismatch" in guard:
        return f"Pass {source or 'the tensor'} in one memory layout, for example after .contiguous()."
    if ".training" in guard:
        return "Training and evaluation are compiled apart, once each: two compiles are as they should be."
    return _REMEDY


def _size_remedy(config: Config, event: Recompile, tried: Run | None) -> str:
    if tried is not None and not config.dynamic:
        return (
            f"Turning dynamic on does not help: {tried.label} compiled again for it as well, so something fixes this "
            "size. Look for a place that specialises it, or pad to a few sizes."
        )
    if config.dynamic is False:
        return "dynamic is off here, so every new size compiles. Leave it on auto or turn it on, or pad to a few sizes."
    if config.dynamic:
        return "dynamic is on already: something fixes this size. Look for a place that specialises it, or pad."
    local = re.fullmatch(r"(?:L\[')?(\w+)(?:'\])?", event.source or "")
    mark = f"torch._dynamo.mark_dynamic({local[1] if local else 'tensor'}, {event.dimension or 0})"
    return f"Try dynamic on (dynamic=True), or {mark} before the first call, or pad to a few sizes."


def _is_number(value: str | None) -> bool:
    try:
        float(value or "")
    except ValueError:
        return False
    return True


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (
    recompile_limit,
    recompiles_while_timing,
    changing_sizes,
    changing_number,
    other_recompiles,
)
