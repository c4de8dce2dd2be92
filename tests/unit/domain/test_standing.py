"""How a run stands, in a few words."""

from __future__ import annotations

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.standing import standing
from compilescope.domain.workload import Workload


@pytest.mark.parametrize(
    ("outcome", "stage", "words"),
    [
        ("failed", "start", "failed at the start"),
        ("failed", "eager", "failed in eager"),
        ("crashed", "compile", "crashed while compiling"),
        ("timed_out", "measure", "timed out while measuring"),
        ("stopped", "measure", "stopped"),
        ("failed", "a stage of tomorrow", "failed"),
    ],
)
def test_that_a_run_that_did_not_finish_says_so_in_plain_words(outcome: str, stage: str, words: str) -> None:
    run = Run("r", config=Config(), workload=Workload(script="/model.py"))
    run.apply(e.Ended(outcome=outcome, error=e.RunError(stage=stage, type="SetupError", message="It went wrong.")))

    assert standing(run, None) == words


def test_that_a_run_that_was_skipped_while_it_waited_is_said_not_to_have_run() -> None:
    run = Run("r", config=Config(), workload=Workload(script="m.py")).apply_all([e.Ended(outcome="stopped")])

    assert standing(run, None) == "not run"
