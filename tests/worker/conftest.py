"""Starts worker processes with a job and reads their events, as the engine does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from compilescope.domain.config import Config
from compilescope.domain.events import Event, decode
from compilescope.domain.workload import Job, Measurement, Workload

# another interpreter with another torch shows what a version makes of the same scripts
PYTHON = os.environ.get("COMPILESCOPE_TEST_PYTHON", sys.executable)
WORKER = Path(__file__).parents[2] / "app" / "compilescope" / "worker" / "__main__.py"
Kind = TypeVar("Kind", bound=Event)


@dataclass
class Told:
    """What a worker process said and how it left."""

    events: list[Event] = field(default_factory=list)
    odd_lines: list[str] = field(default_factory=list)
    log: str = ""
    status: int | None = None

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[Kind]) -> Kind:
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} {kind.__name__} events\n{self.log[-3000:]}"
        return found[0]


def start(
    job: Job | None, *, cache: str | None = None, environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A worker that has its order, or waits for it; its stdin stays open."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("COMPILESCOPE", "PYTHONPATH"))}
    env |= {
        "COMPILESCOPE_RUN": job.run if job else uuid.uuid4().hex,
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
    }
    if cache:
        env["TORCHINDUCTOR_CACHE_DIR"] = cache
    env |= environment or {}
    folder = Path(job.workload.script).parent if job and job.workload else Path.cwd()
    process = subprocess.Popen(
        [PYTHON, "-u", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=env,
        start_new_session=True,
    )
    assert process.stdin is not None
    if job:
        process.stdin.write(job.encode().encode() + b"\n")
        process.stdin.flush()
    return process


def collect(process: subprocess.Popen[bytes], timeout: float = 240) -> Told:
    """Everything until the worker's end. Afterwards nothing of it is left."""
    stdin, process.stdin = process.stdin, None
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()
    told = Told(log=err.decode("utf-8", "replace"), status=process.returncode)
    for line in out.decode("utf-8", "replace").splitlines():
        event = decode(line)
        if event is None:
            told.odd_lines.append(line)
        else:
            told.events.append(event)
    return told


def run_job(
    script: Path | str,
    config: Config | None = None,
    *,
    task: str = "run",
    budget: float = 1.0,
    cache: str | None = None,
    timeout: float = 240,
    environment: dict[str, str] | None = None,
    rival: Config | None = None,
    **workload: object,
) -> Told:
    """One process of a run, on the CPU unless said otherwise."""
    job = Job(
        run=uuid.uuid4().hex,
        task=task,  # type: ignore[arg-type]
        workload=Workload(script=str(script), **{"device": "cpu", **workload}),  # type: ignore[arg-type]
        config=config or Config(),
        rival=rival,
        measurement=Measurement(budget_s=budget),
    )
    with tempfile.TemporaryDirectory(prefix="compilescope-", ignore_cleanup_errors=True) as fresh:
        return collect(start(job, cache=cache or fresh, environment=environment), timeout)


class Worker:
    """What tests use: `run` for a whole process, `start` and `collect` for one that is watched."""

    run = staticmethod(run_job)
    start = staticmethod(start)
    collect = staticmethod(collect)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def script(self, source: str, name: str = "script.py") -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return path


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


MLP = '''"""Two layers."""
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Linear(width, 64)
        self.two = nn.Linear(64, width)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))

def get_inputs():
    return [torch.randn(8, 32)]

def get_init_inputs():
    return [32]
'''


@pytest.fixture(scope="session")
def compiled_run(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A cold process that compiled a small model with Inductor."""
    script = tmp_path_factory.mktemp("compiled") / "mlp.py"
    script.write_text(MLP)
    return run_job(script, budget=2.0)


@pytest.fixture
def mlp() -> str:
    return MLP
