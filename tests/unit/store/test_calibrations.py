"""Calibrations in the user's folder, and comparisons that heed them."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compilescope.domain.calibration import Calibration, Machine, Trial
from compilescope.domain.comparison import Comparison
from compilescope.domain.events import Environment
from compilescope.domain.run import Run
from compilescope.recording import RecordedFeed
from compilescope.store import calibrations

TRIALS = tuple(Trial(callable="small", eager_s=1e-4, speedup=value, low=0.9, high=1.1) for value in (1.01, 0.99, 1.02))
HERE = Machine(host=platform.node(), device="Test CPU", torch="2.13.0")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path))
    yield


def calibration(machine: Machine = HERE, created: float = 1.0) -> Calibration:
    return Calibration(machine=machine, created=created, load_average=None, trials=TRIALS)


def test_that_the_latest_calibration_of_a_machine_counts():
    other = dataclasses.replace(HERE, torch="2.14.0")
    for row in (calibration(), calibration(other), calibration(created=2.0)):
        calibrations.keep(row)

    assert len(calibrations.calibrations()) == 2
    assert calibrations.calibration_for(HERE) == calibration(created=2.0)
    assert calibrations.calibration_for(dataclasses.replace(HERE, device="NVIDIA H200")) is None
    assert calibrations.calibration_for(None) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"calibrations": [{}]}', '{"calibrations": 7}'])
def test_that_a_damaged_file_counts_for_nothing_and_is_set_aside(text: str):
    calibrations.place().write_text(text, "utf-8")

    assert calibrations.calibrations() == []
    calibrations.keep(calibration())

    assert calibrations.calibrations() == [calibration()]
    assert calibrations.place().with_suffix(".damaged").read_text("utf-8") == text


def test_that_a_comparison_is_judged_by_the_calibration_of_its_machine(make_run: Callable[..., Run]):
    calibrations.keep(calibration())
    environment = Environment(torch="2.13.0", device="cpu", cpu="Test CPU")
    comparison = Comparison(id="c", created=0.0, runs=[make_run(extra=[environment])])

    RecordedFeed(lambda: None).heed_calibration(comparison, comparison.runs[0])

    assert comparison.noise_floor == calibration().noise_floor > 0.005


def test_that_a_machine_that_was_not_calibrated_leaves_the_floor(make_run: Callable[..., Run]):
    comparison = Comparison(id="c", created=0.0, runs=[make_run()])

    RecordedFeed(lambda: None).heed_calibration(comparison, comparison.runs[0])

    assert comparison.noise_floor == 0.005
