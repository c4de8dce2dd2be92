"""A worker that calibrates: eager beside a copy of itself, on the way that a comparison goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compilescope.domain.events import Compile, FirstCall, Samples, Stage

if TYPE_CHECKING:
    from conftest import Worker

RESOURCES = Path(__file__).parents[2] / "resources" / "calibration"


@pytest.mark.slow
def test_that_a_calibration_times_two_equal_sides_and_compiles_nothing(worker: Worker) -> None:
    told = worker.run(RESOURCES / "small.py", task="calibrate", budget=0.2, arguments=("cpu",))

    assert told.status == 0
    assert {row.side for row in told.all(Samples)} == {"eager", "compiled"}
    assert {row.side for row in told.all(FirstCall)} == {"eager", "compiled"}
    assert told.all(Compile) == []
    stages = [row.name for row in told.all(Stage) if row.state == "end"]
    assert stages == ["start", "load", "compile", "eager", "check", "warm_up", "measure", "done"]
