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

PAIRS, PAIR_S = 10, 1.5
MOST_APART = 0.03
THREADS = 1


def ours(model: nn.Module, x: torch.Tensor, clock: Callable[[], float]) -> float:
    """Seconds per call, back to back: the median of our blocks."""
    recipe = Recipe(
        training=False,
        precision="fp32",
        device=torch.device("cpu"),
        loss=mean_square,
        optimizer=torch.optim.AdamW,
    )
    sides = [(Side(name, model, model, recipe), Inputs(args=(x,))) for name in ("eager", "compiled")]
    events: list[Event] = []
    Timer(sides, events.append, lambda: 0, clock=WallClock(clock)).run(Plan(budget_s=PAIR_S, interval=0.0))
    rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
    return median([seconds for row in rows for seconds in row.seconds])


def theirs(model: nn.Module, x: torch.Tensor, clock: Callable[[], float]) -> float:
    """Seconds per call: the median of `blocked_autorange`."""
    with torch.inference_mode():
        timer = benchmark.Timer("model(x)", globals={"model": model, "x": x}, timer=clock, num_threads=THREADS)
        return float(timer.blocked_autorange(min_run_time=PAIR_S).median)


def ratios(clock: Callable[[], float]) -> Iterator[float]:
    """Ours over theirs, a pair at a time; each goes first every other time."""
    torch.manual_seed(0)
    model, x = nn.Linear(512, 512).eval(), torch.randn(256, 512)
    for number in range(PAIRS):
        if number % 2:
            other = theirs(model, x, clock)
            yield ours(model, x, clock) / other
        else:
            own = ours(model, x, clock)
            yield own / theirs(model, x, clock)


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
