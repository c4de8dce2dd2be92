"""A script as it is loaded: its modules, one model of it, and what makes the model's inputs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from types import ModuleType
from typing import Any

import torch
from torch import nn

from compilescope.domain.events import Entry
from compilescope.domain.scan import scan
from compilescope.domain.workload import Workload
from compilescope.worker import loader
from compilescope.worker.entries import choose, seed_all
from compilescope.worker.home import Home, Own
from compilescope.worker.inputs import Inputs, Source
from compilescope.worker.models import has_lazy_parameters, unwrap
from compilescope.worker.own_time import OwnTime


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One model with the modules of the load that it is of.

    `module`: the script's; `own`: all that are the script's own, by name. `rebuild`: makes another model of this load;
    None where the script makes only one. `unwrapped`: parts that the script had compiled itself.
    """

    model: nn.Module
    module: ModuleType
    own: Own
    source: Source
    home: Home
    rebuild: Callable[[], nn.Module] | None = None
    unwrapped: tuple[str, ...] = ()

    def at_home(self) -> contextlib.AbstractContextManager[None]:
        """While this holds, sys.modules holds this load's modules: pickle, lazy imports and Dynamo look there."""
        return self.home.of(self.own)

    def globals(self) -> dict[str, dict[str, Any]]:
        """The global names of its own modules, in the dicts themselves."""
        return {name: vars(module) for name, module in self.own.items() if hasattr(module, "__dict__")}

    def follows(self, cls: type) -> bool:
        """Whether a class is of its own modules, so that what is kept at it is state of the script's."""
        return cls.__module__ in self.own

    def roots(self) -> dict[str, Any]:
        """What its calls may reach, apart from their inputs."""
        return {"model": self.model, "globals": self.globals()}

    def settle(self, seed: int) -> None:
        """Parameters that get their shape at the first call get it now, by one call that nobody times."""
        if has_lazy_parameters(self.model):
            with self.at_home(), torch.no_grad():
                inputs: Inputs = self.source.make()
                seed_all(seed)
                self.model(*inputs.args, **inputs.kwargs)


class Script:
    """The script of a workload, which can be loaded again.

    `own_s`: how long its first load took apart from the imports of libraries. `entries`: what it offers; `entry`: what
    is taken of that. Both are known once it was loaded.
    """

    def __init__(self, workload: Workload, *, device: torch.device, seed: int) -> None:
        self._path = workload.script
        self._arguments = workload.arguments
        self._wanted = workload.entry
        self._device = device
        self._training = workload.phase == "training" or workload.train_mode
        self.seed = seed
        self._start = _Surroundings()
        self.home = Home(loader.root_of(workload.script))
        self.own_s = 0.0
        self.entries: list[Entry] = []
        self.entry: Entry | None = None

    def load(self) -> Instance:
        """Import the script and build its model. Whatever it raises goes through."""
        began = perf_counter()
        own: Own = {}
        self.home.move_in(own)
        with OwnTime(self.home.is_within) as own_time:
            instance = self._built(own)
        self.own_s = min(own_time.seconds, perf_counter() - began)
        return instance

    def load_again(self, first: Instance) -> Instance:
        """The same once more, with modules of its own; the first load's are in place again afterwards."""
        after = _Surroundings()
        own: Own = {}
        try:
            with self.home.of(own):
                self._start.restore()
                return self._built(own)
        finally:
            self.home.move_in(first.own)
            after.restore()

    def _built(self, own: Own) -> Instance:
        seed_all(self.seed)
        found = scan(self._path)
        module = loader.load(self._path, self._arguments)
        own.setdefault(module.__name__, module)
        recipe, self.entries = choose(module, found, self._wanted)
        self.entry = recipe.entry

        def build() -> tuple[nn.Module, list[str]]:
            seed_all(self.seed)
            model, found = unwrap(recipe.model())
            return model.to(self._device).train(self._training), found

        model, unwrapped = build()
        source = Source(recipe.inputs, self._device)
        source.use_names_of(model)
        self.home.collect()
        return Instance(
            model=model,
            module=module,
            own=own,
            source=source,
            home=self.home,
            rebuild=(lambda: build()[0]) if recipe.rebuilds else None,
            unwrapped=tuple(unwrapped),
        )


class _Surroundings:
    """What a script finds and may change when it is loaded: folder, arguments, path, and torch's defaults."""

    def __init__(self) -> None:
        try:
            self._folder = os.getcwd()  # noqa: PTH109 - no Path: it must not be resolved
        except OSError:  # a folder that is gone
            self._folder = ""
        self._arguments = list(sys.argv)
        self._path = list(sys.path)
        self._dtype = torch.get_default_dtype()
        self._device = torch.get_default_device()
        self._grad = torch.is_grad_enabled()

    def restore(self) -> None:
        with contextlib.suppress(OSError):
            os.chdir(self._folder)
        sys.argv[:] = self._arguments
        sys.path[:] = self._path
        torch.set_default_dtype(self._dtype)
        torch.set_grad_enabled(self._grad)
        if torch.get_default_device() != self._device:
            # to set the CPU is not the same as to set nothing, and makes every call slower
            torch.set_default_device(None if self._device.type == "cpu" else self._device)
