"""Runs made from events, as a worker would tell them, and timings with the noise of real machines."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

import pytest
from fakes.played import process_events

from compilescope.domain import events as e
from compilescope.domain import measures
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval, Pairs
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]


@pytest.fixture
def make_run(monkeypatch: pytest.MonkeyPatch) -> RunMaker:
    """A finished run of two processes; `extra` events come last in the cold one, `ended` None leaves it going on.

    `interval`: value, low and high of the speedup, for a test of what is made of them.
    """
    given: dict[Run, Interval] = {}
    worked_out = measures._speedup
    monkeypatch.setattr(measures, "_speedup", lambda run, pairs: given.get(run) or worked_out(run, pairs))

    def make(
        run_id: str = "run",
        *,
        config: Config | None = None,
        workload: Workload | None = None,
        extra: Iterable[e.Event] = (),
        ended: e.Ended | None = e.Ended(),  # noqa: B008 - frozen
        starts: Sequence[str] = ("cold", "warm"),
        interval: tuple[float, float, float] | None = None,
        **options: object,
    ) -> Run:
        run = Run(run_id, config=config or Config(), workload=workload or Workload(script="model.py"))
        if interval is not None:
            given[run] = Interval(value=interval[0], low=interval[1], high=interval[2])
        for start in starts:
            run.apply_all(process_events(start, **options))  # type: ignore[arg-type]
            if start == starts[0]:
                run.apply_all(extra)
        if ended is not None:
            run.apply(ended)
        return run

    return make


@pytest.fixture
def noisy_process() -> Callable[..., Pairs]:
    """One process's timings as machines make them: an offset of its own that both sides share, a smaller one that they
    do not, noise that is like its neighbours', and a heavy upper tail."""

    def make(
        rng: random.Random,
        *,
        ratio: float = 1.0,
        blocks: int = 75,
        noise: float = 0.01,
        common: float = 0.015,
        differential: float = 0.0,
        memory: float = 0.7,
    ) -> Pairs:
        offset, apart, drift = rng.gauss(0, common), rng.gauss(0, differential), 0.0
        eager, compiled = [], []
        for _ in range(blocks):
            drift = memory * drift + rng.gauss(0, noise * math.sqrt(1 - memory**2))
            for side, half in ((eager, apart / 2), (compiled, -apart / 2)):
                late = rng.expovariate(1 / (10 * noise)) if rng.random() < 0.05 else 0.0
                side.append(3e-3 * math.exp(offset + half + drift + rng.gauss(0, noise) + late))
        return Pairs(eager=[ratio * value for value in eager], compiled=compiled)

    return make
