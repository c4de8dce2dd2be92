"""What the engine is asked to do."""

from __future__ import annotations

import re
import shutil
import sys
import uuid
from dataclasses import dataclass, field, replace
from typing import Literal

from compilescope.domain.config import Config
from compilescope.domain.workload import Measurement, Task, Workload

CacheChoice = Literal["fresh", "mine"]


def new_run_id() -> str:
    """A name for a run that no other run on this machine has: processes are found by it, and killed."""
    return uuid.uuid4().hex[:16]


def default_python() -> str:
    """The interpreter that runs scripts unless the user chose one."""
    if not getattr(sys, "frozen", False):
        return sys.executable
    # a bundled app's executable is the app itself
    return shutil.which("python3") or shutil.which("python") or "python3"


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One run: `run` measures `config` in a cold and a warm process, `playoff` `config` beside `rival` and `calibrate`
    eager beside itself likewise; `inspect` and `doctor` take one short process.

    `timeout_s` covers the whole run. `cache`: "fresh" = a folder of its own, "mine" = the user's compiler caches.
    `devices`: cards of which any may carry the run, whichever is free first; none = the workload's own.
    """

    id: str = field(default_factory=new_run_id)
    config: Config | None = None
    rival: Config | None = None
    workload: Workload | None = None
    measurement: Measurement = field(default_factory=Measurement)
    timeout_s: float = 900.0
    cache: CacheChoice = "fresh"
    python: str = field(default_factory=default_python)
    task: Task = "run"
    devices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", self.id) or self.id.startswith("."):
            raise ValueError(f"{self.id!r} cannot name a run: it becomes a folder and an environment variable")


def play_off_request(one: RunRequest, two: RunRequest) -> RunRequest:
    """The same work as two runs had, now with their configurations beside each other."""
    return replace(one, id=new_run_id(), task="playoff", rival=two.config)
