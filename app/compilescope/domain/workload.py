"""What is measured: a script's entry, the phase, precision, device and inputs; and the job that says so to a worker."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compilescope.domain.config import Config

Phase = Literal["inference", "training"]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]
GradMode = Literal["inference_mode", "no_grad", "enable_grad"]
Start = Literal["cold", "warm"]

PHASES: tuple[Phase, ...] = ("inference", "training")
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "bf16", "fp16")
GRAD_MODES: tuple[GradMode, ...] = ("inference_mode", "no_grad", "enable_grad")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The work that every configuration of a comparison does.

    `entry`: name as `scan` and the worker list it; None = the script's first.
    `device`: "cpu", "cuda", "cuda:1" …; None = the first CUDA device, or else the CPU.
    `inputs`: sizes chosen by name instead of the script's own, several per name make a shape sweep.
    `grad_mode`: how inference does without gradients, or that it does with them (enable_grad).
    `threads`: that torch uses on the CPU; None = its own choice.
    """

    script: str
    entry: str | None = None
    phase: Phase = "inference"
    precision: Precision = "fp32"
    device: str | None = None
    train_mode: bool = False
    arguments: Sequence[str] = ()
    inputs: Mapping[str, Sequence[Sequence[int]]] | None = None
    grad_mode: GradMode = "inference_mode"
    threads: int | None = None

    def to_json(self) -> dict[str, Any]:
        inputs = {name: [list(size) for size in sizes] for name, sizes in (self.inputs or {}).items()}
        return {
            "script": self.script,
            "entry": self.entry,
            "phase": self.phase,
            "precision": self.precision,
            "device": self.device,
            "train_mode": self.train_mode,
            "arguments": list(self.arguments),
            "inputs": inputs or None,
            "grad_mode": self.grad_mode,
            "threads": self.threads,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Workload:
        return cls(
            script=str(value["script"]),
            entry=value.get("entry"),
            phase=value.get("phase") or "inference",
            precision=value.get("precision") or "fp32",
            device=value.get("device"),
            train_mode=bool(value.get("train_mode", False)),
            arguments=tuple(value.get("arguments") or ()),
            inputs=value.get("inputs") or None,
            grad_mode=value.get("grad_mode") or "inference_mode",
            threads=value.get("threads"),
        )


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How long and how surely to measure. Seconds, except `interval`, a half width relative to the speedup.

    `l2_flush`: whether a CUDA device's L2 cache is written over before each call, outside of the time.
    `queued`: whether its blocks follow each other without a pause; None = the device's default. They never do where
    the host does not run ahead of the device, or has to wait for it.
    """

    budget_s: float = 10.0
    interval: float = 0.01
    seed: int = 0
    l2_flush: bool = False
    queued: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Measurement:
        known = {field.name: value[field.name] for field in dataclasses.fields(cls) if field.name in value}
        return cls(**known)


Task = Literal["run", "playoff", "calibrate", "inspect", "doctor"]
# those that measure, in a cold and a warm process
MEASURED: tuple[Task, ...] = ("run", "playoff", "calibrate")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One worker process's order, its first line on stdin.

    `task`: "run" measures `config`; "playoff" does so with `rival` in the place of eager, and checks nothing anew;
    "calibrate" measures with nothing compiled, eager beside a copy of itself;
    "inspect" builds model and inputs and describes them; "doctor" only describes the machine.
    `trace`: file that takes the structured trace (TORCH_TRACE format); None = no file.
    `budget_s` in `measurement` is this process's own share.
    `kernel_sources`: whether generated code may tell, in comments, which lines each kernel comes from.
    """

    run: str
    task: Task = "run"
    start: Start = "cold"
    workload: Workload | None = None
    config: Config | None = None
    rival: Config | None = None
    measurement: Measurement = Measurement()
    trace: str | None = None
    kernel_sources: bool = True

    def encode(self) -> str:
        """One line of JSON, without the line end."""
        return json.dumps(
            {
                "run": self.run,
                "task": self.task,
                "start": self.start,
                "workload": self.workload.to_json() if self.workload else None,
                "config": self.config.to_json() if self.config else None,
                "rival": self.rival.to_json() if self.rival else None,
                "measurement": self.measurement.to_json(),
                "trace": self.trace,
                "kernel_sources": self.kernel_sources,
            }
        )

    @classmethod
    def decode(cls, line: str) -> Job:
        value = json.loads(line)
        return cls(
            run=value["run"],
            task=value["task"],
            start=value["start"],
            workload=Workload.from_json(value["workload"]) if value.get("workload") else None,
            config=Config.from_json(value["config"]) if value.get("config") else None,
            rival=Config.from_json(value["rival"]) if value.get("rival") else None,
            measurement=Measurement.from_json(value.get("measurement") or {}),
            trace=value.get("trace"),
            kernel_sources=value.get("kernel_sources", True),
        )
