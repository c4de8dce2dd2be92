"""The noise floor that eager beside eager gives, and what it is stored with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest

from compilescope.domain.calibration import Calibration, Machine, Trial, calibration_of
from compilescope.domain.events import Ended, Environment
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR
from compilescope.domain.verdict import judge, noise_floor_text

RunMaker = Callable[..., Run]
MACHINE = Machine(host="lab", device="Test CPU", torch="2.13.0")


def calibration(*speedups: float, load: float | None = 0.3) -> Calibration:
    trials = tuple(
        Trial(callable="small", eager_s=1e-4, speedup=value, low=value - 0.01, high=value + 0.01) for value in speedups
    )
    return Calibration(machine=MACHINE, created=1.0, load_average=load, trials=trials)


def test_that_the_noise_floor_is_what_98_of_100_comparisons_of_eager_with_itself_stay_below():
    found = calibration(1.01, 1 / 1.01, 1.01, 1 / 1.01, 1.01, 1 / 1.01)

    # Student's t for six is 3.143
    assert found.noise_floor == pytest.approx(math.exp(3.143 * math.log(1.01)) - 1)
    assert not found.problem


def test_that_a_calm_calibration_does_not_lower_the_floor():
    assert calibration(1.0, 1.0001, 0.9999).noise_floor == NOISE_FLOOR
    assert calibration().noise_floor == NOISE_FLOOR


def test_that_a_busy_hour_is_no_calibration():
    found = calibration(1.4, 0.7, 1.1, load=9.0)

    assert "too restless" in found.problem and "9.0" in found.problem


def test_that_a_calibration_survives_its_json():
    found = calibration(1.01, 0.98)

    assert Calibration.from_json(found.to_json()) == found


def test_that_numbers_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="cannot be"):
        Calibration.from_json(calibration(1.0, -1.0).to_json())


def test_that_runs_make_a_calibration_of_their_machine(make_run: RunMaker):
    environment = Environment(torch="2.13.0", device="cpu", cpu="Test CPU")
    runs = [make_run(f"r{i}", speedup=1.0, seed=i, extra=[environment]) for i in range(3)]

    found = calibration_of(runs, "lab", 5.0)

    assert found is not None
    assert found.machine == MACHINE
    assert [trial.callable for trial in found.trials] == ["model"] * 3
    assert all(trial.low < 1.0 < trial.high for trial in found.trials)


def test_that_a_run_that_did_not_finish_leaves_no_calibration(make_run: RunMaker):
    runs = [make_run("a", speedup=1.0), make_run("b", speedup=1.0, ended=Ended(outcome="stopped"))]

    assert calibration_of(runs, "lab", 5.0) is None


def test_that_a_processor_is_told_by_its_name_and_a_gpu_by_its_own():
    on_cpu = Environment(torch="2.13.0", device="cpu", cpu="Test CPU")
    on_gpu = Environment(torch="2.13.0", device="NVIDIA H200", cpu="Test CPU")

    assert Machine.of("lab", on_cpu) == MACHINE
    assert Machine.of("lab", on_gpu) == dataclasses.replace(MACHINE, device="NVIDIA H200")
    assert Machine.of("lab", Environment(device="cpu", cpu="Test CPU")) is None


def test_that_a_verdict_says_that_the_floor_keeps_it_from_being_a_difference(make_run: RunMaker):
    run = make_run(speedup=1.03)

    free, held = judge(run), judge(run, noise_floor=0.05)

    assert free is not None and free.kind == "faster"
    assert held is not None and held.kind == "no_difference"
    assert "within the noise floor of 5.0 %" in held.summary


def test_that_a_floor_says_where_it_comes_from():
    assert "least that is assumed" in noise_floor_text(NOISE_FLOOR)
    assert "1.2 %" in noise_floor_text(0.012) and "calibration" in noise_floor_text(0.012)
