"""Our GPU timing beside triton.testing.do_bench, for a machine with an NVIDIA GPU.

Compute-bound callables, the L2 cache flushed by both: the medians must agree. A product of zeros leaves the card below
its power limit; one of random numbers does not, so that its clock follows what ran before, and is shown only. Each
stands beside the median and the mean of do_bench, and beside how do_bench agrees with itself. A launch-bound callable:
all numbers side by side, since each answers another question.
Run: python tests/benchmarks/gpu_timing.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from figures import Figure, median, report
from torch import nn

from compilescope.domain.events import Event, Samples
from compilescope.worker.clocks import Clock, EventClock, FlushedEventClock
from compilescope.worker.gpu import launches
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PAIRS, PAIR_S = 10, 1.0
SIZE = 8192
MOST_APART = 0.01


def side_of(model: nn.Module, device: torch.device) -> Side:
    recipe = Recipe(training=False, precision="fp32", device=device, loss=mean_square, optimizer=torch.optim.AdamW)
    return Side("eager", model, model, recipe)


def ours(side: Side, inputs: Inputs, clock: Clock) -> dict[str, float]:
    """Medians in seconds: back_to_back by this clock, the wall clock beside it, and latency."""
    events: list[Event] = []
    Timer([(side, inputs), (side, inputs)], events.append, lambda: 0, clock=clock).run(
        Plan(budget_s=PAIR_S, interval=0.0)
    )
    rows = [row for row in events if isinstance(row, Samples)]
    found = {
        name: [seconds for row in rows if row.measure == name for seconds in row.seconds]
        for name in ("back_to_back", "latency")
    }
    found["wall"] = [seconds for row in rows for seconds in row.wall_s]
    return {name: median(values) for name, values in found.items() if values}


def do_bench(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds: median and mean of do_bench, which flushes the L2 cache before each call."""
    from triton.testing import do_bench as bench

    with torch.inference_mode():
        times = bench(call, warmup=100, rep=int(PAIR_S * 1000), return_mode="all")
    return median(times) / 1e3, sum(times) / len(times) / 1e3


def compute_bound(device: torch.device, fill: str, most: float | None) -> list[Figure]:
    """A large matrix product: what flushing both sides alike must give. They take turns at being first.

    `fill`: "random", or "zeros", which take so little power that the clock stays at its highest.
    """
    torch.manual_seed(0)
    values = torch.randn if fill == "random" else torch.zeros
    weight, x = (values(SIZE, SIZE, device=device, dtype=torch.bfloat16) for _ in range(2))
    model = nn.Linear(SIZE, SIZE, device=device, dtype=torch.bfloat16).eval()
    model.load_state_dict({"weight": weight, "bias": torch.zeros_like(weight[0])})
    inputs = Inputs(args=(x,))
    side, clock = side_of(model, device), FlushedEventClock(device)
    name = f"{SIZE} x {SIZE} in bfloat16, {fill}"
    ratios, means, selves = [], [], []
    for number in range(PAIRS):
        first = ours(side, inputs, clock)["back_to_back"] if number % 2 else None
        one, two = (do_bench(lambda: model(*inputs.args)) for _ in range(2))
        own, theirs = first or ours(side, inputs, clock)["back_to_back"], one if first else two
        ratios.append(own / theirs[0])
        means.append(own / theirs[1])
        selves.append(one[0] / two[0])
        print(
            f"{name}, pair {number + 1:2}: ours over do_bench's median {ratios[-1]:.4f}, over its mean "
            f"{means[-1]:.4f}; do_bench over itself {selves[-1]:.4f}"
        )
    apart = 100 * abs(median(ratios) - 1)
    return [
        Figure(name=f"{name}: ours over do_bench's median, percent over 1", value=100 * (median(ratios) - 1), unit="%"),
        Figure(name=f"{name}: ours over do_bench's mean, percent over 1", value=100 * (median(means) - 1), unit="%"),
        Figure(name=f"{name}: do_bench over itself, percent over 1", value=100 * (median(selves) - 1), unit="%"),
        *([Figure(name=f"{name}: how far from 1", value=apart, unit="%", most=100 * most)] if most else []),
    ]


def launch_bound(device: torch.device) -> None:
    """Many small kernels: the numbers differ, and say so."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to(device).eval()
    inputs = Inputs(args=(torch.randn(4, 32, 128, device=device),))
    side = side_of(model, device)
    plain, flushed = ours(side, inputs, EventClock()), ours(side, inputs, FlushedEventClock(device))
    rows = [
        ("back to back", plain["back_to_back"], "CUDA events around a block: what a loop or a busy server gets"),
        ("wall clock", plain["wall"], "the same block by the host's clock"),
        ("latency", plain["latency"], "each call waited for: what a single request sees"),
        ("GPU busy", launches(side, inputs).busy_s, "sum of kernel times: what is left if launches were free"),
        ("L2 flushed", flushed["back_to_back"], "events around each call, its data no longer in the cache"),
        ("do_bench", do_bench(lambda: model(*inputs.args))[0], "the same as L2 flushed, by Triton"),
        ("do_bench, bound", do_bench(side.bound(inputs))[0], "the same, of the very call that is timed above"),
    ]
    print("Launch-bound, medians per call")
    for name, seconds, meaning in rows:
        print(f"  {name:<16}{seconds * 1e6:10.1f} us  {meaning}")


def main() -> int:
    if not torch.cuda.is_available():
        print("There is no CUDA device here.")
        return 2
    device = torch.device("cuda", torch.cuda.current_device())
    print(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}")
    found = [*compute_bound(device, "zeros", MOST_APART), *compute_bound(device, "random", None)]
    launch_bound(device)
    return report("GPU timing beside triton.testing.do_bench", found)


if __name__ == "__main__":
    sys.exit(main())
