"""What the user has ticked: the configurations to compare and the work that they all do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from compilescope.domain import units
from compilescope.domain.config import Choices, Config, Scope
from compilescope.domain.estimate import Earlier, Estimate, estimate, rough, total_s
from compilescope.domain.matrix import Row, matrix
from compilescope.domain.run import Run
from compilescope.domain.workload import GradMode, Measurement, Phase, Precision, Workload

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The options panel as a value. `dynamics`: None = auto; `device`: None = the first CUDA device, else the CPU.

    `cards`: several devices that share the rows, each alone on its own. `order` and `skipped` are keys of rows.
    """

    entry: str | None = None
    modes: tuple[str, ...] = ("default",)
    dynamics: tuple[bool | None, ...] = (None,)
    fullgraphs: tuple[bool, ...] = (False,)
    backends: tuple[str, ...] = ("inductor",)
    device: str | None = None
    cards: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ("inference",)
    precisions: tuple[Precision, ...] = ("fp32",)
    train_mode: bool = False
    budget_s: float = 10.0
    timeout_s: float = 900.0
    python: str = ""
    arguments: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ("model",)
    grad_mode: GradMode = "inference_mode"
    threads: int | None = None
    l2_flush: bool = False
    queued: bool | None = None
    order: tuple[str, ...] = ()
    skipped: frozenset[str] = frozenset()

    @property
    def configs(self) -> list[Config]:
        return Choices(
            modes=self.modes,
            dynamics=self.dynamics,
            fullgraphs=self.fullgraphs,
            backends=self.backends,
            scopes=self.scopes or ("model",),
        ).product()

    @property
    def measurement(self) -> Measurement:
        return Measurement(budget_s=self.budget_s, l2_flush=self.l2_flush, queued=self.queued)

    def workload(self, script: Path) -> Workload:
        return Workload(
            script=str(script),
            entry=self.entry,
            device=self.device,
            train_mode=self.train_mode,
            arguments=self.arguments,
            grad_mode=self.grad_mode,
            threads=self.threads,
        )

    def rows(self, script: Path | None) -> list[Row]:
        """The whole product, in the user's order; new ones behind."""
        workload = self.workload(script or Path())
        rows = matrix(self.configs, workload, self.phases, self.precisions)
        order = {key: number for number, key in enumerate(self.order)}
        return sorted(rows, key=lambda row: order.get(row.key, len(order)))

    def planned(self, script: Path | None) -> list[Row]:
        """What would run."""
        return [row for row in self.rows(script) if row.key not in self.skipped]

    def estimate(self, row: Row, earlier: Sequence[Earlier]) -> Estimate:
        return estimate(row, self.budget_s, earlier)

    def plan(self, script: Path | None, earlier: Sequence[Earlier]) -> str:
        """How many configurations, and about how long: "3 configurations, about 90 s"."""
        rows = self.planned(script)
        seconds = total_s([self.estimate(row, earlier).seconds for row in rows], len(self.cards))
        return f"{units.plural(len(rows), 'configuration')}, about {rough(seconds)}"

    @property
    def missing(self) -> str:
        """What has to be ticked before anything can run, as a sentence; empty when all is there."""
        if not self.backends:
            return "Tick at least one backend."
        if "inductor" in self.backends and not self.modes:
            return "Tick at least one mode."
        if not self.dynamics:
            return "Tick at least one of dynamic auto, on, off."
        if not self.fullgraphs:
            return "Tick fullgraph off, on, or both."
        if not self.scopes and "training" in self.phases:
            return "Tick what to compile: the model, the whole step, or both."
        if not self.phases:
            return "Tick inference, training step, or both."
        if not self.precisions:
            return "Tick at least one precision."
        if all(row.key in self.skipped for row in self.rows(None)):
            return "Tick at least one row of the plan."
        return ""


def selection_of(runs: Sequence[Run], measurement: Measurement | None, current: Selection) -> Selection:
    """What to tick so that these runs would be made again; what they do not tell stays as it is.

    Options of Inductor's own cannot be ticked: a configuration with them is asked for without.
    """
    first = runs[0].workload
    modes = _each(run.config.mode or "default" for run in runs if run.config.backend == "inductor")
    devices = _each(run.workload.device for run in runs)
    found = replace(
        current,
        entry=first.entry,
        modes=modes or current.modes,
        dynamics=_each(run.config.dynamic for run in runs),
        fullgraphs=_each(run.config.fullgraph for run in runs),
        backends=_each(run.config.backend for run in runs),
        device=first.device,
        cards=tuple(device for device in devices if device) if len(devices) > 1 else (),
        phases=_each(run.workload.phase for run in runs),
        precisions=_each(run.workload.precision for run in runs),
        train_mode=any(run.workload.train_mode for run in runs),
        budget_s=measurement.budget_s if measurement else current.budget_s,
        l2_flush=measurement.l2_flush if measurement else current.l2_flush,
        queued=measurement.queued if measurement else current.queued,
        arguments=tuple(first.arguments),
        scopes=_each(run.config.scope for run in runs if run.workload.phase == "training") or ("model",),
        grad_mode=first.grad_mode,
        threads=first.threads,
        skipped=frozenset(),
    )
    made = _each(Row(config=run.config, workload=run.workload, label="").key for run in runs)
    left_out = {row.key for row in found.rows(None)} - set(made)
    return replace(found, order=made, skipped=frozenset(left_out))


def _each(values: Iterable[Value]) -> tuple[Value, ...]:
    """Every value once, in the order in which they came."""
    return tuple(dict.fromkeys(values))
