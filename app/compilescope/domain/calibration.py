"""What a machine's timing is worth: eager beside eager, and the noise floor that follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compilescope.domain import units
from compilescope.domain.events import Environment
from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR

# a floor beyond this would hide what people compile for: it is no property of a machine, but of a busy hour
MOST_NOISE = 0.1
# Student's two-sided 98 % quantile, for one comparison, two, three …
_T98 = (31.821, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.718, 2.681)
QUIET = "Close other programs, and repeat it; nothing was stored."


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a calibration holds for: a device of a host, with a version of torch."""

    host: str
    device: str
    torch: str

    @classmethod
    def of(cls, host: str, environment: Environment) -> Machine | None:
        """The machine of a run; None where it told too little."""
        device = environment.cpu if environment.device == "cpu" else environment.device
        if not device or not environment.torch:
            return None
        return cls(host=host, device=device, torch=environment.torch)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One comparison of a callable with itself, in two processes. `eager_s`: the median time per call."""

    callable: str
    eager_s: float
    speedup: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """`created`: Unix time. `load_average`: the largest that a process saw when it began to measure."""

    machine: Machine
    created: float
    load_average: float | None
    trials: tuple[Trial, ...]

    @property
    def noise_floor(self) -> float:
        """What a speedup has to differ from 1 by, to be called a difference on this machine.

        Where eager beside itself must be 1, what it is instead is error; 98 of 100 comparisons err by less than this
        (Student's t times the root mean square of the logarithms). Never less than the default: few comparisons do not
        show all that processes can differ by.
        """
        squares = [math.log(trial.speedup) ** 2 for trial in self.trials]
        if not squares:
            return NOISE_FLOOR
        quantile = _T98[min(len(squares), len(_T98)) - 1]
        reach = quantile * math.sqrt(math.fsum(squares) / len(squares))
        return max(NOISE_FLOOR, math.expm1(reach))

    @property
    def problem(self) -> str:
        """Why it is not to be relied on; empty where it is."""
        floor = self.noise_floor
        if floor <= MOST_NOISE:
            return ""
        load = "" if self.load_average is None else f" (load average up to {self.load_average:.1f})"
        return f"The noise floor would be {units.percent(floor)}{load}: the machine is too restless to be calibrated."

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Calibration:
        """Raises KeyError, TypeError or ValueError for what `to_json` did not make."""
        load = value["load_average"]
        trials = tuple(Trial(**row) for row in value["trials"])
        if any(not 0 < trial.speedup < math.inf for trial in trials):
            raise ValueError("a speedup that cannot be")
        return cls(
            machine=Machine(**value["machine"]),
            created=float(value["created"]),
            load_average=None if load is None else float(load),
            trials=trials,
        )


def calibration_of(runs: Sequence[Run], host: str, created: float) -> Calibration | None:
    """What the runs of a calibration came to; None unless each finished and was measured."""
    trials = [trial for run in runs if (trial := _trial(run))]
    environment = next((run.story.environment for run in runs if run.story and run.story.environment), None)
    machine = Machine.of(host, environment) if environment else None
    if machine is None or len(trials) < len(runs):
        return None
    loads = [process.noise[0].load_average for run in runs for process in run.processes if process.noise]
    return Calibration(
        machine=machine,
        created=created,
        load_average=max((load for load in loads if load is not None), default=None),
        trials=tuple(trials),
    )


def _trial(run: Run) -> Trial | None:
    measures = measure(run)
    if run.outcome != "finished" or measures.speedup is None or measures.eager is None:
        return None
    return Trial(
        callable=Path(run.workload.script).stem,
        eager_s=measures.eager.median,
        speedup=measures.speedup.value,
        low=measures.speedup.low,
        high=measures.speedup.high,
    )
