"""Advice on what was not compiled and why: skipped frames, graph breaks by cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compilescope.domain import units
from compilescope.domain.advice.rule import (
    GRAPH_BREAKS,
    OPTIMIZER,
    SKIPPED,
    Advice,
    Case,
    Source,
    graph_break_source,
    one_line,
    place_text,
    places_of,
)
from compilescope.domain.run import GraphBreakRow
from compilescope.domain.trace.frames import SUPPRESSED


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause of graph breaks that has a remedy of its own, told from the words of the break."""

    code: str
    title: str
    words: str
    remedy: str

    def explains(self, row: GraphBreakRow) -> bool:
        event = row.event
        # not the hints: those of one kind of break name causes that are not this one's
        text = " ".join((event.kind, event.reason, event.explanation))
        return re.search(self.words, text, re.IGNORECASE) is not None


@dataclass(frozen=True, kw_only=True)
class LoopCause(Cause):
    """The same, of a branch that decides whether a loop goes on: what chooses between two values does not fit there."""

    def explains(self, row: GraphBreakRow) -> bool:
        return bool(row.event.ends_loop) and super().explains(row)


_ON_DATA = r"data-dependent (branching|jump|control|assert)|generic_jump"
CAUSES = (
    Cause(
        code="rnn",
        title="Recurrent layers are not traced",
        words=r"RNN, GRU,? or LSTM|allow_rnn",
        remedy="Set torch._dynamo.config.allow_rnn = True before compiling and measure again: the loop over time steps "
        "is unrolled into the graph, so the first call grows with the sequence. Otherwise keep the layer eager: its "
        "own cuDNN or oneDNN kernels are fused already.",
    ),
    Cause(
        code="item",
        title="A tensor's value is read into Python",
        words=r"\.item\(\)|capture_scalar_outputs|_local_scalar_dense",
        remedy="Keep the value a tensor (torch.where, indexing), or set torch._dynamo.config.capture_scalar_outputs = "
        "True so that the number becomes part of the graph.",
    ),
    Cause(
        code="output_shape",
        title="An operator's output size depends on the data",
        words=r"capture_dynamic_output_shape_ops|dynamic shape operator",
        remedy="Use a form of fixed size (a mask instead of nonzero or boolean indexing), or set "
        "torch._dynamo.config.capture_dynamic_output_shape_ops = True.",
    ),
    LoopCause(
        code="loop_on_data",
        title="A loop goes on as long as a tensor says",
        words=_ON_DATA,
        remedy="Where the number of rounds is known beforehand, write it as a for loop, such as "
        "for step in range(self.steps), also if the tensor is only a counter or a time that runs down: all rounds "
        "become one graph. Where it is not known, compile the body as a function of its own, with the test outside.",
    ),
    Cause(
        code="branch_on_data",
        title="A branch depends on tensor data",
        words=_ON_DATA,
        remedy="Compute both sides and choose with torch.where, use torch.cond, or move the branch out of the compiled "
        "part.",
    ),
    Cause(
        code="fake_tensors",
        title="An operator cannot be traced",
        words=r"does not support running with fake tensors",
        remedy="Give an operator of your own a fake implementation (torch.library.register_fake). In "
        "nn.TransformerEncoderLayer and nn.MultiheadAttention it is the fused fast path of inference: leave dynamic at "
        "auto, or turn that path off with torch.backends.mha.set_fastpath_enabled(False) and compare with eager as it "
        "was, since eager becomes slower without it.",
    ),
    Cause(
        code="logging",
        title="Printing or logging inside the compiled part",
        words=r"\bprint\b|logging|warnings\.warn|reorder\w* a debugging function",
        remedy="Take it out of forward, or let it run after the graph: "
        "torch._dynamo.config.reorderable_logging_functions.add(print).",
    ),
)


def not_compiled(case: Case) -> Iterator[Advice]:
    """Zero graphs: the compiler gave up and said nothing."""
    if not case.story.has_compiled or case.story.graphs:
        return
    skipped = [row for row in case.story.compiles.values() if row.state in ("skipped", "failed")]
    reasons = [row.event.reason or row.event.kind for row in case.story.graph_breaks.values()]
    reasons += [row.reason for row in skipped if row.reason]
    why = f" The first reason given: {_sentence(reasons[0])}" if reasons else " No reason was given."
    yield Advice(
        code="not_compiled",
        title="Nothing was compiled",
        evidence=f"The compiler captured no graph, so every call ran eager, with the cost of checks on top.{why}",
        remedy="Take torch._dynamo.config.suppress_errors out of the script, to get the compiler's error in full "
        "instead of silence."
        if any(SUPPRESSED in reason for reason in reasons)
        else "Remove the first cause below, or call torch.compile on the part that can be captured. Run once with "
        "fullgraph on to get the compiler's error at its line instead of silence.",
        source=SKIPPED,
        severity="problem",
        places=places_of(skipped) or places_of([row.event for row in case.story.graph_breaks.values()]),
    )


def frame_skipped(case: Case) -> Iterator[Advice]:
    """A function that was given up as a whole because of one break in it."""
    if not case.story.graphs:
        return
    rows = [row.event for row in case.story.graph_breaks.values() if row.event.frame_skipped]
    if rows:
        places = places_of(rows)
        yield Advice(
            code="frame_skipped",
            title="A whole function runs eager",
            evidence=f"A graph break{place_text(places)} made the compiler skip the function around it: "
            f"{_sentence(rows[0].reason or rows[0].kind)}",
            remedy="A break inside a with block, a try block or a loop cannot be resumed. Move it out of the block, or "
            "move the block's heavy part into a function of its own, which is then compiled.",
            source=SKIPPED,
            severity="problem",
            places=places,
        )


def break_in_loop(case: Case) -> Iterator[Advice]:
    """A break that happens once for every round of a loop, but not by the loop's own test, which has its own advice."""
    rows = [row for row in case.story.graph_breaks.values() if row.event.in_loop and not row.event.ends_loop]
    if rows:
        is_compiled = case.story.graphs and not all(row.event.frame_skipped for row in rows)
        cost = (
            "Each round leaves and enters compiled code again, and the loop is not fused."
            if is_compiled
            else "A break in a loop cannot be resumed, so all of the function around the loop runs eager."
        )
        places = places_of([row.event for row in rows])
        times = sum(row.count for row in rows)
        yield Advice(
            code="break_in_loop",
            title="A graph break inside a loop",
            evidence=f"{units.plural(times, 'graph break')} in a loop{place_text(places)}: "
            f"{_sentence(rows[0].event.reason or rows[0].event.kind)}",
            remedy=f"{cost} Move the cause out of the loop, or put the loop's body into a function that has no break.",
            source=GRAPH_BREAKS,
            places=places,
        )


def breaks_by_cause(case: Case) -> Iterator[Advice]:
    """One piece of advice for each cause that has a remedy, and one for all other breaks together."""
    rows = list(case.story.graph_breaks.values())
    own = [row for row in rows if _is_of_the_step(case, row)]
    left = [row for row in rows if row not in own]
    if own:
        yield _whole_step(own)
    for cause in CAUSES:
        rows = [row for row in left if cause.explains(row)]
        left = [row for row in left if row not in rows]
        if rows:
            yield _advice(rows, code=f"graph_break_{cause.code}", title=cause.title, remedy=cause.remedy)
    for row in left:
        hints = " ".join(_sentence(hint) for hint in row.event.hints)
        remedy = hints or "Move the call out of forward, or wrap it with torch.compiler.disable or a custom operator."
        yield _advice([row], code="graph_break", title=row.event.kind or "Graph break", remedy=remedy)


def _is_of_the_step(case: Case, row: GraphBreakRow) -> bool:
    """Whether a break comes with compiling a whole step, whatever the model: at backward, and in torch's optimizers."""
    file = (row.event.file or "").replace("\\", "/")
    is_step = case.run.config.scope == "step"
    return is_step and (file.endswith("/compilescope/worker/training.py") or "/torch/optim/" in file)


def _whole_step(rows: list[GraphBreakRow]) -> Advice:
    places = places_of([row.event for row in rows])
    times = sum(row.count for row in rows)
    return Advice(
        code="whole_step_in_parts",
        title="The step is compiled in parts",
        evidence=f"{units.plural(times, 'graph break')}{place_text(places)}: torch leaves the graph at backward, and "
        "before and after the optimizer's step.",
        remedy="There is nothing to repair: the backward pass is compiled with the graphs that it belongs to, and the "
        "optimizer as graphs of its own. Compare with compiling the model alone to see what that brings.",
        source=OPTIMIZER,
        severity="note",
        places=places,
    )


def _advice(rows: list[GraphBreakRow], *, code: str, title: str, remedy: str) -> Advice:
    places = places_of([row.event for row in rows])
    times = sum(row.count for row in rows)
    first = rows[0].event
    why = first.explanation or first.reason or first.kind
    return Advice(
        code=code,
        title=title,
        evidence=f"{units.plural(times, 'graph break')}{place_text(places)}: {_sentence(why)}",
        remedy=remedy,
        source=_source(rows),
        places=places,
    )


def _source(rows: list[GraphBreakRow]) -> Source:
    return graph_break_source(next((row.event.id for row in rows if row.event.id), None))


def _sentence(text: str) -> str:
    """One line that ends with a full stop."""
    line = one_line(text)
    return line if line.endswith((".", "!", "?")) else f"{line}."


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (not_compiled, frame_skipped, break_in_loop, breaks_by_cause)
