"""Blocks that do not count: what tells that one does not, and when it is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter  # by name: a script may put a clock of its own in its place
from typing import Any

import torch

from compilescope.domain.events import Event, Void, Warning
from compilescope.worker.state import Undo
from compilescope.worker.steps import Side

# blocks in a row that do not count, and how long they take, until it is given up
VOIDS_IN_A_ROW, VOID_S = 8, 0.4

_GIVEN_UP = {
    "compiled": Warning(
        code="recompiles_while_timed",
        message="The compiled model went on recompiling during the timing, so there is no steady state.",
        hint="The recompiles name the value that changes from call to call.",
    ),
    "strayed": Warning(
        code="inputs_not_put_back",
        message="The timing was given up: calls changed more of their inputs than the first one had, and no call saw "
        "what the first one saw.",
        hint="Let forward make new objects instead of changing those that it is given.",
    ),
    "no step": Warning(
        code="no_step_counts",
        message="The timing was given up: one step after the other was skipped, or its loss not finite.",
        hint="A step that changes no weight takes another time. Look at the loss, or choose another precision.",
    ),
}


class Watch:
    """Looks at one block of a side: made before it, `end` right after its calls, `fault` once they have run.

    Waits for nothing before `fault`, but for the scale of a gradient scaler.
    """

    def __init__(self, side: Side, compiles_seen: Callable[[], int]) -> None:
        self._side = side
        self._compiles_seen = compiles_seen
        self._before = compiles_seen()
        self._scale = _scale(side)

    def end(self) -> None:
        self._compiles = self._compiles_seen() - self._before
        # the next block may write another loss into the same memory
        self._is_finite, self._copied = _finite(self._side.last_loss)

    def fault(self, undo: Undo | None = None) -> tuple[str, str]:
        """A kind and a sentence; both empty where the block counts."""
        if self._compiles:
            return "compiled", f"The {self._side.name} model compiled again during the block."
        if undo and (names := undo.strays()):
            return "strayed", f"The call changed what it had left alone before: {', '.join(names[:4])}."
        if self._scale is not None and (_scale(self._side) or 0.0) < self._scale:
            return "no step", "The gradient scaler skipped an optimizer step."
        if self._copied is not None:
            self._copied.synchronize()
        if self._is_finite is not None and not bool(self._is_finite):
            return "no step", "The loss is not finite."
        return "", ""


class Voids:
    """Those in a row."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._count = 0
        self._since = 0.0
        self._kinds: set[str] = set()

    def take(self, block: int, faults: Sequence[tuple[Side, tuple[str, str]]]) -> bool:
        """Whether a pair of blocks counts; tells where it does not."""
        if not any(kind for _, (kind, _) in faults):
            self._count = 0
            return True
        if not self._count:
            self._since, self._kinds = perf_counter(), set()
        self._count += 1
        for side, (kind, reason) in faults:
            if kind:
                self._kinds.add(kind)
                self._emit(Void(block=block, side=side.name, reason=reason))
        return False

    @property
    def are_too_many(self) -> bool:
        return self._count >= VOIDS_IN_A_ROW and perf_counter() - self._since >= VOID_S

    def tell(self) -> None:
        """Why it was given up."""
        self._emit(next(warning for kind, warning in _GIVEN_UP.items() if kind in self._kinds))


def _scale(side: Side) -> float | None:
    return side.scaler.get_scale() if side.scaler is not None else None


def _finite(loss: torch.Tensor | None) -> tuple[torch.Tensor | None, Any]:
    """Whether a loss is finite, on its way to the host; and an event that has come when it is there."""
    if loss is None:
        return None, None
    told = torch.isfinite(loss.detach()).all()
    if told.device.type != "cuda":
        return told, None
    told, copied = told.to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()
    return told, copied
