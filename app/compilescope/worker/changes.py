"""Things that differ from what they were, and putting them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from compilescope.worker import reach
from compilescope.worker.reach import Path


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that differs from what it was. `restore` puts it back; None where that cannot be done.

    `bytes`: how much is written to put it back; 0 for references. `places`: where the values are that differ.
    """

    path: Path
    restore: Callable[[], None] | None
    tensor: torch.Tensor | None = None
    bytes: int = 0
    is_random_state: bool = False
    places: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return reach.words(self.path)


def apply(changes: list[Change]) -> None:
    """Put back what can be: references first, since a tensor may be one that only the old ones lead to."""
    for change in changes:
        if change.restore is not None and change.tensor is None:
            change.restore()
    with torch.inference_mode():
        for change in changes:
            if change.restore is not None and change.tensor is not None:
                change.restore()
