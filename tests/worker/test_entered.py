"""Entries into compiled code are counted exactly, in calls that nobody times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"
# compiles a model, calls it twice, and counts a third call
PROGRAM = """
import sys
sys.path.insert(0, {app!r})
import torch, torch._dynamo
from torch import nn
from compilescope.worker.entered import Entries

{model}

entries = Entries()
entries.install()
torch._dynamo.config.suppress_errors = {suppress}
model = torch.compile(Model(), backend={backend!r})
x = torch.ones(2, 4)
with torch.no_grad():
    model(x), model(x)
    with entries.counted() as seen:
        model(x)
    with entries.counted() as again:
        model(x)
print("ENTERED", seen.entered, again.entered)
"""
PLAIN = "class Model(nn.Linear):\n    def __init__(self):\n        super().__init__(4, 4)"
LOOP = """
class Model(nn.Module):
    def forward(self, x):
        left = torch.tensor(10.0)
        while left > 0:
            x = x + left
            left = left - 1
        return x
"""
BREAK = """
class Model(nn.Module):
    def forward(self, x):
        x = x + 1
        print("between")
        return x * 2
"""
NOTHING = """
class Model(nn.Module):
    @torch.compiler.disable
    def forward(self, x):
        return x + 1
"""
FAILS = """
from torch._dynamo import register_backend
@register_backend(name="fails")
def fails(graph, inputs):
    raise RuntimeError("no code for this")
""" + PLAIN


def entered(model: str, backend: str = "eager", *, suppress: bool = False) -> str:
    program = PROGRAM.format(app=str(APP), model=model, backend=backend, suppress=suppress)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return next(line for line in done.stdout.splitlines() if line.startswith("ENTERED"))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_that_a_plain_model_enters_its_graph_once_a_call(backend: str) -> None:
    assert entered(PLAIN, backend) == "ENTERED 1 1"


def test_that_a_graph_break_makes_two_entries() -> None:
    assert entered(BREAK) == "ENTERED 2 2"


def test_that_a_loop_over_a_tensor_enters_in_each_round() -> None:
    # as a backend counts that wraps its graphs: ten rounds, and the last question
    assert entered(LOOP) == "ENTERED 11 11"


def test_that_what_is_never_compiled_is_entered_never() -> None:
    assert entered(NOTHING) == "ENTERED 0 0"


def test_that_a_failed_compilation_whose_error_is_suppressed_is_entered_never() -> None:
    assert entered(FAILS, "fails", suppress=True) == "ENTERED 0 0"
