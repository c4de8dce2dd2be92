"""The end of a worker: by the app's end, by a signal, and with all that it started."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compilescope.domain.workload import Job, Workload

if TYPE_CHECKING:
    import subprocess

    from conftest import Worker

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

IMPORTS = "import os, subprocess, sys, time\n"
# it leaves the group, which an interrupt goes to
CHILD = 'subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(300)"])\n'
# where a worker keeps its channel for events
HIGH_FD = 600
READY = 'open("ready", "w").close()\n'


def started(worker: Worker, source: str, tmp_path: Path) -> tuple[subprocess.Popen[bytes], str]:
    run = uuid.uuid4().hex
    script = worker.script(IMPORTS + source)
    process = worker.start(Job(run=run, task="inspect", workload=Workload(script=str(script), device="cpu")))
    wait_until((tmp_path / "ready").exists, 60)
    return process, run


def marked(run: str) -> list[int]:
    wanted = f"COMPILESCOPE_RUN={run}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(condition: object, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.02)
    raise AssertionError("not within the time")


def test_that_the_end_of_stdin_ends_everything_even_where_the_lock_is_held(worker: Worker, tmp_path: Path) -> None:
    process, run = started(worker, CHILD + READY + "sum(range(10 ** 12))\n", tmp_path)
    assert len(marked(run)) >= 2

    process.stdin.close()  # type: ignore[union-attr]

    wait_until(lambda: not marked(run), 60)
    assert process.wait(60) == -signal.SIGKILL
    for pipe in (process.stdout, process.stderr):
        pipe.close()  # type: ignore[union-attr]


def test_that_an_interrupt_ends_the_worker_at_once(worker: Worker, tmp_path: Path) -> None:
    process, _ = started(worker, READY + "time.sleep(300)\n", tmp_path)

    os.killpg(process.pid, signal.SIGINT)

    # long before the script would end by itself
    assert process.wait(120) == 130
    worker.collect(process)


def test_that_the_guardian_is_no_child_of_the_script_s_process(worker: Worker, mlp: str) -> None:
    source = (
        mlp + "import os\ntry:\n    os.waitpid(-1, os.WNOHANG)\n    print('a child')\n"
        "except ChildProcessError:\n    print('no child')\n"
    )

    told = worker.run(worker.script(source), task="inspect")

    assert "no child" in told.log


def test_that_a_stop_while_the_worker_waits_for_its_order_shows_no_traceback(worker: Worker) -> None:
    process = worker.start(None)
    # it has taken its channels, so its own program goes on
    wait_until(Path(f"/proc/{process.pid}/fd/{HIGH_FD}").is_fifo, 60)

    os.killpg(process.pid, signal.SIGINT)

    told = worker.collect(process)
    assert (told.status, told.log) == (130, "")


def test_that_a_stop_while_the_worker_imports_torch_shows_no_traceback_of_its_own(
    worker: Worker, mlp: str, tmp_path: Path
) -> None:
    # found before the real one
    worker.script("import time\n" + READY + "time.sleep(300)\n", name="first/torch.py")
    job = Job(run=uuid.uuid4().hex, task="inspect", workload=Workload(script=str(worker.script(mlp)), device="cpu"))
    process = worker.start(job, environment={"PYTHONPATH": str(tmp_path / "first")})
    wait_until((tmp_path / "ready").exists, 60)

    os.killpg(process.pid, signal.SIGINT)

    told = worker.collect(process)
    assert told.status in (130, -signal.SIGINT)
    assert "compilescope" not in told.log
