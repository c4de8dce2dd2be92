"""What the answer card says, from what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from compilescope.domain import prose, units, words
from compilescope.domain.comparison import Recommendation
from compilescope.domain.estimate import rough, total_s
from compilescope.domain.events import RunError
from compilescope.domain.matrix import Row
from compilescope.domain.run import Run
from compilescope.domain.standing import progress, when_failed
from compilescope.ui.findings import Findings
from compilescope.ui.state import AppState

JUDGING = "Judging what was measured…"
UNTOUCHED = "torch.compile gave the model back as it was, without an error."


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`tone`: good, warn, bad, busy or empty. `action`: what stands at the right side."""

    title: str = ""
    text: str = ""
    tone: str = ""
    snippet: str = ""
    action: Literal["run", "stop", "snippet", ""] = ""
    can_run: bool = False


def answer(state: AppState, findings: Findings) -> Answer:
    if state.trace is not None:
        return _trace(state.trace, state.runs)
    if state.script is None:
        return Answer(title="Drop a model script here", text="Any Python file that builds a torch.nn.Module.")
    if state.is_busy:
        return _busy(state, findings)
    if state.is_calibrating:
        return Answer(
            title="Calibrating this machine",
            text="Eager is compared with itself, to know how small a difference means something here.",
            tone="busy",
            action="stop",
        )
    if state.is_inspecting:
        return Answer(
            title=f"Inspecting {state.script.name}",
            text="The script runs, to build its model and inputs. Nothing is compiled.",
            tone="busy",
            action="stop",
        )
    if state.runs and all(run.is_over for run in state.runs):
        return _conclusion(state.runs, findings)
    return _ready(state)


def _trace(path: Path, runs: Sequence[Run]) -> Answer:
    """What a saved trace came to; timings are none of it."""
    processes = units.plural(len(runs), "process", "processes")
    note = f"A saved trace of {processes}. Nothing was measured in it; the panes say what the compiler did."
    empty = [run.label for run in runs if run.story and not run.story.graphs]
    if empty:
        return Answer(title=f"Not compiled: no graph was captured in {', '.join(empty)}", text=note, tone="bad")
    stories = [run.story for run in runs if run.story]
    graphs = units.plural(sum(story.graphs for story in stories), "graph")
    breaks = units.plural(sum(story.break_count for story in stories), "graph break")
    recompiles = units.plural(sum(story.recompile_count for story in stories), "recompile")
    return Answer(title=f"{path.name}: {graphs}, {breaks}, {recompiles}", text=note)


def _ready(state: AppState) -> Answer:
    selection = state.selection
    problem = state.scan.problem if state.scan else ""
    if problem and not (state.scan and state.scan.entries):
        return Answer(title="Nothing to compare in this script", text=problem, tone="bad")
    if selection.missing:
        text = "Every combination of what is ticked runs."
        return Answer(title=selection.missing, text=text, tone="warn", action="run")
    return Answer(
        title=selection.plan(state.script, state.earlier),
        text="Each runs twice, with an empty and with a warm cache, in turns with eager of the same phase and "
        "precision.",
        action="run",
        can_run=True,
    )


def _busy(state: AppState, findings: Findings) -> Answer:
    runs = state.runs
    current = state.run(state.running_id)
    done = sum(run.is_over for run in runs)
    number = runs.index(current) + 1 if current else min(done + 1, len(runs))
    if state.is_stopping:
        return Answer(title="Stopping…", text="The processes of the run are being ended.", tone="busy", action="stop")
    if state.play_off is not None:
        text = "They cannot be told apart by their own runs, so they are timed in turns in one process."
        title = f"{state.play_off.label}: {progress(state.play_off)}"
        return Answer(title=title, text=text, tone="busy", action="stop")
    if done == len(runs):
        return Answer(title=JUDGING, tone="busy", action="stop")
    name = current.label if current else "the next configuration"
    title = f"{name}: {progress(current)}" if current else f"Starting {name}"
    at_once = f", {len(state.running)} at once" if len(state.running) > 1 else ""
    where = f"Configuration {number} of {len(runs)}{at_once}.{_time_left(state)}"
    alarm = _not_compiled(runs)
    if alarm:
        return Answer(title=alarm, text=f"{where} Now {title}.", tone="bad", action="stop")
    return Answer(title=title, text=f"{where} {_so_far(runs, findings)}".strip(), tone="busy", action="stop")


def _time_left(state: AppState) -> str:
    """What the rest takes, as far as that can be told before it is over."""
    left = [run for run in state.runs if not run.is_over]
    if len(left) < 2:
        return ""
    seconds = []
    for run in left:
        row = Row(config=run.config, workload=run.workload, label=run.label)
        spent_s = sum(process.last_at for process in run.processes)
        expected_s = state.selection.estimate(row, state.earlier).seconds
        seconds.append(max(expected_s - spent_s, 0.0))
    return f" About {rough(total_s(seconds, len(state.selection.cards)))} left."


def _so_far(runs: Sequence[Run], findings: Findings) -> str:
    parts = []
    for run in runs:
        verdict = findings.of(run).verdict
        if verdict:
            parts.append(f"{run.label}: {verdict.summary.removesuffix('.')}.")
    return " ".join(parts[-2:])


def _not_compiled(runs: Sequence[Run]) -> str:
    """The finding that must not be overlooked, as soon as it is certain."""
    stories = [(run.label, run.story) for run in runs if run.story and run.story.has_compiled]
    if bare := [name for name, story in stories if story.graphs == 0]:
        return f"Not compiled: {', '.join(bare)} captured no graph and {'runs' if len(bare) == 1 else 'run'} eager"
    if unused := [name for name, story in stories if story.entries_per_call == 0]:
        return f"Not compiled: {', '.join(unused)} captured graphs that no call enters"
    return ""


def _conclusion(runs: Sequence[Run], findings: Findings) -> Answer:
    failed = [run for run in runs if run.outcome != "finished"]
    if all(run.outcome == "stopped" for run in runs):
        return Answer(title="Stopped", text="No configuration was measured to the end.", action="run", can_run=True)
    if len(failed) == len(runs):
        return _all_failed(failed)
    recommendation = findings.recommendation
    known = [findings.of(run) for run in runs]
    if recommendation is None or any(found.verdict is None and not found.problem for found in known):
        return Answer(title=JUDGING, tone="busy")
    alarm = _not_compiled(runs)
    if alarm:
        return Answer(
            title=alarm,
            text=" ".join([UNTOUCHED, prose.summary(recommendation), *recommendation.caveats]),
            tone="bad",
        )
    return recommended(recommendation, failed)


def recommended(recommendation: Recommendation, failed: Sequence[Run]) -> Answer:
    also = [f"{units.plural(len(failed), 'configuration')} did not finish."] if failed else []
    return Answer(
        title=prose.headline(recommendation),
        text=" ".join([*also, *prose.sentences(recommendation), *recommendation.caveats]),
        tone="good" if recommendation.config else "warn",
        snippet=recommendation.snippet,
        action="snippet" if recommendation.snippet else "",
    )


def _all_failed(failed: Sequence[Run]) -> Answer:
    error = next((run.error for run in failed if run.error), None)
    if error is None:
        names = ", ".join(run.label for run in failed)
        return Answer(title=f"{names} did not finish", text="See the log.", tone="bad")
    message = next((line for line in error.message.splitlines() if line.strip()), error.type)
    return Answer(title=message, text=" ".join(part for part in (fault(error), error.hint) if part), tone="bad")


def fault(error: RunError) -> str:
    """Whose fault an error is, where the stage tells."""
    where = words.where(error.file, error.line)
    if error.stage == "eager":
        return f"The model fails in eager too{where}, without torch.compile."
    if error.stage == "load":
        return f"The script could not be loaded{where}."
    when = when_failed(error)
    return f"It ended {when}{where}." if when else ""
