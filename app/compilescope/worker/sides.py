"""Makes the two sides of a pair: eager, and what is compiled."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compilescope.domain.config import Config
from compilescope.domain.workload import Workload
from compilescope.worker.compiling import compiled_side
from compilescope.worker.instances import Instance
from compilescope.worker.pair import belongs
from compilescope.worker.steps import Recipe, Side

STANCE = "force_eager"


@dataclass(frozen=True, kw_only=True)
class SideMaker:
    """`compiles`: whether the compiled side is that; to calibrate it is the second model as it is. `needs_stance`:
    whether the script may compile functions itself, so that only a stance makes a true eager side."""

    workload: Workload
    config: Config
    device: torch.device
    compiles: bool
    needs_stance: bool

    def recipe(self, instance: Instance) -> Recipe:
        return Recipe.of(self.workload, self.device, instance.module)

    def eager(self, instance: Instance, name: str = "eager") -> Side:
        """An uncompiled side."""
        side = belongs(Side(name, instance.model, instance.model, self.recipe(instance)), instance)
        side.stance = STANCE if self.needs_stance else None
        return side

    def compiled(self, instance: Instance, recipe: Recipe | None = None) -> Side:
        if not self.compiles:
            return self.eager(instance, "compiled")
        return belongs(compiled_side(instance.model, self.config, recipe or self.recipe(instance)), instance)
