"""A play-off: two configurations compiled in one process, each for a model of its own, and timed in turns.

All that a configuration says are arguments of torch.compile, which hold for what that one call compiles, so that any
two can meet. What changes the whole process all the same, as a backend of the user's own may, ends the play-off, and
so does a recompile limit: where both sides compile the same frame of a library, they share its count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import Event
from compilescope.domain.workload import Job
from compilescope.worker import compiling, setting, steady
from compilescope.worker.capture import Capture
from compilescope.worker.channel import Channel
from compilescope.worker.clocks import clock_for
from compilescope.worker.effects import Before
from compilescope.worker.environment import attempt
from compilescope.worker.errors import WorkerError
from compilescope.worker.pair import SHARED, Pair, Pairs, belongs
from compilescope.worker.proof import plain_sides, prove
from compilescope.worker.steady import Steady
from compilescope.worker.steps import Recipe
from compilescope.worker.timing import Plan, Timer

# the places of a run's two sides: the rival stands where eager stands elsewhere, so that a ratio is read the same way
RIVAL, CHALLENGER = "eager", "compiled"


class PlayOff:
    """One process of a play-off. What both compile was checked and told by their own runs."""

    def __init__(self, job: Job, channel: Channel, stage_of: Callable[[str], AbstractContextManager[None]]) -> None:
        if job.workload is None or job.config is None or job.rival is None:
            raise WorkerError("A play-off needs a script and two configurations.")
        self._job = job
        self._workload = job.workload
        self._configs = {RIVAL: job.rival, CHALLENGER: job.config}
        self._emit = channel.emit
        self._stage_of = stage_of
        self._device = setting.choose_device(job.workload.device)
        self._capture = Capture(_untold, channel.clock)
        self._rows: dict[str, Steady] = {}

    def run(self) -> None:
        with self._stage_of("load"):
            setting.apply(self._workload)
            pairs = Pairs(self._workload, device=self._device, seed=self._seed)
        with self._stage_of("check"):
            pair = self._alike(pairs)
        try:
            with self._stage_of("compile"):
                self._compile(pair)
            with self._stage_of("warm_up"):
                self._warm_up()
            with self._stage_of("measure"):
                self._measure()
        finally:
            self._capture.finish()

    @property
    def _seed(self) -> int:
        return self._job.measurement.seed

    @property
    def _in_order(self) -> tuple[str, str]:
        return (CHALLENGER, RIVAL) if self._job.start == "cold" else (RIVAL, CHALLENGER)

    def _alike(self, pairs: Pairs) -> Pair:
        """Two models that do the same in the same time before anything is compiled."""
        pair = pairs.next_pair()
        while pair is not None and pair.copies != SHARED:
            # of a sweep the first size, whose speedup is the run's
            pair.use_sizes(setting.sizes_of(self._workload)[0])
            inputs = pair.make_inputs(self._seed)
            sides = plain_sides(pair, self._recipe(pair.eager))
            proof = prove(*sides, {side.name: side.take(inputs[side.name]) for side in sides}, seed=self._seed)
            if proof.is_alike:
                return pair
            pair = pairs.next_pair(proof.detail)
        why = pair.reason if pair else "The two models are not alike before anything is compiled."
        raise WorkerError(f"Two configurations in one process need two models that are alike. {why}".strip())

    def _recipe(self, instance: Any) -> Recipe:
        return Recipe.of(self._workload, self._device, instance.module)

    def _compile(self, pair: Pair) -> None:
        for config in self._configs.values():
            compiling.preload(config.backend)
        self._capture.install()
        inputs = pair.make_inputs(self._seed)
        for name in self._in_order:
            config, before, seen = self._configs[name], _settings(), self._compiles_seen()
            instance = pair.eager if name == RIVAL else pair.compiled
            side = compiling.compiled_side(instance.model, config, self._recipe(instance), name=name)
            belongs(side, instance)
            self._rows[name] = Steady(side=side, inputs=side.take(inputs[name]), seed=self._seed)
            self._rows[name].call()
            if self._compiles_seen() == seen:
                # two copies of one model have one code, whose compiles torch tells apart by backend and guards alone
                raise WorkerError(f"{config.label} compiled nothing of its own beside the other one.")
            if config.backend not in compiling.TORCHS_OWN:
                self._refuse_meddling(config, before)

    def _refuse_meddling(self, config: Config, before: Mapping[str, Any]) -> None:
        changed = [key for key, value in _settings().items() if value != before.get(key, value)]
        if changed:
            raise WorkerError(
                f"{config.label} changes {changed[0]} for the whole process, so that the two cannot meet in one."
            )

    def _warm_up(self) -> None:
        rows = [self._rows[name] for name in self._in_order]
        for row in rows:
            before = Before(row.side, row.inputs)
            row.until_quiet(self._compiles_seen)
            before.put_back()
        for row in rows:
            row.learn()
            row.until_quiet(self._compiles_seen)
        if self._capture.limits_seen:
            raise WorkerError("Together the two reached the recompile limit, which each keeps below alone.")
        if names := steady.lost(rows):
            raise WorkerError(steady.not_restored(names).message)

    def _measure(self) -> None:
        how = self._job.measurement
        timer = Timer(
            [(self._rows[name].side, self._rows[name].inputs) for name in (RIVAL, CHALLENGER)],
            self._emit,
            self._compiles_seen,
            clock=clock_for(self._device, l2_flush=how.l2_flush, queue=how.queued),
            undos={name: row.undo for name, row in self._rows.items() if row.undo is not None},
        )
        timer.run(Plan(budget_s=how.budget_s, interval=how.interval))

    def _compiles_seen(self) -> int:
        return self._capture.compiles_seen


def _untold(_event: Event) -> None:
    """The compile story is that of the two runs; here compiles are only counted."""


def _settings() -> dict[str, Any]:
    """What holds for the whole process and moves what calls take."""
    found: dict[str, Any] = {
        "the number of threads": torch.get_num_threads(),
        "the precision of matrix products": torch.get_float32_matmul_precision(),
        "the default type": torch.get_default_dtype(),
    }
    for name in ("torch._dynamo.config", "torch._inductor.config"):
        module: Any = sys.modules.get(name)
        copied: dict[str, Any] = attempt(module.get_config_copy, {}) if module else {}
        found |= {f"{name}.{key}": value for key, value in copied.items()}
    return found
