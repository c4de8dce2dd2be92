"""How a run stands, in a few words for a table: waiting, compiling, measuring, or what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.domain.events import RunError
from compilescope.domain.measures import measure
from compilescope.domain.run import Run

if TYPE_CHECKING:
    from compilescope.domain.verdict import Verdict

_STAGES = {
    "start": "starting Python",
    "load": "loading the script",
    "eager": "calling eager",
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
    "no_difference": "no difference",
    "too_noisy": "too noisy",
}
# where nothing was timed, or too little
NO_SPEEDUP = "no speedup"
_WHEN = {
    "start": "at the start",
    "load": "while loading",
    "eager": "in eager",
    "compile": "while compiling",
    "check": "while checking",
    "warm_up": "while warming up",
    "measure": "while measuring",
    "profile": "while profiling",
}
_OUTCOMES = {"failed": "failed", "crashed": "crashed", "stopped": "stopped", "timed_out": "timed out"}
TONES = {
    "incorrect": "bad",
    "not_compiled": "bad",
    "failed": "bad",
    "slower": "warn",
    "faster": "good",
    "no_difference": "muted",
    "too_noisy": "muted",
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
        return ending(run)
    if verdict is None:
        return "judging"
    if verdict.kind == "too_noisy" and measure(run).speedup is None:
        return NO_SPEEDUP
    return _KINDS.get(verdict.kind, verdict.kind)


def ending(run: Run) -> str:
    """How a run that did not finish came to its end: "failed while compiling", "stopped", "not run"."""
    if run.outcome == "stopped" and not run.processes and run.error is None:
        return "not run"
    word = _OUTCOMES.get(run.outcome or "", "ended")
    when = when_failed(run.error) if run.error and run.outcome != "stopped" else ""
    return f"{word} {when}".rstrip()


def when_text(stage: str | None) -> str:
    """A stage as part of a sentence: "while compiling"; empty where it has no name."""
    return _WHEN.get(stage or "", "")


def when_failed(error: RunError) -> str:
    """The same of an error; one of compiled code that ran is none of the compiler."""
    return "while compiled code ran" if error.ran else when_text(error.stage)


def tone(run: Run, verdict: Verdict | None) -> str:
    """The colour token that goes with it."""
    if not run.is_over:
        return "accent" if run.processes else "muted"
    if run.outcome == "stopped":
        return "muted"
    if run.outcome != "finished":
        return "bad"
    return TONES.get(verdict.kind, "") if verdict else "muted"
