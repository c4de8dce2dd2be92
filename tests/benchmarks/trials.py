"""What verdicts and intervals are worth, tried for real: false alarms, known slowdowns, and coverage.

Each comparison goes the way that a comparison of the program goes: its supervisor, its worker in a cold and a warm
process, its timing, its interval, its rule for "faster" and "slower". In the first two nothing is compiled, as in a
calibration: the two sides are two loads of one script, of which one can be told to do more.

    python tests/benchmarks/trials.py same      a callable beside itself: how often is a difference called?
    python tests/benchmarks/trials.py slowed    --percent 2 in one of them: how often is it called "slower"?
    python tests/benchmarks/trials.py coverage  eager beside compiled: how often does the interval hold the median?

`--windows N` makes N comparisons from each pair of processes, one timed stretch in each of the two, where starting
processes costs too much. Such comparisons share what is peculiar to their processes, so they are not independent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from compilescope.domain.config import Config
from compilescope.domain.measures import pairs_of
from compilescope.domain.resampling import ratio_interval
from compilescope.domain.run import Run
from compilescope.domain.statistics import Pairs, difference
from compilescope.domain.workload import Measurement, Workload
from compilescope.engine.feed import Feed, RunEvents
from compilescope.engine.request import RunRequest
from compilescope.engine.supervisor import Supervisor, forget

ROOT = Path(__file__).parents[2]
SLOWED = Path(__file__).parent / "callables" / "slowed.py"
PART_SIZES = {"cpu": 64, "cuda": 1024}
# shares of the comparisons that must come out so
MOST_FALSE, LEAST_CALLED, LEAST_COVERED = 0.02, {2: 0.85, 3: 0.95}, {"cpu": 0.85, "cuda": 0.8}

Row = dict[str, Any]


def main() -> int:
    arguments = parsed()
    rows: list[Row] = []
    # what was measured before an interrupt counts too
    with temporary_home(), contextlib.suppress(KeyboardInterrupt):
        for row in comparisons(arguments):
            rows.append(row)
    sentence, holds = TRIALS[arguments.trial](arguments, rows) if rows else ("Nothing was measured", None)
    print(f"{sentence}{'' if holds is None else ': pass' if holds else ': FAIL'}")
    if arguments.json:
        told = {key: value for key, value in vars(arguments).items() if key != "json"}
        result = {"arguments": told, "summary": sentence, "holds": holds, "comparisons": rows}
        Path(arguments.json).write_text(json.dumps(result), "utf-8")
    return 1 if holds is False or len(rows) < arguments.number else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=tuple(TRIALS))
    parser.add_argument("--number", type=int, default=100, help="of comparisons (100)")
    parser.add_argument("--seconds", type=float, default=6.0, help="timed part of each (6)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda … (cpu)")
    parser.add_argument("--percent", type=int, default=2, help="slowdown of one side, for slowed (2)")
    parser.add_argument("--windows", type=int, default=1, help="comparisons from each pair of processes (1)")
    parser.add_argument("--threads", type=int, help="that torch uses on the CPU; one is calmer on a busy machine")
    parser.add_argument("--script", default=str(ROOT / "resources" / "examples" / "mlp.py"), help="for coverage")
    parser.add_argument("--mode", default="default", help="of torch.compile, for coverage")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between comparisons (0)")
    parser.add_argument("--json", metavar="FILE", help="all comparisons with their series")
    arguments = parser.parse_args()
    if arguments.trial == "coverage" and arguments.windows > 1:
        parser.error("coverage is about comparisons that were started at different times: one from each pair")
    return arguments


def temporary_home() -> AbstractContextManager[str]:
    """The program's folders for this trial: nobody's history and no calibration."""
    folder = tempfile.TemporaryDirectory(prefix="compilescope-trials-")
    os.environ["COMPILESCOPE_HOME"] = folder.name
    return folder


def comparisons(arguments: argparse.Namespace) -> Iterator[Row]:
    """A row for each comparison, as they are made."""
    number = 0
    while number < arguments.number:
        began, load = time.time(), os.getloadavg()[0]
        run = carried_out(request(arguments, min(arguments.windows, arguments.number - number)))
        if run.outcome != "finished":
            print(f"A comparison did not finish: {run.error}")
            return
        for shape in range(min(arguments.windows, arguments.number - number)):
            number += 1
            row = {"began": began, "load": load, **figures([pairs_of(process, shape) for process in run.processes])}
            print(line(number, row), flush=True)
            yield row
        time.sleep(arguments.pause)


def request(arguments: argparse.Namespace, windows: int) -> RunRequest:
    """One run of the program; several windows are a sweep over one size, again and again."""
    is_played = arguments.trial != "coverage"
    size = PART_SIZES["cpu" if arguments.device == "cpu" else "cuda"]
    more = arguments.percent if arguments.trial == "slowed" else 0
    workload = Workload(
        script=str(SLOWED) if is_played else arguments.script,
        device=arguments.device,
        arguments=(str(more), str(size)) if is_played else (),
        inputs={"x": [[max(size, 1024), size]] * windows} if windows > 1 and is_played else None,
        threads=arguments.threads,
    )
    return RunRequest(
        task="calibrate" if is_played else "run",
        config=None if is_played else Config(mode=arguments.mode),
        workload=workload,
        measurement=Measurement(budget_s=arguments.seconds * windows),
    )


def carried_out(wanted: RunRequest) -> Run:
    """The run that the program makes of a request."""
    assert wanted.workload is not None
    run = Run(wanted.id, config=wanted.config or Config(), workload=wanted.workload)
    feed = Feed()
    with Supervisor(feed) as supervisor:
        supervisor.submit(wanted)
        while not run.is_over:
            feed.wait()
            for item in feed.drain():
                run.apply_all(item.events if isinstance(item, RunEvents) else ())
    forget(wanted.id)
    return run


def figures(pairs: Sequence[Pairs]) -> Row:
    """What the program says of these blocks, and the blocks themselves in microseconds."""
    found = ratio_interval(pairs)
    assert found is not None
    ratios = [math.exp(pair.log_ratio) for pair in pairs]
    series = [[[round(1e6 * s, 3) for s in side] for side in (pair.eager, pair.compiled)] for pair in pairs]
    speedup = {"value": found.value, "low": found.low, "high": found.high}
    return {"speedup": speedup, "called": difference(found), "processes": ratios, "series": series}


def line(number: int, row: Row) -> str:
    speedup = row["speedup"]
    apart = " and ".join(f"{ratio:.4f}" for ratio in row["processes"])
    return (
        f"{number:3}: {speedup['value']:.4f}, {speedup['low']:.4f} to {speedup['high']:.4f}, processes {apart}, "
        f"load {row['load']:.1f}: {row['called'] or 'no difference'}"
    )


def judge_same(_: argparse.Namespace, rows: Sequence[Row]) -> tuple[str, bool | None]:
    called = sum(row["called"] is not None for row in rows)
    return f"A difference was called in {called} of {len(rows)}", called <= MOST_FALSE * len(rows)


def judge_slowed(arguments: argparse.Namespace, rows: Sequence[Row]) -> tuple[str, bool | None]:
    called = sum(row["called"] == "slower" for row in rows)
    least = LEAST_CALLED.get(arguments.percent)
    sentence = f"{arguments.percent} % were called slower in {called} of {len(rows)}"
    return sentence, None if least is None else called >= least * len(rows)


def judge_coverage(arguments: argparse.Namespace, rows: Sequence[Row]) -> tuple[str, bool | None]:
    common = statistics.median(row["speedup"]["value"] for row in rows)
    held = sum(row["speedup"]["low"] <= common <= row["speedup"]["high"] for row in rows)
    half = statistics.median((row["speedup"]["high"] - row["speedup"]["low"]) / 2 for row in rows)
    least = LEAST_COVERED["cpu" if arguments.device == "cpu" else "cuda"]
    sentence = f"{held} of {len(rows)} intervals hold the common median {common:.4f} (half width, median {half:.4f})"
    return sentence, held >= least * len(rows)


TRIALS = {"same": judge_same, "slowed": judge_slowed, "coverage": judge_coverage}


if __name__ == "__main__":
    sys.exit(main())
