"""A request into the command of a worker process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilescope.domain.config import Config
from compilescope.domain.workload import Job, Measurement, Workload
from compilescope.engine.command import command, environment, worker_program
from compilescope.engine.request import RunRequest


def request(**changes: Any) -> RunRequest:
    values: dict[str, Any] = {"id": "abc", "config": Config(), "workload": Workload(script="models/net.py")}
    return RunRequest(**(values | changes))


def test_that_the_worker_is_started_by_its_file_in_the_scripts_folder() -> None:
    made = command(request(python="/opt/python"), "cold", cache=None, program=worker_program())

    assert made.arguments[:2] == ("/opt/python", "-u")
    assert made.arguments[2].endswith("worker/__main__.py")
    assert made.folder == str(Path.cwd() / "models")
    assert made.job.workload and made.job.workload.script == str(Path.cwd() / "models" / "net.py")


def test_that_cold_and_warm_share_the_measurement_budget_and_not_the_trace() -> None:
    cold, warm = (
        command(request(measurement=Measurement(budget_s=8.0)), start, cache=None, program=worker_program()).job
        for start in ("cold", "warm")
    )

    assert cold.measurement.budget_s == warm.measurement.budget_s == 4.0
    assert cold.trace != warm.trace
    assert cold.trace and cold.trace.endswith("runs/abc/trace.log")


def test_that_the_job_survives_its_line() -> None:
    job = command(request(), "warm", cache=None, program=worker_program()).job

    assert Job.decode(job.encode()) == job
    assert "\n" not in job.encode()


def test_that_code_stored_in_the_users_own_cache_is_made_without_our_comments() -> None:
    fresh, mine = (
        Job.decode(command(request(cache=cache), "cold", cache=None, program=worker_program()).job.encode())
        for cache in ("fresh", "mine")
    )

    assert (fresh.kernel_sources, mine.kernel_sources) == (True, False)


def test_that_an_inspection_writes_no_trace() -> None:
    assert command(request(task="inspect"), "cold", cache=None, program=worker_program()).job.trace is None


def test_that_the_environment_is_the_users_with_our_changes() -> None:
    base = {"PATH": "/bin", "TORCH_COMPILE_JOB_ID": "x", "COMPILESCOPE_RUN": "outer", "LD_LIBRARY_PATH": "/mine"}

    made = environment(base, "abc", Path("/cache/abc"))

    assert made["PATH"] == "/bin"
    assert made["LD_LIBRARY_PATH"] == "/mine"
    assert made["COMPILESCOPE_RUN"] == "abc"
    assert made["TORCHINDUCTOR_CACHE_DIR"] == "/cache/abc"
    assert made["TRITON_CACHE_DIR"] == "/cache/abc/triton"
    assert "TORCH_COMPILE_JOB_ID" not in made


def test_that_the_users_own_cache_is_left_as_it_is() -> None:
    made = environment({"TORCHINDUCTOR_CACHE_DIR": "/theirs"}, "abc", None)

    assert made["TORCHINDUCTOR_CACHE_DIR"] == "/theirs"
    assert "TRITON_CACHE_DIR" not in made


def test_that_a_bundle_does_not_lend_its_libraries_to_the_users_interpreter() -> None:
    base = {"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": "/mine", "PYTHONHOME": "/bundle"}

    made = environment(base, "abc", None, frozen=True)

    assert made["LD_LIBRARY_PATH"] == "/mine"
    assert "PYTHONHOME" not in made
    assert "LD_LIBRARY_PATH_ORIG" not in made


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "a\n"])
def test_that_a_name_that_is_no_folder_cannot_name_a_run(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a run"):
        request(id=name)
