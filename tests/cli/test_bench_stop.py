"""`compilescope bench` interrupted and killed: nothing of it is left, whatever it was doing."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from compilescope.engine.process import INTERRUPT_S

pytestmark = pytest.mark.slow

# a daemon that left its session, and a model that holds the interpreter and never returns
HANGS = """
import os, signal, subprocess, time
import torch
from torch import nn

subprocess.Popen(["setsid", "sleep", "3600"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    os._exit(0)

class Model(nn.Module):
    def forward(self, x):
        open("reached", "w").close()
        sum(range(10**15))

def get_inputs():
    return [torch.randn(4)]
"""


def await_hang(command_line: Any) -> None:
    deadline = time.monotonic() + 120
    while not (command_line.folder / "reached").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_that_ctrl_c_stops_a_model_that_never_returns(command_line: Any) -> None:
    process = command_line.start("bench", command_line.script(HANGS))
    await_hang(command_line)
    assert len(command_line.processes()) >= 5

    process.send_signal(signal.SIGINT)
    # the model would go on for hours
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Stopping" in err
    assert "stopped" in out
    assert command_line.processes() == []


def test_that_a_second_ctrl_c_does_not_wait(command_line: Any) -> None:
    process = command_line.start("bench", command_line.script(HANGS))
    await_hang(command_line)

    process.send_signal(signal.SIGINT)
    while "Stopping" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.communicate(timeout=60)

    # the first one waits as long for a model that does not hear it
    assert time.monotonic() - began < INTERRUPT_S
    assert process.returncode == 130


def test_that_a_killed_app_takes_everything_with_it(command_line: Any) -> None:
    process = command_line.start("bench", command_line.script(HANGS))
    await_hang(command_line)

    process.kill()
    process.communicate(timeout=60)

    command_line.await_processes(lambda count: count == 0, timeout=60.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_that_torch_being_loaded_is_no_obstacle(command_line: Any, number: signal.Signals) -> None:
    process = command_line.start("bench", command_line.script(HANGS))
    command_line.await_processes(lambda count: count >= 3, timeout=60.0)

    process.send_signal(number)
    process.communicate(timeout=60)

    command_line.await_processes(lambda count: count == 0, timeout=60.0)
