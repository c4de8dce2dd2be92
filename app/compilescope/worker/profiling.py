"""Where the time of a call goes: a pass of the profiler over each side, after all timing."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from compilescope.domain.events import Event, KernelTime, Profile, Warning
from compilescope.worker import gpu, kernel_times
from compilescope.worker.environment import attempt
from compilescope.worker.generated import Use, told
from compilescope.worker.gpu import Launches
from compilescope.worker.inputs import Inputs
from compilescope.worker.kernel_times import Origin
from compilescope.worker.steps import Side
from compilescope.worker.work import WorkCounter

PROFILED_S = 0.5
LONG_CALL_S = 0.5
MOST_CALLS = 20
# reading the profiler's events takes far longer than recording them: so many of one call, or of all calls together
MOST_OPERATORS = 4_000
ENOUGH_OPERATORS = 1_000
KERNELS_TOLD = 40


class TooManyOperatorsError(Exception):
    """A call has more operators than can be read back in a short time."""


class Profiler:
    """Tells where the time of a call goes on each of `sides`; what goes wrong here costs nothing that was measured."""

    def __init__(self, sides: Sequence[tuple[Side, Inputs]], emit: Callable[[Event], None]) -> None:
        self._sides = sides
        self._emit = emit
        self._launches: dict[str, Launches] = {}
        # the profiler's library writes its own starts and stops into the log otherwise, and reads this at its first use
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")

    def watch_gpu(self) -> None:
        """The pass that watches kernels alone, and so delays nothing between them."""
        for side, inputs in self._sides:
            if side.recipe.device.type != "cuda":
                continue
            found = attempt(functools.partial(gpu.launches, side, inputs), None)
            if found and (busy := gpu.busy(side, found)):
                self._launches[side.name] = found
                self._emit(busy)

    def tell(self) -> None:
        """The passes that watch every operator."""
        try:
            work = attempt(lambda: count_work(*self._sides[0]), WorkCounter())
            for side, inputs in self._sides:
                if told := profile(side, inputs, work, self._launches.get(side.name)):
                    self._emit(told)
        except Exception as error:  # the script's code, or the profiler of any version of torch
            message = f"Where the time goes is not known. {type(error).__name__}: {error}"
            self._emit(Warning(code="not_profiled", message=message, hint="The timing is not touched by it."))


def count_work(side: Side, inputs: Inputs) -> WorkCounter:
    """The FLOPs and bytes of one eager call."""
    counter = WorkCounter()
    step = side.bound(inputs)
    with side.ready(), counter:
        step()
    side.synchronize()
    return counter


def profile(side: Side, inputs: Inputs, work: WorkCounter, launches: Launches | None = None) -> Profile | None:
    """Profile some calls; `launches` are what an earlier pass saw on the GPU. None where there is nothing to tell.

    Raises TooManyOperatorsError where not even one call can be read back; kernels on the GPU are told all the same.
    """
    is_too_much = work.calls > MOST_OPERATORS
    if launches and is_too_much:
        return _of_gpu(side, launches, work, {}, {})
    if is_too_much:
        raise TooManyOperatorsError(f"A call runs {work.calls:,} operators, which would take long to read back.")
    with told() as uses:
        calls, call_s, events = _recorded(side, inputs, ENOUGH_OPERATORS // max(work.calls, 1))
    if launches:
        return _of_gpu(side, launches, work, kernel_times.attributed(events, work), uses)
    if side.recipe.device.type == "cuda":
        return None
    rows = kernel_times.on_cpu(events, uses, work, calls)
    return _told(side, rows, work, clock="cpu", calls=calls, call_s=call_s) if rows else None


def _recorded(side: Side, inputs: Inputs, most_calls: int) -> tuple[int, float, Sequence[Any]]:
    """How many calls, how long one took, and the profiler's events.

    The first call pays for the profiler's own start, so it is recorded apart, and read only where it was long.
    """
    step = side.bound(inputs)
    with side.ready():
        took, recorded = _watched(side, step, 1)
        calls = 1
        if took <= LONG_CALL_S:
            calls = max(1, min(int(PROFILED_S / took), MOST_CALLS, most_calls))
            took, recorded = _watched(side, step, calls)
    return calls, took / calls, recorded.events()


def _watched(side: Side, step: Callable[[], Any], calls: int) -> tuple[float, Any]:
    activities = [ProfilerActivity.CPU]
    if side.recipe.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True) as recorded:
        began = perf_counter()
        for _ in range(calls):
            step()
        side.synchronize()
        took = perf_counter() - began
    return took, recorded


def _of_gpu(
    side: Side, launches: Launches, work: WorkCounter, origins: Mapping[str, Origin], uses: Mapping[str, Use]
) -> Profile:
    rows = kernel_times.on_gpu(launches, origins, uses)
    return _told(side, rows, work, clock="device", calls=launches.calls, active_s=launches.active_s)


def _told(side: Side, rows: list[KernelTime], work: WorkCounter, **facts: Any) -> Profile:
    rows.sort(key=lambda row: -row.seconds)
    return Profile(
        side=side.name,
        seconds=sum(row.seconds for row in rows),
        launches=sum(row.launches for row in rows),
        names=len(rows),
        kernels=tuple(rows[:KERNELS_TOLD]),
        flops=dict(work.flops),
        **facts,
    )
