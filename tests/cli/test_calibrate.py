"""`compilescope calibrate` around a fake worker: what it stores, tells, and refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compilescope.cli import main
from compilescope.engine import calibration, supervisor
from compilescope.store import calibrations

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fakes" / "fake_worker.py"
Callables = Callable[..., None]


@pytest.fixture
def callables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callables:
    """What is calibrated with, as scripts for the fake worker."""
    monkeypatch.setattr(calibration, "scripts", lambda: sorted(tmp_path.glob("*.py")))
    monkeypatch.setattr(calibrations, "place", lambda: tmp_path / "calibrations.json")
    monkeypatch.setattr(supervisor, "worker_program", lambda: FAKE_WORKER)

    def make(**options: object) -> None:
        for name in ("small", "large"):
            (tmp_path / f"{name}.py").write_text(json.dumps({"mode": "ok", "pause": 0.001, **options}))

    return make


def test_that_the_noise_floor_is_told_and_stored(callables: Callables, capsys: pytest.CaptureFixture[str]) -> None:
    callables(compiled_s=2e-3)

    assert main(["calibrate", "--python", sys.executable]) == 0

    (found,) = calibrations.calibrations()
    assert found.machine.device == "A processor" and found.machine.torch == "2.13.0"
    assert sorted(trial.callable for trial in found.trials) == ["large"] * 3 + ["small"] * 3
    assert "Noise floor 1.5 %, by this machine's calibration" in capsys.readouterr().out


def test_that_a_restless_machine_is_not_calibrated(callables: Callables, capsys: pytest.CaptureFixture[str]) -> None:
    callables(compiled_s=1e-3)

    assert main(["calibrate"]) == 1

    assert calibrations.calibrations() == []
    assert "too restless to be calibrated" in capsys.readouterr().err


def test_that_a_failure_ends_a_calibration_with_its_reason(
    callables: Callables, capsys: pytest.CaptureFixture[str]
) -> None:
    callables(mode="fail")

    assert main(["calibrate"]) == 1

    assert "no such thing" in capsys.readouterr().err
