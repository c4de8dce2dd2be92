"""The runs that a calibration asks for: eager beside itself, a small callable and a larger one, several times each."""

from __future__ import annotations

from pathlib import Path

from compilescope import paths
from compilescope.domain.workload import Measurement, Workload
from compilescope.engine.request import RunRequest, default_python

# of each callable; with fewer, chance decides
REPEATS = 3
BUDGET_S = 4.0


def calibration_requests(*, device: str | None = None, python: str = "") -> list[RunRequest]:
    """`device`: None for the first CUDA device, or else the CPU. All have the same budget and share no process."""
    return [
        RunRequest(
            task="calibrate",
            workload=Workload(script=str(script), device=device, arguments=(device,) if device else ()),
            # all of the budget: it is not a question of how soon the interval is narrow
            measurement=Measurement(budget_s=BUDGET_S, interval=0.0),
            python=python or default_python(),
        )
        for _ in range(REPEATS)
        for script in scripts()
    ]


def scripts() -> list[Path]:
    """The callables, as model scripts."""
    return sorted((paths.resources() / "calibration").glob("*.py"))
