"""What a graph break costs, as far as that is known: what it prevents, and what torch measured of the checks it adds.

How much time one break takes of a call is measured by nobody, so no number is given for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.domain import units
from compilescope.domain.run import CompileRow, GraphBreakRow, ProcessStory, Run


def costs(run: Run, row: GraphBreakRow) -> list[str]:
    """Sentences about one break of a run."""
    event = row.event
    if event.frame_skipped:
        function = f"The function {event.function}" if event.function else "The function around it"
        effects = [f"{function} runs eager as a whole: only functions that it calls may be compiled, each by itself."]
    elif run.story and run.story.has_compiled and not run.story.graphs:
        effects = ["No graph was captured in this run, so all of it runs eager, what is around this line too."]
    else:
        effects = list(_prevented(run, in_loop=bool(event.in_loop)))
    return [*effects, *_checks(run.story), "How much time of a call it takes is not measured."]


def _prevented(run: Run, *, in_loop: bool) -> Iterator[str]:
    rounds = ", in every round of the loop" if in_loop else ""
    yield f"A call that comes here leaves compiled code and enters it again behind it{rounds}."
    yield "Nothing is fused across this line, and what is needed behind it is written to memory."
    if any(event.state == "recorded" for process in run.processes for event in process.cudagraphs):
        yield "A CUDA graph ends here, and another one begins."


def _checks(story: ProcessStory | None) -> Iterator[str]:
    """How many compiled pieces there are, and what their guards take by torch's own measurement."""
    pieces = _pieces(story) if story else []
    if len(pieces) < 2:
        return
    took = [piece.guard_latency_us / 1e6 for piece in pieces if piece.guard_latency_us is not None]
    measured = f" ({units.duration_range(took)}, as torch measured it while compiling)" if took else ""
    yield f"With all breaks there are {len(pieces)} compiled pieces; the guards of each are checked first{measured}."


def _pieces(story: ProcessStory) -> list[CompileRow]:
    """The last compile of each piece of code that has guards; a recompile is another version of its piece."""
    pieces: dict[str, CompileRow] = {}
    for row in story.compiles.values():
        if row.state == "end" and row.guards:
            pieces[row.compile_id.rpartition("/")[0]] = row
    return list(pieces.values())
