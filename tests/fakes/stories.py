"""Runs folded from the recorded traces: the same road that a saved trace takes."""

from __future__ import annotations

from pathlib import Path

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.trace import translate
from compilescope.domain.workload import Workload

TRANSCRIPTS = Path(__file__).resolve().parents[1] / "transcripts" / "h200"


def transcript(name: str) -> Path:
    return TRANSCRIPTS / f"{name}.log.gz"


def recorded_run(cold: str, warm: str = "", *, mode: str | None = None, run_id: str = "recorded") -> Run:
    """A finished run whose processes told what was recorded."""
    run = Run(run_id, config=Config(mode=mode), workload=Workload(script="/home/user/models/model.py"))
    for start, name in (("cold", cold), ("warm", warm)):
        if name:
            run.apply(e.Hello(start=start, cache_was_empty=start == "cold"))
            run.apply_all(translate(transcript(name)))
            run.apply(e.FirstCall(side="compiled", duration_s=3.5 if start == "cold" else 1.5))
    run.apply(e.Ended(outcome="finished"))
    return run
