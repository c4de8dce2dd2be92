"""What a comparison of four configurations costs beside a script written by hand that does the same work.

The script starts the same cold and warm processes with a fresh compile cache for each configuration, compiles, and
times as many calls of both sides as the comparison did; it checks nothing and tells nothing. Each configuration runs
through the engine and then by hand, so that both meet the same machine. Where other work takes the processor away, the
time that has passed tells of that work; the processor time of all processes then decides, and both are told.
Run: python tests/benchmarks/overhead.py [SCRIPT [CONFIGURATIONS]]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from figures import Figure, report

from compilescope.domain import events as e
from compilescope.domain.config import Choices, Config
from compilescope.domain.workload import Measurement, Workload
from compilescope.engine.feed import Feed, RunEvents
from compilescope.engine.request import RunRequest
from compilescope.engine.supervisor import Supervisor, forget

SCRIPT = Path(__file__).resolve().parents[2] / "resources" / "examples" / "mlp.py"
MOST_RATIO = 1.15
BUDGET_S = 10.0
CONFIGS = Choices(dynamics=(None, True), fullgraphs=(False, True)).product()
# what the worker's stages and the hand-written process have in common
PARTS = {
    "start": "import of torch",
    "load": "load",
    "eager": "eager",
    "compile": "compile",
    "warm_up": "warm-up",
    "measure": "timing",
}
BY_HAND = """
import time
began = time.perf_counter()
import importlib.util, json, os, sys
order = json.loads(sys.argv[1])
told = {}
def part(name):
    global began
    now = time.perf_counter()
    told[name], began = now - began, now
import torch
part("start")
torch.manual_seed(0)
def load():
    spec = importlib.util.spec_from_file_location("model", order["script"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.Model(*module.get_init_inputs()).eval()
# eager and compiled run on models of their own
(module, model), (_, twin) = load(), load()
twin.load_state_dict(model.state_dict())
inputs = module.get_inputs()
part("load")
with torch.inference_mode():
    compiled = torch.compile(twin, dynamic=order["dynamic"], fullgraph=order["fullgraph"])
    compiled(*inputs)
    part("compile")
    model(*inputs)
    part("eager")
    for _ in range(3):
        model(*inputs)
        compiled(*inputs)
    part("warm_up")
    for side, call in (("eager", model), ("compiled", compiled)):
        timed = time.perf_counter()
        for _ in range(order["calls"][side]):
            call(*inputs)
        told[side] = (time.perf_counter() - timed) / max(order["calls"][side], 1)
    part("measure")
print(json.dumps(told), flush=True)
os._exit(0)
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds that have passed, and seconds of processor time of this process and those that it has seen end."""

    wall_s: float = 0.0
    processor_s: float = 0.0

    @classmethod
    def now(cls) -> Cost:
        times = os.times()
        return cls(wall_s=time.perf_counter(), processor_s=sum(times[:4]))

    def __add__(self, other: Cost) -> Cost:
        return Cost(wall_s=self.wall_s + other.wall_s, processor_s=self.processor_s + other.processor_s)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(wall_s=self.wall_s - other.wall_s, processor_s=self.processor_s - other.processor_s)

    def __str__(self) -> str:
        return f"{self.wall_s:6.1f} s ({self.processor_s:6.1f} s of processor)"


@dataclass(kw_only=True)
class Process:
    """One worker process: seconds by stage, and timed calls by side, in blocks or waited for one by one."""

    start: str
    stages: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    is_measured: bool = False

    def take(self, event: e.Event) -> None:
        if isinstance(event, e.Stage) and event.duration_s is not None:
            self.stages[event.name] += event.duration_s
        elif isinstance(event, e.Measured):
            self.is_measured = True
        elif isinstance(event, e.Samples):
            # latencies told while blocks are timed are of the very calls of these blocks
            alone = len(event.seconds) if self.is_measured else 0
            self.calls[event.side] += sum(event.calls) if event.measure == "back_to_back" else alone


def through_the_engine(config: Config, script: Path) -> tuple[Cost, list[Process]]:
    """What it costs from the order to the run's end, and its processes."""
    request = RunRequest(
        config=config,
        workload=Workload(script=str(script), device="cpu"),
        measurement=Measurement(budget_s=BUDGET_S),
    )
    feed, processes, ended = Feed(), list[Process](), None
    began = Cost.now()
    with Supervisor(feed) as supervisor:
        supervisor.submit(request)
        while ended is None:
            feed.wait(0.1)
            for event in (event for item in feed.drain() if isinstance(item, RunEvents) for event in item.events):
                if isinstance(event, e.Hello):
                    processes.append(Process(start=event.start))
                elif isinstance(event, e.Ended):
                    ended = event
                elif processes:
                    processes[-1].take(event)
        took = Cost.now() - began
    forget(request.id)
    if ended.outcome != "finished":
        raise SystemExit(f"{config.label}: {ended.error.message if ended.error else ended.outcome}")
    return took, processes


def by_hand(config: Config, script: Path, calls: Sequence[Mapping[str, int]]) -> tuple[Cost, list[dict[str, float]]]:
    """The cost of one process after the other with a fresh cache of their own, each with its calls; and their parts."""
    told = []
    began = Cost.now()
    with tempfile.TemporaryDirectory(prefix="compilescope-by-hand-", ignore_cleanup_errors=True) as cache:
        for its in calls:
            order = {"script": str(script), "dynamic": config.dynamic, "fullgraph": config.fullgraph, "calls": its}
            out = subprocess.run(
                [sys.executable, "-c", BY_HAND, json.dumps(order)],
                env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            told.append(json.loads(out.splitlines()[-1]))
        took = Cost.now() - began
    return took, told


def main(script: Path, configs: Sequence[Config]) -> int:
    is_busy = os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    # the header that all C++ kernels share is compiled once per machine, by whoever comes first
    by_hand(CONFIGS[0], script, [{"eager": 1, "compiled": 1}])
    ours, hand = Cost(), Cost()
    parts: dict[str, tuple[Counter[str], Counter[str]]] = {start: (Counter(), Counter()) for start in ("cold", "warm")}
    for config in configs:
        took, processes = through_the_engine(config, script)
        other, told = by_hand(config, script, [dict(process.calls) for process in processes])
        ours, hand = ours + took, hand + other
        for process, its in zip(processes, told, strict=True):
            parts[process.start][0].update(process.stages)
            parts[process.start][1].update({name: its[name] for name in PARTS})
        print(f"{config.label:<28} ours {took}, by hand {other}", flush=True)
    _tell_parts(parts, ours.wall_s, hand.wall_s)
    ratios = {"time": ours.wall_s / hand.wall_s, "processor time": ours.processor_s / hand.processor_s}
    decisive = "processor time" if is_busy else "time"
    return report(
        f"{len(configs)} configurations of {script.name}, {BUDGET_S:g} s of timing each, over the hand-written script",
        [
            Figure(name=name, value=value, unit="", most=MOST_RATIO if name == decisive else None)
            for name, value in ratios.items()
        ],
    )


def _tell_parts(parts: Mapping[str, tuple[Counter[str], Counter[str]]], ours: float, hand: float) -> None:
    """Where the time goes, all configurations together."""
    print(f"\n{'seconds':<28}{'ours':>8}{'by hand':>9}{'more':>8}")
    known = [0.0, 0.0]
    for start, (mine, theirs) in parts.items():
        for name in dict.fromkeys([*PARTS, *mine]):
            label = f"{start}: {PARTS.get(name, name)}"
            print(f"{label:<28}{mine[name]:8.2f}{theirs[name]:9.2f}{mine[name] - theirs[name]:8.2f}")
        known = [known[0] + sum(mine.values()), known[1] + sum(theirs.values())]
    rest = ours - known[0], hand - known[1]
    print(f"{'starts and ends of processes':<28}{rest[0]:8.2f}{rest[1]:9.2f}{rest[0] - rest[1]:8.2f}")
    print(f"{'all':<28}{ours:8.2f}{hand:9.2f}{ours - hand:8.2f}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="compilescope-overhead-") as home:
        os.environ["COMPILESCOPE_HOME"] = home
        wanted = int(sys.argv[2]) if len(sys.argv) > 2 else len(CONFIGS)
        sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SCRIPT, CONFIGS[:wanted]))
