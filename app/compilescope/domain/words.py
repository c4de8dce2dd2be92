"""Every word for what a run does and comes to, once for all outputs: verdicts and their tones, stages, phases, places.

A tone is a token; what colour it has is the theme's and the report's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

Tone = Literal["", "good", "warn", "bad", "muted", "accent"]

UNKNOWN = "–"
NOWHERE = "an unknown place"
# a finished run of which nothing was timed, or too little
NO_SPEEDUP = "no speedup"

VERDICTS: Mapping[str, str] = {
    "failed": "failed",
    "incorrect": "wrong results",
    "not_compiled": "not compiled",
    "too_noisy": "too noisy",
    "slower": "slower",
    "faster": "faster",
    "no_difference": "no difference",
}
TONES: Mapping[str, Tone] = {
    "failed": "bad",
    "incorrect": "bad",
    "not_compiled": "bad",
    "too_noisy": "muted",
    "slower": "warn",
    "faster": "good",
    "no_difference": "muted",
}
OUTCOMES: Mapping[str, str] = {
    "finished": "finished",
    "failed": "failed",
    "crashed": "crashed",
    "stopped": "stopped",
    "timed_out": "timed out",
}
# how the results stand beside eager's
AGREEMENTS: Mapping[str, str] = {
    "match": "match",
    "differ": "differ",
    "nondeterministic": "nondeterministic",
    "not_checked": "not checked",
}
AGREEMENT_TONES: Mapping[str, Tone] = {"differ": "bad", "nondeterministic": "warn"}
# what a run does in a stage, and when it ended
STAGES: Mapping[str, tuple[str, str]] = {
    "start": ("starting Python", "at the start"),
    "load": ("loading the script", "while loading"),
    "eager": ("calling eager", "in eager"),
    "compile": ("compiling", "while compiling"),
    "check": ("checking results", "while checking"),
    "warm_up": ("warming up", "while warming up"),
    "measure": ("measuring", "while measuring"),
    "profile": ("profiling", "while profiling"),
    "done": ("finishing", ""),
}
# groups of compiler phases
PHASES: Mapping[str, str] = {
    "dynamo": "Dynamo",
    "guards": "guards",
    "aot": "AOTAutograd",
    "backward": "backward",
    "inductor": "Inductor",
    "codegen": "code generation",
    "kernels": "kernel builds",
    "autotune": "autotuning",
    "cudagraphs": "CUDA graphs",
    "other": "other",
}


def doing(stage: str | None) -> str:
    """What a run does in a stage: "compiling"."""
    return STAGES.get(stage or "start", (stage or "", ""))[0]


def when(stage: str | None) -> str:
    """A stage as part of a sentence: "while compiling"; empty where it has no name."""
    return STAGES.get(stage or "", ("", ""))[1]


def phase(group: str) -> str:
    return PHASES.get(group, group)


def file_name(path: str) -> str:
    """The last part of a path, of whatever system it is."""
    return PurePosixPath(path.replace("\\", "/")).name


def place(file: str | None, line: int | None = None, otherwise: str = NOWHERE) -> str:
    """A place in code as a reader finds it: "net.py:9"."""
    if not file:
        return otherwise
    return f"{file_name(file)}:{line}" if line else file_name(file)


def where(file: str | None, line: int | None) -> str:
    """Behind a sentence: " (net.py:9)", or nothing."""
    return f" ({place(file, line)})" if file and line else ""


def full_place(file: str | None, line: int | None = None) -> str:
    """The same with the whole path, for a tooltip; empty where it is not known."""
    return f"{file}:{line}" if file and line else file or ""


def upper(text: str) -> str:
    """As a sentence begins."""
    return text[:1].upper() + text[1:]
