"""Our time per call beside a hand-written loop's: same model, process, threads and warm-up, taking turns.

Where other work takes the processor away, wall clock tells of that work; both then read the thread's processor time.
Run: python tests/benchmarks/timing.py
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from compilescope.domain.events import Event, Samples
from compilescope.worker.clocks import WallClock
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PAIRS, PAIR_S = 10, 1.5
BLOCK_S, LEAD_S = 1.1 * WallClock.block_s, 0.001
MOST_APART = 0.03
OURS = ("eager", "back_to_back")


def model_and_input() -> tuple[nn.Module, torch.Tensor]:
    """A call of some 100 us, whose time hardly depends on where its memory lies."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).eval()
    return model, torch.randn(64, 256)


def fair_clock() -> Callable[[], float]:
    """The wall clock on a quiet machine, processor time on a busy one."""
    is_busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    return time.thread_time if is_busy else time.perf_counter


def ratios(clock: Callable[[], float], pairs: int = PAIRS) -> Iterator[float]:
    """Our median over the plain loop's, a pair at a time, both by this clock."""
    model, x = model_and_input()
    recipe = Recipe(
        training=False,
        precision="fp32",
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=torch.optim.AdamW,
    )
    sides = [(Side(name, model, model, recipe), Inputs(args=(x,))) for name in ("eager", "compiled")]
    loop = PlainLoop(model, x, clock)
    for _ in range(pairs):
        events: list[Event] = []
        loop.seconds = []
        Timer(sides, events.append, loop.take_turn, clock=WallClock(clock)).run(Plan(budget_s=PAIR_S, interval=0.0))
        rows = [row for row in events if isinstance(row, Samples) and (row.side, row.measure) == OURS]
        yield statistics.median(seconds for row in rows for seconds in row.seconds) / statistics.median(loop.seconds)


class PlainLoop:
    """The loop that one would write by hand: some calls unmeasured, then calls between two looks at the clock."""

    def __init__(self, model: nn.Module, x: torch.Tensor, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._model = model
        self._x = x
        self._turns = 0
        self.seconds: list[float] = []
        per_call = min(self._block(10, 100) for _ in range(5))
        self._calls, self._lead = round(BLOCK_S / per_call), round(LEAD_S / per_call)

    def take_turn(self) -> int:
        """One block, right before each of our blocks of the eager side; both then meet the same moment of the machine.

        The timer asks for the number of compiles before and after each block of its two sides, so each fourth time.
        """
        if self._turns % 4 == 0:
            self.seconds.append(self._block(self._lead, self._calls))
        self._turns += 1
        return 0

    def _block(self, lead: int, calls: int) -> float:
        model, x = self._model, self._x
        with torch.inference_mode():
            for _ in range(lead):
                model(x)
            began = self._clock()
            for _ in range(calls):
                model(x)
            return (self._clock() - began) / calls


def main() -> int:
    torch.set_num_threads(1)
    found: list[float] = []
    clock = fair_clock()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; clock {clock.__name__}")
    for ratio in ratios(clock):
        found.append(ratio)
        print(f"pair {len(found):2}: ours / plain loop {ratio:.4f}", flush=True)
    middle = statistics.median(found)
    holds = abs(middle - 1) <= MOST_APART
    print(f"median of {len(found)} pairs: {middle:.4f}, within {MOST_APART:.0%}: {'pass' if holds else 'FAIL'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
