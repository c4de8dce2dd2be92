"""What a loaded script offers, and how its model and inputs are built."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from compilescope.domain.events import Entry
from compilescope.domain.scan import (
    FACTORIES,
    FACTORY,
    INPUT_FUNCTIONS,
    INPUT_VALUES,
    MODEL_CLASS,
    MODULE,
    Scan,
)
from compilescope.worker.errors import WorkerError


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One entry, ready to be built. `rebuilds`: whether `model` makes a new one on each call."""

    entry: Entry
    model: Callable[[], nn.Module]
    inputs: Callable[[], Any]
    rebuilds: bool


def seed_all(seed: int) -> None:
    """Start every random stream that a script may use anew."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_streams() -> dict[str, Any]:
    """Where the random streams stand that `seed_all` starts."""
    streams: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if numpy := sys.modules.get("numpy"):
        streams["numpy"] = numpy.random.get_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        streams["cuda"] = torch.cuda.get_rng_state_all()
    return streams


def set_random_streams(streams: Mapping[str, Any]) -> None:
    """Let them go on from there."""
    random.setstate(streams["python"])
    torch.set_rng_state(streams["torch"])
    if "numpy" in streams:
        sys.modules["numpy"].random.set_state(streams["numpy"])
    if "cuda" in streams:
        torch.cuda.set_rng_state_all(streams["cuda"])


def available(module: ModuleType, scan: Scan) -> list[Entry]:
    """The entries of the scan that the module bears out, and models that only running it could show."""
    listed = [entry for entry in scan.entries if _exists(module, entry)]
    names = {entry.name for entry in listed}
    if _has_inputs(module, (*INPUT_VALUES, "get_inputs", "make_inputs")):
        for name, value in vars(module).items():
            if isinstance(value, nn.Module) and name not in names:
                listed.append(Entry(name=name, kind=MODULE))
    return [entry for entry in listed if not _is_part(module, entry, listed)]


def _is_part(module: ModuleType, entry: Entry, listed: Sequence[Entry]) -> bool:
    """Whether an entry is a layer of another one, such as the variable of a loop over layers."""
    value = getattr(module, entry.name)
    if entry.line is not None or not isinstance(value, nn.Module):
        return False
    others = [getattr(module, other.name) for other in listed if other.name != entry.name]
    wholes = [other for other in others if isinstance(other, nn.Module) and other is not value]
    return any(part is value for whole in wholes for part in whole.modules())


def choose(module: ModuleType, scan: Scan, name: str | None) -> tuple[Recipe, list[Entry]]:
    """The entry to use: the named one, or else the first; and all that there are."""
    listed = available(module, scan)
    if not listed:
        raise WorkerError(
            scan.problem or "What the script seems to offer is no torch.nn.Module.",
            hint="Add get_inputs() that returns the inputs, beside a class Model or a function build_model().",
            type="NothingToRun",
        )
    entry = next((item for item in listed if item.name == name), None if name else listed[0])
    if entry is None:
        offered = ", ".join(item.name for item in listed)
        raise WorkerError(f"The script has no entry {name}.", hint=f"It offers {offered}.", type="NothingToRun")
    return _recipe(module, entry), listed


def _exists(module: ModuleType, entry: Entry) -> bool:
    value = getattr(module, entry.name, None)
    if entry.kind == MODEL_CLASS:
        return inspect.isclass(value) and issubclass(value, nn.Module)
    return callable(value) if entry.kind == FACTORY else isinstance(value, nn.Module)


def _has_inputs(module: ModuleType, names: Sequence[str]) -> bool:
    return any(hasattr(module, name) for name in names)


def _recipe(module: ModuleType, entry: Entry) -> Recipe:
    value = getattr(module, entry.name)
    if entry.kind == MODEL_CLASS:
        return Recipe(
            entry=entry, model=lambda: _from_class(module, value), inputs=_inputs(module, "get_inputs"), rebuilds=True
        )
    if entry.kind == FACTORY and entry.name in FACTORIES:
        return _from_factory(module, entry, value)
    inputs = _inputs(module, *INPUT_VALUES, "get_inputs", "make_inputs")
    return Recipe(entry=entry, model=lambda: _checked(value, entry.name), inputs=inputs, rebuilds=False)


def _from_class(module: ModuleType, model: type[nn.Module]) -> nn.Module:
    make = getattr(module, "get_init_inputs", None)
    given = make() if callable(make) else []
    if isinstance(given, Mapping):
        return model(**given)
    match given:
        case [list() | tuple() as args, dict() as kwargs]:
            return model(*args, **kwargs)
        case list() | tuple():
            return model(*given)
    return model(given)


def _from_factory(module: ModuleType, entry: Entry, factory: Callable[[], Any]) -> Recipe:
    pairs: list[Any] = []

    def build() -> nn.Module:
        made = factory()
        if isinstance(made, (tuple, list)) and made and isinstance(made[0], nn.Module):
            pairs[:] = made[1:2]
            made = made[0]
        return _checked(made, f"{entry.name}()")

    def inputs() -> Any:
        if pairs:
            return pairs[0]
        return _inputs(module, *INPUT_FUNCTIONS, "inputs")()

    return Recipe(entry=entry, model=build, inputs=inputs, rebuilds=True)


def _checked(value: Any, name: str) -> nn.Module:
    if isinstance(value, nn.Module):
        return value
    raise WorkerError(f"{name} is of type {type(value).__name__}, not a torch.nn.Module.")


def _inputs(module: ModuleType, *names: str) -> Callable[[], Any]:
    found = next((name for name in names if hasattr(module, name)), None)
    if found is not None:
        value = getattr(module, found)
        return value if inspect.isroutine(value) else lambda: value
    raise WorkerError(
        f"The script names no inputs; looked for {', '.join(names)}.", hint="Add get_inputs() that returns them."
    )
