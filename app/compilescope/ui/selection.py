"""What the user has ticked: the configurations to compare and the work that they all do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compilescope.domain import units
from compilescope.domain.config import Choices, Config
from compilescope.domain.workload import Measurement, Phase, Precision, Workload

START_S = 9.0
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The options panel as a value. `dynamics`: None = auto; `device`: None = the first CUDA device, else the CPU."""

    entry: str | None = None
    modes: tuple[str, ...] = ("default",)
    dynamics: tuple[bool | None, ...] = (None,)
    fullgraphs: tuple[bool, ...] = (False,)
    backends: tuple[str, ...] = ("inductor",)
    device: str | None = None
    phase: Phase = "inference"
    precision: Precision = "fp32"
    train_mode: bool = False
    budget_s: float = 10.0
    timeout_s: float = 900.0
    python: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def configs(self) -> list[Config]:
        choices = Choices(modes=self.modes, dynamics=self.dynamics, fullgraphs=self.fullgraphs, backends=self.backends)
        return choices.product()

    @property
    def measurement(self) -> Measurement:
        return Measurement(budget_s=self.budget_s)

    def workload(self, script: Path) -> Workload:
        return Workload(
            script=str(script),
            entry=self.entry,
            phase=self.phase,
            precision=self.precision,
            device=self.device,
            train_mode=self.train_mode and self.phase == "inference",
            arguments=self.arguments,
        )

    @property
    def plan(self) -> str:
        """How many configurations, and about how long without compiling: "3 configurations, 90 s and compile time"."""
        number = len(self.configs)
        seconds = number * (self.budget_s + 2 * START_S)
        return f"{units.plural(number, 'configuration')}, about {rough(seconds)} plus compile time"

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
        return ""


def rough(seconds: float) -> str:
    """A forecast, no more exact than it is: "30 s", "2 min"."""
    if seconds < 90:
        return f"{max(round(seconds / 10), 1) * 10} s"
    return f"{round(seconds / 60)} min"
