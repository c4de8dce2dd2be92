"""The state that calls change: as it was at one moment, what of it differs now, and how to put it back.

Containers are kept by reference and item by item, tensors and arrays by a copy of their values. Nothing is copied of a
tensor that `copies` leaves out; such a one is watched by its version and by a fingerprint of its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.changes import Change, apply
from compilescope.worker.holders import Holder, holder_of
from compilescope.worker.kept_tensor import KeptTensor, form
from compilescope.worker.reach import Path

Choice = Callable[[Path, torch.Tensor], bool]


def every(_path: Path, _tensor: torch.Tensor) -> bool:
    return True


def all_but_parameters(_path: Path, tensor: torch.Tensor) -> bool:
    """What inference may change: weights are watched, and not copied."""
    return not isinstance(tensor, torch.nn.Parameter)


class State:
    """What can be reached from some roots, as it is when this is made.

    `roots`: names to things, such as {"model": model, "inputs": tree, "globals": {module: its dict}}. `follows`: the
    classes whose own attributes count. `on_host`: copies go to the host's memory. Raises MemoryError or
    torch.OutOfMemoryError where there is no room for the copies.
    """

    def __init__(
        self,
        roots: Mapping[str, Any],
        *,
        copies: Choice = every,
        follows: Callable[[type], bool] | None = None,
        on_host: bool = False,
    ) -> None:
        self._tensors: list[KeptTensor] = []
        self._rest: list[Holder] = []
        for path, obj in reach.walk(dict(roots), follows):
            if not path or (isinstance(obj, type) and not (follows is not None and follows(obj))):
                continue
            if isinstance(obj, torch.Tensor):
                parts = reach.inner_tensors(obj)
                self._tensors += [KeptTensor(path, part, copied=copies(path, obj), on_host=on_host) for part in parts]
            elif (holder := holder_of(path, obj)) is not None:
                self._rest.append(holder)

    def changes(self, looks_at: Choice = every) -> list[Change]:
        """What differs now from what it was; of tensors, those that `looks_at` chooses."""
        tensors = [row for row in self._tensors if looks_at(row.path, row.tensor)]
        kept: list[Holder | KeptTensor] = [*self._rest, *tensors]
        return [change for row in kept if (change := row.change()) is not None]

    def put_back(self) -> list[Change]:
        """Make everything as it was; what could not be."""
        changes = self.changes()
        apply(changes)
        return [change for change in changes if change.restore is None]

    def forms(self, root: str) -> Forms:
        """Of what lies under one root; it keeps no copy of a tensor."""
        return Forms(
            holders=tuple(row for row in self._rest if row.path[0] == root and not row.is_random_state),
            tensors=tuple(row.watched() for row in self._tensors if row.path[0] == root),
        )

    def befores(self) -> dict[int, torch.Tensor]:
        """The copies of tensors, by the tensors' ids."""
        return {id(row.tensor): row.copy for row in self._tensors if row.copy is not None}

    @property
    def copied_bytes(self) -> int:
        return sum(kept.bytes for kept in self._tensors)


@dataclass(frozen=True, kw_only=True)
class Forms:
    """Containers with what they held, tensors with their form and no values: cheap enough to look at often."""

    holders: tuple[Holder, ...]
    tensors: tuple[tuple[Path, torch.Tensor, object], ...]

    def changes(self) -> list[Change]:
        found = [change for holder in self.holders if (change := holder.change()) is not None]
        return found + [
            Change(path=path, restore=None, tensor=tensor, places=(path,))
            for path, tensor, was in self.tensors
            if form(tensor) != was
        ]


class Undo:
    """Puts back what one call changed, and no more; made right after the call, while the changes stand.

    `names`: what the call changes. `lost`: what could not be put back, so that no call sees what the first one saw.
    """

    def __init__(self, state: State, leaves_out: Callable[[Change], bool] = lambda _change: False) -> None:
        changes = [change for change in state.changes() if not leaves_out(change)]
        self._changes = changes
        self._leaves_out = leaves_out
        self._inputs = state.forms("inputs")
        self.names = tuple(change.name for change in changes)
        self.bytes = sum(change.bytes for change in changes)
        self.put_back()
        still = [change for change in state.changes() if not leaves_out(change)]
        self.lost = tuple(change.name for change in still)

    def __bool__(self) -> bool:
        return bool(self._changes)

    def put_back(self) -> None:
        apply(self._changes)

    def strays(self) -> tuple[str, ...]:
        """What of the inputs is of another form than before the call although all was put back: a later call changed
        something that the first one had left alone."""
        return tuple(change.name for change in self._inputs.changes() if not self._leaves_out(change))
