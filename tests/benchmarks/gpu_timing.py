"""Our GPU timing beside triton.testing.do_bench, for a machine with an NVIDIA GPU: torch and triton are enough.

Products, the L2 cache flushed by both; the medians must agree. Ours stands there twice: with blocks that follow each
other without a pause, and with a wait after each, in which the card rests and then runs at a higher clock. do_bench
queues a second's calls at once. Beside each pair stands how do_bench agrees with itself, and the clock of the card in
MHz, as it was while each of the three ran. A card near its power limit lowers its clock after some tenths of a second
of load, so each measurement follows the same load, and they take turns at being first.

    PYTHONPATH=app python tests/benchmarks/gpu_timing.py [--pairs 10] [--all] [--launch-bound]

It takes about two minutes; `--all` adds products of 8192 in bf16, which take the card to its power limit, and
`--launch-bound` a call of many small kernels: all numbers side by side, since each answers another question.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import torch
from figures import Figure, median, report
from torch import nn

from compilescope.domain.events import Event, Measured, Samples
from compilescope.worker.clocks import Clock, EventClock, FlushedEventClock
from compilescope.worker.gpu import launches
from compilescope.worker.inputs import Inputs
from compilescope.worker.nvml import card_of
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.timing import Plan, Timer

PAIRS, PAIR_S, LOAD_S = 10, 0.8, 0.3
MOST_APART = 0.01


class Product(NamedTuple):
    """A product of square matrices. Zeros take so little power that the clock stays at its highest."""

    size: int
    dtype: torch.dtype
    make: Callable[..., torch.Tensor]

    @property
    def name(self) -> str:
        return f"{self.size} x {self.size}, {str(self.dtype)[6:]}, {self.make.__name__}"


PRODUCTS = (Product(4096, torch.float32, torch.randn), Product(2048, torch.bfloat16, torch.randn))
MORE_PRODUCTS = (Product(8192, torch.bfloat16, torch.zeros), Product(8192, torch.bfloat16, torch.randn))


class Timing(NamedTuple):
    """Seconds per call, and the card's clock in MHz while it ran; 0 where it is not known."""

    seconds: float
    mhz: float


def main() -> int:
    arguments = parsed()
    if not torch.cuda.is_available():
        print("There is no CUDA device here.")
        return 2
    device = torch.device("cuda", torch.cuda.current_device())
    print(
        f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}; clock of the card: {cost_of_a_look(device)}"
    )
    products = (*PRODUCTS, *MORE_PRODUCTS) if arguments.all else PRODUCTS
    found = [figure for product in products for figure in Comparison(device, product).figures(arguments.pairs)]
    if arguments.launch_bound:
        launch_bound(device)
    return report("GPU timing beside triton.testing.do_bench", found)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"of each product ({PAIRS})")
    parser.add_argument("--all", action="store_true", help="larger products too")
    parser.add_argument("--launch-bound", action="store_true", help="a call of many small kernels too")
    return parser.parse_args()


def cost_of_a_look(device: torch.device) -> str:
    card = card_of(device)
    if card is None:
        return "not told"
    took = []
    for _ in range(50):
        began = perf_counter()
        mhz = card.clock_mhz()
        took.append(perf_counter() - began)
    return f"{mhz} MHz, each look {1e6 * median(took):.0f} us, the longest {1e6 * max(took):.0f} us"


class Comparison:
    """One product by us, in both ways, and by do_bench."""

    def __init__(self, device: torch.device, product: Product) -> None:
        torch.manual_seed(0)
        size, dtype = product.size, product.dtype
        weight, x = (product.make(size, size, device=device, dtype=dtype) for _ in range(2))
        self._name = product.name
        self._device = device
        self._model = nn.Linear(size, size, device=device, dtype=dtype).eval()
        self._model.load_state_dict({"weight": weight, "bias": torch.zeros_like(weight[0])})
        self._inputs = Inputs(args=(x,))
        self._side = side_of(self._model, device)
        self._clocks = {name: FlushedEventClock(device, queues=name == "queued") for name in ("paused", "queued")}

    def figures(self, pairs: int) -> list[Figure]:
        ratios: dict[str, list[float]] = {"paused": [], "queued": [], "itself": []}
        for number in range(pairs):
            found = dict(self._pair(number))
            for name, values in ratios.items():
                values.append(found[name].seconds / found["do_bench"].seconds)
            told = ", ".join(f"{name} {values[-1]:.4f}" for name, values in ratios.items())
            clocks = ", ".join(f"{name} {found[name].mhz:.0f}" for name in ("paused", "queued", "do_bench"))
            print(f"{self._name}, pair {number + 1:2}: over do_bench's median: {told}; MHz: {clocks}", flush=True)
        return [
            Figure(name=f"{self._name}: {name} over do_bench", value=100 * (median(values) - 1), unit="%")
            for name, values in ratios.items()
        ] + [
            Figure(
                name=f"{self._name}: queued, how far from 1",
                value=100 * abs(median(ratios["queued"]) - 1),
                unit="%",
                most=100 * MOST_APART,
            )
        ]

    def _pair(self, number: int) -> Iterator[tuple[str, Timing]]:
        """Each way once, do_bench twice; each time another one is the first."""
        names = ("do_bench", "paused", "itself", "queued")
        for index in range(len(names)):
            name = names[(index + number) % len(names)]
            load(self._call)
            clock = self._clocks.get(name)
            yield name, do_bench(self._call, self._device) if clock is None else self._by_us(clock)

    def _call(self) -> Any:
        return self._model(*self._inputs.args)

    def _by_us(self, clock: Clock) -> Timing:
        """Of the later half: the timer begins with a garbage collection, after which a rested card is faster for a
        while."""
        events = timed(self._side, self._inputs, clock, PAIR_S)
        (end,) = [row for row in events if isinstance(row, Measured)]
        if end.queued != clock.queues:
            print("  blocks were not queued: the host did not run ahead")
        rows = [row for row in events if isinstance(row, Samples) and row.measure == "back_to_back"]
        seconds = later_half([value for row in rows for value in row.seconds])
        mhz = later_half([value for row in rows for value in row.clock_mhz])
        return Timing(median(seconds), median(mhz) if mhz else 0)


def side_of(model: nn.Module, device: torch.device) -> Side:
    recipe = Recipe(training=False, precision="fp32", device=device, loss=mean_square, optimizer=torch.optim.AdamW)
    return Side("eager", model, model, recipe)


def timed(side: Side, inputs: Inputs, clock: Clock, seconds: float) -> list[Event]:
    """What our timer tells of a call beside itself."""
    events: list[Event] = []
    timer = Timer([(side, inputs), (side, inputs)], events.append, lambda: 0, clock=clock)
    timer.run(Plan(budget_s=seconds, interval=0.0))
    return events


def later_half(values: Sequence[Any]) -> Sequence[Any]:
    return values[len(values) // 2 :]


def do_bench(call: Callable[[], Any], device: torch.device) -> Timing:
    """The median of do_bench, which flushes the L2 cache before each call and queues all calls at once."""
    from triton.testing import do_bench as bench

    with torch.inference_mode(), Looks(device) as looks:
        times = bench(call, warmup=100, rep=int(PAIR_S * 1000), return_mode="all")
    mhz = later_half(looks.mhz)
    return Timing(median(times) / 1e3, median(mhz) if mhz else 0)


class Looks:
    """The card's clock every few milliseconds, from a thread of its own, while something runs that is waited for."""

    def __init__(self, device: torch.device) -> None:
        self._card = card_of(device)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="looks")
        self.mhz: list[int] = []

    def __enter__(self) -> Looks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while self._card is not None and not self._over.wait(0.02):
            self.mhz.append(self._card.clock_mhz() or 0)


def load(call: Callable[[], Any]) -> None:
    """The card at work, until its clock is what it holds under this load."""
    end = perf_counter() + LOAD_S
    with torch.inference_mode():
        while perf_counter() < end:
            for _ in range(4):
                call()
            torch.cuda.synchronize()


def launch_bound(device: torch.device) -> None:
    """Many small kernels: the numbers differ, and say so."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to(device).eval()
    inputs = Inputs(args=(torch.randn(4, 32, 128, device=device),))
    side = side_of(model, device)
    plain = medians(timed(side, inputs, EventClock(), 2.0))
    flushed = medians(timed(side, inputs, FlushedEventClock(device), 2.0))

    def call() -> Any:
        return model(*inputs.args)

    rows = [
        ("back to back", plain["back_to_back"], "CUDA events around a block: what a loop or a busy server gets"),
        ("wall clock", plain["wall"], "the same block by the host's clock; none where blocks are queued"),
        ("latency", plain["latency"], "each call waited for: what a single request sees"),
        ("GPU busy", launches(side, inputs).busy_s, "sum of kernel times: what is left if launches were free"),
        ("L2 flushed", flushed["back_to_back"], "events around each call, its data no longer in the cache"),
        ("do_bench", do_bench(call, device).seconds, "the same as L2 flushed, by Triton"),
        ("do_bench, bound", do_bench(side.bound(inputs), device).seconds, "the same, of the very call timed above"),
    ]
    print("Launch-bound, medians per call")
    for name, seconds, meaning in rows:
        print(f"  {name:<16}{seconds * 1e6:10.1f} us  {meaning}")


def medians(events: Sequence[Event]) -> dict[str, float]:
    """In seconds: back_to_back, latency, and the wall clock beside the blocks; of the later half of each."""
    rows = [row for row in events if isinstance(row, Samples)]
    found = {
        name: [seconds for row in rows if row.measure == name for seconds in row.seconds]
        for name in ("back_to_back", "latency")
    }
    found["wall"] = [seconds for row in rows for seconds in row.wall_s]
    return {name: median(later_half(values)) if values else 0.0 for name, values in found.items()}


if __name__ == "__main__":
    sys.exit(main())
