"""How a run stands, in a few words for a table: waiting, compiling, measuring, or what it came to."""

from __future__ import annotations

from compilescope.domain.comparison import Verdict
from compilescope.domain.run import Run

_STAGES = {
    "start": "starting Python",
    "load": "loading the script",
    "eager": "eager first",
    "compile": "compiling",
    "check": "checking results",
    "warm_up": "warming up",
    "measure": "measuring",
    "profile": "profiling",
    "done": "finishing",
}
_KINDS = {
    "incorrect": "wrong results",
    "not_compiled": "not compiled",
    "slower": "slower",
    "faster": "faster",
    "no_difference": "no clear difference",
}
_OUTCOMES = {"failed": "failed", "crashed": "crashed", "stopped": "stopped", "timed_out": "timed out"}
TONES = {
    "incorrect": "bad",
    "not_compiled": "bad",
    "failed": "bad",
    "slower": "warn",
    "faster": "good",
    "no_difference": "muted",
}


def progress(run: Run) -> str:
    """What a run that goes on is doing: "cold start, compiling"."""
    if not run.processes:
        return "waiting"
    start = run.processes[-1].start
    stage = run.current_stage
    doing = _STAGES.get(stage.name, stage.name) if stage else "starting Python"
    return f"{start} start, {doing}"


def brief_progress(run: Run) -> str:
    """The same for a narrow column: "cold: compiling"."""
    return progress(run).replace(" start,", ":")


def standing(run: Run, verdict: Verdict | None) -> str:
    """A few words: the verdict, else the outcome, else the progress."""
    if not run.is_over:
        return brief_progress(run)
    if run.is_trace and verdict is None:
        return "saved trace"
    if run.outcome != "finished":
        error = run.error
        word = _OUTCOMES.get(run.outcome or "", "ended")
        return f"{word}: {error.type}" if error and error.type and run.outcome == "failed" else word
    return _KINDS.get(verdict.kind, verdict.kind) if verdict else "judging"


def tone(run: Run, verdict: Verdict | None) -> str:
    """The colour token that goes with it."""
    if not run.is_over:
        return "accent" if run.processes else "muted"
    if run.outcome == "stopped":
        return "muted"
    if run.outcome != "finished":
        return "bad"
    return TONES.get(verdict.kind, "") if verdict else "muted"
