"""Our GPU timing beside triton.testing.do_bench, for a machine with an NVIDIA GPU.

Compute-bound callables, the L2 cache flushed by both: the medians must agree. A card near its power limit lowers its
clock after some tenths of a second of load, so each measurement follows the same load. What takes the card to that
limit is shown only: between our blocks it rests for a moment, and ran one to three percent faster than under do_bench,
which queues a second's calls at once. Each stands beside the median and the mean of do_bench, and beside how do_bench
agrees with itself. A launch-bound callable: all numbers side by side, since each answers another question.
Run: python tests/benchmarks/gpu_timing.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import torch
from figures import Figure, median, report
from torch import nn

from compilescope.domain.events import Event, Samples
from compilescope.worker.clocks import Clock, EventClock, FlushedEventClock
from compilescope.worker.gpu import launches
from compilescope.worker.inputs import Inputs
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PAIRS, PAIR_S, LOAD_S = 10, 1.0, 0.7
MOST_APART = 0.01


class Product(NamedTuple):
    """A product of square matrices. Zeros take so little power that the clock stays at its highest."""

    size: int
    dtype: torch.dtype
    make: Callable[..., torch.Tensor]
    is_at_power_limit: bool = False

    @property
    def name(self) -> str:
        return f"{self.size} x {self.size}, {str(self.dtype)[6:]}, {self.make.__name__}"


PRODUCTS = (
    Product(4096, torch.float32, torch.randn),
    Product(2048, torch.bfloat16, torch.randn),
    Product(8192, torch.bfloat16, torch.zeros),
    Product(8192, torch.bfloat16, torch.randn, is_at_power_limit=True),
)


def side_of(model: nn.Module, device: torch.device) -> Side:
    recipe = Recipe(training=False, precision="fp32", device=device, loss=mean_square, optimizer=torch.optim.AdamW)
    return Side("eager", model, model, recipe)


def ours(side: Side, inputs: Inputs, clock: Clock) -> dict[str, float]:
    """Medians in seconds: back_to_back by this clock, the wall clock beside it, and latency.

    Of the later half: the timer begins with a garbage collection, after which a rested card is faster for a while.
    """
    events: list[Event] = []
    Timer([(side, inputs), (side, inputs)], events.append, lambda: 0, clock=clock).run(
        Plan(budget_s=2 * PAIR_S, interval=0.0)
    )
    rows = [row for row in events if isinstance(row, Samples)]
    found = {
        name: [seconds for row in rows if row.measure == name for seconds in row.seconds]
        for name in ("back_to_back", "latency")
    }
    found["wall"] = [seconds for row in rows for seconds in row.wall_s]
    return {name: median(values[len(values) // 2 :]) for name, values in found.items() if values}


def do_bench(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds: median and mean of do_bench, which flushes the L2 cache before each call."""
    from triton.testing import do_bench as bench

    with torch.inference_mode():
        times = bench(call, warmup=100, rep=int(PAIR_S * 1000), return_mode="all")
    return median(times) / 1e3, sum(times) / len(times) / 1e3


def load(call: Callable[[], Any]) -> None:
    """The card at work, until its clock is what it holds under this load."""
    end = perf_counter() + LOAD_S
    with torch.inference_mode():
        while perf_counter() < end:
            for _ in range(4):
                call()
            torch.cuda.synchronize()


def compute_bound(device: torch.device, product: Product) -> list[Figure]:
    """What flushing both sides alike must give. They take turns at being first."""
    torch.manual_seed(0)
    size, dtype, name = product.size, product.dtype, product.name
    weight, x = (product.make(size, size, device=device, dtype=dtype) for _ in range(2))
    model = nn.Linear(size, size, device=device, dtype=dtype).eval()
    model.load_state_dict({"weight": weight, "bias": torch.zeros_like(weight[0])})
    inputs = Inputs(args=(x,))
    side, clock = side_of(model, device), FlushedEventClock(device)
    ratios, means, selves = [], [], []

    def call() -> Any:
        return model(*inputs.args)

    def by_us() -> float:
        load(call)
        return ours(side, inputs, clock)["back_to_back"]

    def by_do_bench() -> tuple[float, float]:
        load(call)
        return do_bench(call)

    for number in range(PAIRS):
        first = by_us() if number % 2 else None
        one, two = by_do_bench(), by_do_bench()
        own, theirs = first or by_us(), one if first else two
        ratios.append(own / theirs[0])
        means.append(own / theirs[1])
        selves.append(one[0] / two[0])
        print(
            f"{name}, pair {number + 1:2}: ours over do_bench's median {ratios[-1]:.4f}, over its mean "
            f"{means[-1]:.4f}; do_bench over itself {selves[-1]:.4f}"
        )
    apart, most = 100 * abs(median(ratios) - 1), 100 * MOST_APART
    return [
        Figure(name=f"{name}: ours over do_bench's median, percent over 1", value=100 * (median(ratios) - 1), unit="%"),
        Figure(name=f"{name}: ours over do_bench's mean, percent over 1", value=100 * (median(means) - 1), unit="%"),
        Figure(name=f"{name}: do_bench over itself, percent over 1", value=100 * (median(selves) - 1), unit="%"),
        Figure(name=f"{name}: how far from 1", value=apart, unit="%", most=None if product.is_at_power_limit else most),
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
    found = [figure for product in PRODUCTS for figure in compute_bound(device, product)]
    launch_bound(device)
    return report("GPU timing beside triton.testing.do_bench", found)


if __name__ == "__main__":
    sys.exit(main())
