"""Calibrating from the menu: what is said, stored and heeded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilescope.domain.statistics import NOISE_FLOOR
from compilescope.engine import calibration
from compilescope.store import calibrations


@pytest.fixture
def callables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is calibrated with, as scripts for the fake worker: eager is 0.5 % off itself. A home of its own, too."""
    folder = tmp_path / "callables"
    folder.mkdir()
    for name in ("small", "large"):
        (folder / f"{name}.py").write_text(json.dumps({"mode": "ok", "compiled_s": 2e-3, "pause": 0.001}))
    monkeypatch.setattr(calibration, "scripts", lambda: sorted(folder.glob("*.py")))
    monkeypatch.setattr(calibrations, "place", lambda: tmp_path / "calibrations.json")
    return folder


@pytest.mark.usefixtures("callables")
def test_that_a_calibration_is_told_stored_and_heeded_by_the_next_comparison(desk: Any) -> None:
    action = desk.window.actions_by_id["calibrate"]

    action.trigger()
    assert not action.isEnabled()
    assert desk.window.actions_by_id["stop"].isEnabled()
    desk.wait(lambda: desk.state.is_idle)

    (found,) = calibrations.calibrations()
    assert NOISE_FLOOR < found.noise_floor < 0.02
    assert desk.window.messages.text.startswith("Calibrated. Noise floor 1.5 %")
    assert action.isEnabled()

    desk.run_fake("ok", compiled_s=2e-3)
    desk.wait(desk.is_over)

    assert desk.state.comparison.noise_floor == found.noise_floor
    desk.store.flush()
    assert desk.store.load(desk.state.comparison.id).noise_floor == found.noise_floor


def test_that_a_stopped_calibration_leaves_nothing(desk: Any, callables: Path) -> None:
    for path in callables.glob("*.py"):
        path.write_text(json.dumps({"mode": "hang"}))
    desk.window.calibrate()
    desk.wait(lambda: bool(desk.window.messages.text))

    desk.window.stop()
    desk.wait(lambda: desk.state.is_idle)

    assert "stopped" in desk.window.messages.text
    assert calibrations.calibrations() == []


def test_that_a_failed_calibration_says_why(desk: Any, callables: Path) -> None:
    for path in callables.glob("*.py"):
        path.write_text(json.dumps({"mode": "fail"}))

    desk.window.calibrate()
    desk.wait(lambda: desk.state.is_idle)

    assert "no such thing" in desk.window.messages.text
    assert calibrations.calibrations() == []
