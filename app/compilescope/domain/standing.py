"""How a run stands, in a few words: waiting, compiling, measuring, or what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.domain import words
from compilescope.domain.events import RunError
from compilescope.domain.measures import measure
from compilescope.domain.run import Run

if TYPE_CHECKING:
    from compilescope.domain.verdict import Verdict


def progress(run: Run) -> str:
    """What a run that goes on is doing: "cold start, compiling"."""
    if not run.processes:
        return "waiting"
    stage = run.current_stage
    return f"{run.processes[-1].start} start, {words.doing(stage.name if stage else None)}"


def verdict_word(run: Run, verdict: Verdict | None) -> str:
    """What a run came to, in the word that every output has for it: the verdict's, else the outcome's."""
    if not run.is_over:
        return "running" if run.processes else "waiting"
    if run.outcome == "stopped" and not run.processes and run.error is None:
        return "not run"
    if run.outcome != "finished":
        return words.OUTCOMES.get(run.outcome or "", "ended")
    if verdict is None:
        return "saved trace" if run.is_trace else "not judged"
    if verdict.kind == "too_noisy" and measure(run).speedup is None:
        return words.NO_SPEEDUP
    return words.VERDICTS[verdict.kind]


def standing(run: Run, verdict: Verdict | None) -> str:
    """The same for who watches: what a run is doing, and when one came to its end: "failed while compiling"."""
    if not run.is_over:
        return progress(run).replace(" start,", ":")
    when = when_failed(run.error) if run.error and run.outcome not in ("finished", "stopped") else ""
    return f"{verdict_word(run, verdict)} {when}".rstrip()


def when_failed(error: RunError) -> str:
    """When an error came; one of compiled code that ran is none of the compiler."""
    return "while compiled code ran" if error.ran else words.when(error.stage)


def tone(run: Run, verdict: Verdict | None) -> words.Tone:
    """The tone of both."""
    if not run.is_over:
        return "accent" if run.processes else "muted"
    if run.outcome == "stopped":
        return "muted"
    if run.outcome != "finished":
        return "bad"
    return words.TONES[verdict.kind] if verdict else "muted"
