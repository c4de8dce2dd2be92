"""Two models from one script, made by the same route: one to run as it is, one to compile.

The script is loaded twice, so that each model has globals, closures and classes of its own; where that cannot be, both
are copies of the model that was built, or are built by one load, or are one and the same.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from compilescope.domain.events import Entry
from compilescope.domain.workload import Workload
from compilescope.worker import reach
from compilescope.worker.entries import random_streams, seed_all, set_random_streams
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs, duplicate
from compilescope.worker.instances import Instance, Script
from compilescope.worker.likeness import common, synchronise
from compilescope.worker.models import holds_compiled_functions, room, state, storage_bytes
from compilescope.worker.steps import Side

LOADED_TWICE, COPIED, REBUILT, SHARED = "loaded_twice", "copied", "rebuilt", "shared"
# a script that trains, downloads or reads large files does not do so twice
MOST_OWN_S = 10.0
# what a second model needs while it is made, in models
SPARE = 1.2


@dataclass(frozen=True, kw_only=True)
class Pair:
    """`copies` says how the two were made: loaded_twice, copied, rebuilt (built twice by one load), shared (one model).

    `reason`: why not by loading twice; empty where it was so. The compiled side's modules are in sys.modules.
    """

    eager: Instance
    compiled: Instance
    copies: str
    reason: str = ""

    @property
    def unwrapped(self) -> tuple[str, ...]:
        """Parts that the script had compiled itself."""
        return self.compiled.unwrapped

    def use_sizes(self, sizes: Mapping[str, Sequence[int]]) -> None:
        """Inputs of these sizes from now on, on both sides."""
        for instance in (self.eager, self.compiled):
            instance.source.sizes = sizes

    def make_inputs(self, seed: int | None = None) -> dict[str, Inputs]:
        """New inputs by side: of equal values, of each side's own classes, and nothing in common.

        Both start from this seed, or else from where the random streams stand.
        """
        if seed is not None:
            seed_all(seed)
        streams = random_streams()
        with self.compiled.at_home():
            mine = self.compiled.source.make()
        if self.eager.source is self.compiled.source:
            return {"eager": duplicate(mine), "compiled": mine}
        after = random_streams()
        set_random_streams(streams)
        with self.eager.at_home():
            theirs = self.eager.source.make()
        set_random_streams(after)
        likeness = synchronise(mine.tree, theirs.tree)
        is_unlike = likeness.forms or likeness.others or any(common(mine.tree, theirs.tree))
        # objects of the script's own classes stay those of their side, which may ask for them
        if is_unlike and not any(self.eager.follows(type(obj)) for _, obj in reach.walk(theirs.tree)):
            theirs = duplicate(mine)
        return {"eager": theirs, "compiled": mine}


class Pairs:
    """The pairs that can be made of a workload's script, the best first.

    Making this loads the script and builds its model; whatever the script raises goes through.
    """

    def __init__(self, workload: Workload, *, device: torch.device, seed: int) -> None:
        self._device = device
        self._script = Script(workload, device=device, seed=seed)
        self._first = self._script.load()
        self._first.settle(seed)
        self._is_as_built = True
        self._reasons: list[str] = []
        self._ways: list[Callable[[], Pair]] = [self._loaded_twice, self._copied, self._rebuilt, self._shared]

    @property
    def entries(self) -> list[Entry]:
        """What the script offers."""
        return self._script.entries

    @property
    def entry(self) -> Entry:
        """What is taken of that."""
        assert self._script.entry is not None
        return self._script.entry

    def next_pair(self, reason: str = "") -> Pair | None:
        """The next pair; None after the last, which is one model for both sides.

        `reason`: a sentence that says why the one before will not do.
        """
        if reason:
            self._reasons.append(reason)
        while self._ways:
            try:
                return self._ways.pop(0)()
            except _CannotError as error:
                if str(error) not in self._reasons:
                    self._reasons.append(str(error))
        return None

    def alone(self) -> Pair:
        """The model that was built, for both sides: to look at it."""
        return self._pair(self._first, self._first, SHARED)

    def _pair(self, eager: Instance, compiled: Instance, copies: str) -> Pair:
        return Pair(eager=eager, compiled=compiled, copies=copies, reason=" ".join(self._reasons))

    def _loaded_twice(self) -> Pair:
        first = self._first
        if patches := list(self._script.home.patches()):
            raise _CannotError(f"The script replaces {_some(patches)}, and a second load would replace it once more.")
        if self._script.own_s > MOST_OWN_S:
            raise _CannotError(f"The script works for {self._script.own_s:.0f} s while it is loaded.")
        self._ask_for_room()
        second = self._second_load()
        if second.model is first.model or second.module is first.module:
            raise _CannotError("Both loads of the script handed out the same model.")
        likeness = synchronise(first.roots(), second.roots(), first.follows)
        if likeness.forms:
            raise _CannotError(f"Two loads of the script made different tensors: {_some(likeness.forms)}.")
        if both := list(common(first.model, second.model, first.follows)):
            raise _CannotError(f"Two loads of the script hold the same {_some(both, 'model')}.")
        return self._pair(second, first, LOADED_TWICE)

    def _second_load(self) -> Instance:
        try:
            second = self._script.load_again(self._first)
            second.settle(self._script.seed)
            return second
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a script raises, an exit too
            message = f"{type(error).__name__}: {error}".strip().rstrip(":")
            # the frames hold what was built so far
            traceback.clear_frames(error.__traceback__)
        _free_memory()
        raise _CannotError(f"A second load of the script failed. {_sentence(message)}")

    def _copied(self) -> Pair:
        """Two copies, so that both sides have what copying does to a model."""
        first = self._first
        if holds_compiled_functions(first.model):
            # a compiled bound method stays bound to the original when its module is copied
            raise _CannotError("A copy of the model would call functions that the script compiled for the original.")
        self._ask_for_room()
        copies = _copies(first.model)
        if both := list(common(*copies)):
            raise _CannotError(f"Copies of the model hold the same {_some(both, 'model')}.")
        eager, compiled = (replace(first, model=model) for model in copies)
        # the original is a third model, and goes if the script lets it
        self._first, self._is_as_built = compiled, False
        return self._pair(eager, compiled, COPIED)

    def _rebuilt(self) -> Pair:
        first = self._first if self._is_as_built else self._built_again()
        second = self._built_again()
        if second.model is first.model:
            raise _CannotError(f"{self.entry.name} hands out the same model each time.")
        likeness = synchronise(first.model, second.model)
        if likeness.forms:
            raise _CannotError(f"Built twice, the model has different tensors: {_some(likeness.forms, 'model')}.")
        if both := list(common(first.model, second.model)):
            raise _CannotError(f"Built twice, the models hold the same {_some(both, 'model')}.")
        self._first = first
        return self._pair(second, first, REBUILT)

    def _built_again(self) -> Instance:
        if self._first.rebuild is None:
            raise _CannotError("The script makes its model only once.")
        self._ask_for_room()
        try:
            again = replace(self._first, model=self._first.rebuild())
            again.settle(self._script.seed)
            return again
        except Exception as error:
            # there may be no room for a second one, or a thing that only one may hold
            message = f"{type(error).__name__}: {error}".strip().rstrip(":")
            traceback.clear_frames(error.__traceback__)
        _free_memory()
        raise _CannotError(f"To build the model a second time failed. {_sentence(message)}")

    def _ask_for_room(self) -> None:
        """On a CPU nobody says no: a process that takes too much memory is ended."""
        takes = storage_bytes(state(self._first.model))
        free = attempt(lambda: room(self._device), None)
        if free is not None and takes * SPARE > free:
            raise _CannotError(
                f"There is no room for a second model: it takes {takes / 2**30:.1f} GiB of {free / 2**30:.1f} GiB free."
            )

    def _shared(self) -> Pair:
        return self._pair(self._first, self._first, SHARED)


def belongs(side: Side, instance: Instance) -> Side:
    """A side's calls find the modules of its own load, and what they may change is that load's."""
    side.own, side.home, side.follows = instance.globals(), instance.at_home, instance.follows
    return side


class _CannotError(Exception):
    """This way to make a pair cannot be taken; the message is a sentence that says why."""


def _copies(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    one = _copy(model)
    try:
        return one, _copy(model)
    except _CannotError:
        # there may be room for two models and none for three
        _flatten(model)
        return one, model


def _flatten(model: nn.Module) -> None:
    """cuDNN wants the weights of a layer in one piece of memory; those of a copy are not, and 7.6 times slower."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            with contextlib.suppress(Exception):
                module.flatten_parameters()


def _copy(model: nn.Module) -> nn.Module:
    try:
        twin = copy.deepcopy(model)
    except Exception as error:
        # whatever a model holds may refuse: locks, generators, tensors with a history; or there is no room
        message = f"{type(error).__name__}: {error}".strip().rstrip(":")
        traceback.clear_frames(error.__traceback__)
    else:
        _flatten(twin)
        return twin
    _free_memory()
    raise _CannotError(f"The model cannot be copied. {_sentence(message)}")


def _free_memory() -> None:
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()


def _some(names: Sequence[str], whole: str = "") -> str:
    """The first of them, by name."""
    first = names[0] or whole
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"


def _sentence(text: Any) -> str:
    first = str(text).strip().splitlines()[0] if str(text).strip() else ""
    return first if first.endswith((".", "!", "?")) else f"{first}."
