"""Our time per call beside that of torch.utils.benchmark: one compute-bound callable, matched threads, taking turns.

Where other work takes the processor away, wall clock tells of that work; both then read the thread's processor time.
Run: python tests/benchmarks/torch_timer.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import torch
from figures import Figure, median, report
from timing import fair_clock
from torch import nn
from torch.utils import benchmark

from compilescope.domain.events import Event, Samples
from compilescope.worker.clocks import WallClock
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PAIRS, PAIR_S = 10, 2.0
BLOCK_S = WallClock.block_s
OURS = ("eager", "back_to_back")
MOST_APART = 0.03
THREADS = 1


class TorchTimer:
    """`timeit` of torch.utils.benchmark, a block at a time, right before each of our blocks of the eager side; both
    then meet the same moment of the machine."""

    def __init__(self, model: nn.Module, x: torch.Tensor, clock: Callable[[], float]) -> None:
        self._timer = benchmark.Timer(
            "model(x)", globals={"model": model, "x": x}, timer=clock, num_threads=THREADS, label="matrix product"
        )
        with torch.inference_mode():
            self._calls = self._timer.blocked_autorange(min_run_time=BLOCK_S).number_per_run
        self._turns = 0
        self.seconds: list[float] = []

    def take_turn(self) -> int:
        """The timer asks for the number of compiles before and after each block of its two sides: each fourth time."""
        if self._turns % 4 == 0:
            with torch.inference_mode():
                self.seconds.append(self._timer.timeit(self._calls).median)
        self._turns += 1
        return 0


def ratios(clock: Callable[[], float]) -> Iterator[float]:
    """The median ratio of our blocks to theirs right before, a pair of series at a time."""
    torch.manual_seed(0)
    model, x = nn.Linear(512, 512).eval(), torch.randn(256, 512)
    recipe = Recipe(
        training=False,
        precision="fp32",
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=torch.optim.AdamW,
    )
    sides = [(Side(name, model, model, recipe), Inputs(args=(x,))) for name in ("eager", "compiled")]
    other = TorchTimer(model, x, clock)
    for _ in range(PAIRS):
        other.seconds = []
        events: list[Event] = []
        Timer(sides, events.append, other.take_turn, clock=WallClock(clock)).run(Plan(budget_s=PAIR_S, interval=0.0))
        rows = [row for row in events if isinstance(row, Samples) and (row.side, row.measure) == OURS]
        own = [seconds for row in rows for seconds in row.seconds]
        # neighbours: medians of each side wander with a shared machine, by several percent
        yield median([ours / theirs for ours, theirs in zip(own, other.seconds, strict=False)])


def main() -> int:
    torch.set_num_threads(THREADS)
    clock = fair_clock()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; clock {clock.__name__}")
    found: list[float] = []
    for ratio in ratios(clock):
        found.append(ratio)
        print(f"pair {len(found):2}: ours / torch.utils.benchmark {ratio:.4f}", flush=True)
    apart = 100 * abs(median(found) - 1)
    return report(
        f"A matrix product on {THREADS} thread, {PAIRS} interleaved pairs",
        [
            Figure(name="median of ours over torch.utils.benchmark", value=median(found), unit=""),
            Figure(name="how far from 1", value=apart, unit="%", most=100 * MOST_APART),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
