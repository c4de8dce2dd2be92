"""Two configurations in one process, each with a model and a compile of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.backends import SCRIPT

from compilescope.domain.config import Config
from compilescope.domain.events import Failure, FirstCall, GraphBreak, Measured, Numerics, Stage
from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload

if TYPE_CHECKING:
    from conftest import Told, Worker

pytestmark = pytest.mark.slow

LEAN, THRICE = (Config(backend=name) for name in ("lean", "thrice"))


def ratio(told: Told) -> float:
    """How many times as fast the configuration was as its rival."""
    assert told.all(Failure) == [] and told.status == 0, told.log[-3000:]
    run = Run("a", config=LEAN, workload=Workload(script="s.py")).apply_all(told.events)
    found = measure(run).speedup
    assert found is not None
    return found.value


@pytest.mark.parametrize("phase", ["inference", "training"])
def test_that_a_play_off_times_one_configuration_against_the_other(worker: Worker, phase: str) -> None:
    script = worker.script(SCRIPT)

    told = worker.run(script, LEAN, rival=THRICE, task="playoff", threads=1, phase=phase)

    assert ratio(told) > 1.1
    assert ratio(worker.run(script, THRICE, rival=LEAN, task="playoff", threads=1, phase=phase)) < 1 / 1.1
    assert [row.name for row in told.all(Stage) if row.state == "begin"] == [
        "start", "load", "check", "compile", "warm_up", "measure", "done",
    ]  # fmt: skip
    # the two runs have told these
    assert not [told.all(kind) for kind in (FirstCall, Numerics, GraphBreak) if told.all(kind)]
    assert len(told.all(Measured)) == 1


def test_that_inductor_meets_another_backend_with_options_of_its_own(worker: Worker) -> None:
    told = worker.run(
        worker.script(SCRIPT),
        Config(options={"epilogue_fusion": False}),
        rival=THRICE,
        task="playoff",
        threads=1,
        budget=0.5,
    )

    assert ratio(told) > 1.1


def test_that_a_compiler_that_changes_the_whole_process_cannot_play(worker: Worker) -> None:
    told = worker.run(
        worker.script(SCRIPT), Config(backend="meddling"), rival=LEAN, task="playoff", threads=1, budget=0.3
    )

    error = told.one(Failure).error
    assert error is not None
    assert "meddling changes torch._dynamo.config.verbose for the whole process" in error.message


ONCE = """
import builtins, threading
if getattr(builtins, "was_loaded", False):
    raise OSError("only once")
builtins.was_loaded = True
model = Model()
model.lock = threading.Lock()
inputs = get_inputs()
"""


def test_that_one_model_is_not_shared_by_two_configurations(worker: Worker) -> None:
    told = worker.run(
        worker.script(SCRIPT + ONCE), LEAN, rival=THRICE, task="playoff", threads=1, entry="model", budget=0.3
    )

    error = told.one(Failure).error
    assert error is not None and "two models that are alike" in error.message
