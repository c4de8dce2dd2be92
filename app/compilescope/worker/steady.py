"""What each call of a side changes, so that every timed call sees the inputs and the state that the first one saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter  # by name: a script may put a clock of its own in its place

from compilescope.domain.events import Memory, Warning
from compilescope.worker.check import SLOW_CALL_S
from compilescope.worker.entries import seed_all
from compilescope.worker.inputs import Inputs
from compilescope.worker.memory import Watch
from compilescope.worker.state import Change, State, Undo, all_but_parameters
from compilescope.worker.steps import Side

_RUNNING_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
NAMED = 4
FEWEST_WARM_UPS, MOST_WARM_UPS = 3, 16


@dataclass(kw_only=True)
class Steady:
    """One side with the inputs that its timed calls share, and what must be put back before each of them.

    `undo` is None where a call changes nothing that the next one would meet.
    """

    side: Side
    inputs: Inputs
    seed: int
    undo: Undo | None = None

    def learn(self) -> None:
        """Make one call, and remember what it changed. What only a first call makes must have been made before."""
        side = self.side
        copies = all_but_parameters
        state = State(_changing(side.roots(self.inputs)), copies=copies, follows=side.follows)
        self.call()
        undo = Undo(state, leaves_out=lambda change: _is_of_training(change, side))
        self.undo = undo if undo else None

    def call(self) -> None:
        """One call from the state as it is."""
        seed_all(self.seed)
        with self.side.ready():
            self.side.bound(self.inputs)()
        self.side.synchronize()

    def again(self) -> Callable[[], None]:
        """A function that makes one call as the first one was."""
        step, undo = self.side.bound(self.inputs), self.undo

        def call() -> None:
            if undo is not None:
                undo.put_back()
            step()

        return call

    def call_until_quiet(self, compiles_seen: Callable[[], int]) -> int:
        """Call until two calls in a row, or a slow one, compile nothing; how many of the calls compiled."""
        step = self.again()
        quiet = compiles = 0
        with self.side.ready():
            for call in range(MOST_WARM_UPS):
                seen, began = compiles_seen(), perf_counter()
                step()
                if compiles_seen() == seen:
                    quiet += 1
                else:
                    quiet, compiles = 0, compiles + 1
                is_slow = perf_counter() - began > SLOW_CALL_S
                if quiet and (is_slow or (call + 1 >= FEWEST_WARM_UPS and quiet >= 2)):
                    break
        self.side.synchronize()
        return compiles


def _changing(roots: dict[str, object]) -> dict[str, object]:
    """What a call may change that the next call's work depends on; the optimizer's numbers are none of that."""
    return {name: root for name, root in roots.items() if name in ("model", "globals", "inputs")}


def _is_of_training(change: Change, side: Side) -> bool:
    """Numbers that go on from call to call without changing the work: weights and running statistics of a training,
    random streams."""
    if change.is_random_state:
        return True
    if change.path[0] != "model":
        return False
    if side.recipe.training:
        return change.tensor is not None
    return change.path[-1] in _RUNNING_STATISTICS


def lost(sides: list[Steady]) -> tuple[str, ...]:
    """What calls change and nothing puts back."""
    return tuple(dict.fromkeys(name for row in sides if row.undo for name in row.undo.lost))


def not_restored(names: tuple[str, ...]) -> Warning:
    return Warning(
        code="not_comparable",
        message=f"Each call changes {', '.join(names[:NAMED])}, which could not be put back: later calls do other work "
        "than the first one, so no speedup is told.",
        hint="Let get_inputs() make what a call changes, or keep it in tensors and plain containers.",
    )


def restored_each_time(sides: list[Steady]) -> Iterator[Warning]:
    """Say what is put back before each timed call."""
    names = tuple(dict.fromkeys(name for row in sides if row.undo for name in row.undo.names))
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield Warning(
            code="state_restored",
            message=f"A call changes {', '.join(names[:NAMED])}{more}. Before each timed call that is put back, "
            "outside of the time, so that every call sees what the first one saw.",
            hint="Calls are timed one by one for it, which reads higher than calls back to back.",
        )


def peaks(row: Steady, foreign: int) -> Memory:
    """Memory that steady calls of one side reach."""
    step, side = row.again(), row.side

    def work() -> None:
        with side.ready():
            began = perf_counter()
            step()
            if perf_counter() - began <= SLOW_CALL_S:
                step()

    found = Watch(side=side, when="steady", foreign_bytes=foreign).over(work)[1]
    side.peak_bytes = found.allocated_peak_bytes
    return found
