"""The figures of runs that go on, as the window asks for them."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.measures import Measures
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload
from compilescope.ui import findings


def test_that_a_run_whose_figures_take_long_is_measured_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run("r", config=Config(), workload=Workload(script="m.py")).apply_all([e.Hello()])
    # it is asked at 0 s, which takes 0.3 s, at 1 s, 9 s and 11 s
    clock = chain((100.0, 100.3, 101.0, 109.0, 111.0), repeat(111.3))
    asked: list[Run] = []
    monkeypatch.setattr(findings.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(findings, "measure", lambda run: asked.append(run) or Measures())
    found = findings.Findings()

    counts = []
    for _ in range(4):
        found.of(run)
        counts.append(len(asked))
    found.close()

    assert counts == [1, 1, 1, 2]
