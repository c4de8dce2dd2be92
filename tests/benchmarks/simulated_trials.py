"""What verdicts and intervals are worth, in numbers that no machine has time for: a simulation from recorded series.

A simulated process is drawn from the blocks of a recorded one, in runs of neighbours, beside itself ("same"). What a
simulation adds to that: a slowdown, a speed of the machine that both sides share, and a difference between processes
that they do not share, in multiples of what a process's own blocks leave open. The interval is the program's own.

    python tests/benchmarks/simulated_trials.py --series FILE …     files that `trials.py same --json FILE` wrote

Without --series: those of the unit tests, recorded on an NVIDIA H200 and on a shared server's CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from compilescope.domain.resampling import ratio_interval
from compilescope.domain.statistics import Interval, Pairs, difference

RECORDED = Path(__file__).parents[1] / "unit" / "domain"
RUN = 5
# differences between processes, in standard errors of one process's own ratio
APART = (0.0, 0.5, 1.0, 2.0, 4.0)
MOST_FALSE, LEAST_COVERED, LEAST_CALLED = 0.02, 0.85, 0.95
SHARED = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", metavar="FILE", nargs="*", default=[], help="what trials.py recorded")
    parser.add_argument("--number", type=int, default=400, help="of comparisons of each kind (400)")
    parser.add_argument("--blocks", type=int, help="pairs of blocks in each process (as many as were recorded)")
    arguments = parser.parse_args()
    given = [pairs for name in arguments.series for pairs in from_trials(Path(name))]
    holds = []
    for name, recorded in {"as given": given}.items() if given else kept().items():
        print(f"Series {name}")
        blocks = arguments.blocks or round(statistics.median(map(len, recorded)))
        simulation = Simulation(recorded, arguments.number, blocks)
        holds += [*simulation.false_alarms(), *simulation.sensitivity(), *simulation.coverage()]
    return 0 if all(holds) else 1


def from_trials(path: Path) -> list[Pairs]:
    told = json.loads(path.read_text("utf-8"))
    clock = "wall" if told["arguments"]["device"] == "cpu" else "cuda_event"
    rows = told["comparisons"]
    return [Pairs(eager=eager, compiled=other, clock=clock) for row in rows for eager, other in row["series"]]


def kept() -> dict[str, list[Pairs]]:
    """On the GPU a large product and a chain of pointwise kernels; an encoder's series are too unlike each other."""
    found = {}
    for name, clock, functions in (
        ("series_h200.json", "cuda_event", ("mlp", "pointwise")),
        ("series_cpu.json", "wall", ("products",)),
    ):
        series = json.loads((RECORDED / name).read_text("utf-8"))["series"]
        rows = [row["same"] for function in functions for row in series[function]]
        found[f"of {name}"] = [Pairs(eager=eager, compiled=other, clock=clock) for eager, other in rows]
    return found


class Simulation:
    """Comparisons of two processes each, and what the program says of them."""

    def __init__(self, recorded: Sequence[Pairs], number: int, blocks: int) -> None:
        self._recorded = recorded
        self._number = number
        self._blocks = blocks
        self._rng = random.Random(0)

    def false_alarms(self) -> list[bool]:
        holds = []
        for apart in APART:
            called = self._share(difference(found) is not None for found in self._comparisons(apart=apart))
            # beyond that it is the noise floor of a machine, which calibration finds, that has to keep quiet
            must = apart <= 1.0
            holds.append(not must or called <= MOST_FALSE)
            print(f"same, processes {apart:g} apart: {called:.1%} called different{_verdict(must, holds[-1])}")
        return holds

    def sensitivity(self) -> list[bool]:
        holds = []
        for percent in (1, 2, 3):
            found = self._comparisons(apart=0.5, ratio=1 / (1 + percent / 100))
            called = self._share(difference(interval) == "slower" for interval in found)
            must = percent == 2
            holds.append(not must or called >= LEAST_CALLED)
            print(f"{percent} % slower: called in {called:.1%}{_verdict(must, holds[-1])}")
        return holds

    def coverage(self) -> list[bool]:
        holds = []
        for apart in APART:
            found = self._comparisons(apart=apart, ratio=1.4)
            held = self._share(interval.contains(1.4) for interval in found)
            half = sorted(interval.half_width for interval in found)[len(found) // 2]
            holds.append(held >= LEAST_COVERED)
            print(f"1.4×, processes {apart:g} apart: {held:.1%} hold it, ± {half:.2%}{_verdict(True, holds[-1])}")
        return holds

    def _comparisons(self, *, apart: float, ratio: float = 1.0) -> list[Interval]:
        found = [
            ratio_interval([self._process(apart, ratio) for _ in range(2)], resamples=100) for _ in range(self._number)
        ]
        return [interval for interval in found if interval is not None]

    def _process(self, apart: float, ratio: float) -> Pairs:
        """A process drawn from a recorded one, whose own ratio is taken off: the truth is to be `ratio`."""
        rng, recorded = self._rng, self._rng.choice(self._recorded)
        starts = [rng.randrange(len(recorded) - RUN) for _ in range(-(-self._blocks // RUN))]
        drawn = [index for start in starts for index in range(start, start + RUN)]
        level, own = rng.gauss(0, SHARED), rng.gauss(0, apart * _standard_error(recorded, self._blocks))
        factor = ratio * math.exp(level + own - recorded.log_ratio)
        return Pairs(
            eager=[factor * recorded.eager[index] for index in drawn],
            compiled=[math.exp(level) * recorded.compiled[index] for index in drawn],
            clock=recorded.clock,
        )

    def _share(self, wanted: Iterable[bool]) -> float:
        return sum(wanted) / self._number


def _standard_error(recorded: Pairs, blocks: int) -> float:
    """What blocks of one process leave open of its log ratio."""
    ratios = [math.log(one / other) for one, other in zip(recorded.eager, recorded.compiled, strict=True)]
    ordered = sorted(ratios)
    # of a median, from the middle half, which stragglers do not reach
    deviation = (ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4]) / 1.349
    return deviation * math.sqrt(math.pi / 2 / blocks)


def _verdict(must: bool, holds: bool) -> str:
    return (": pass" if holds else ": FAIL") if must else ""


if __name__ == "__main__":
    sys.exit(main())
