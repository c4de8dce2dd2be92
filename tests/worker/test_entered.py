"""Entries into compiled code are counted exactly, in calls that nobody times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"
# for each case compiles a model, calls it twice, and counts a third and a fourth call
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, torch._dynamo
from torch import nn
from compilescope.worker.entered import Entries

told = {}
for name, model, backend, suppress in json.load(sys.stdin):
    torch._dynamo.reset()
    torch._dynamo.config.suppress_errors = suppress
    space = {"torch": torch, "nn": nn}
    exec(model, space)
    entries = Entries()
    entries.install()
    compiled = torch.compile(space["Model"](), backend=backend)
    x = torch.ones(2, 4)
    with torch.no_grad():
        compiled(x), compiled(x)
        with entries.counted() as seen:
            compiled(x)
        with entries.counted() as again:
            compiled(x)
    told[name] = [seen.entered, again.entered]
json.dump(told, sys.stdout)
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
        torch._dynamo.graph_break()
        return x * 2
"""
NOTHING = """
class Model(nn.Module):
    @torch.compiler.disable
    def forward(self, x):
        return x + 1
"""
FAILS = (
    """
from torch._dynamo import register_backend
@register_backend(name="fails")
def fails(graph, inputs):
    raise RuntimeError("no code for this")
"""
    + PLAIN
)


# name: model, backend, whether errors are suppressed, entries a call
CASES = {
    "a plain model": (PLAIN, "eager", False, 1),
    "a plain model by aot_eager": (PLAIN, "aot_eager", False, 1),
    "a graph break": (BREAK, "eager", False, 2),
    # as a backend counts that wraps its graphs: ten rounds, and the last question
    "a loop over a tensor": (LOOP, "eager", False, 11),
    "nothing is compiled": (NOTHING, "eager", False, 0),
    "a failed compilation whose error is suppressed": (FAILS, "fails", True, 0),
}


@pytest.fixture(scope="module")
def told() -> dict[str, list[int | None]]:
    order = json.dumps([[name, model, backend, suppress] for name, (model, backend, suppress, _) in CASES.items()])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(APP)], input=order, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[int | None]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", CASES)
def test_that_entries_into_compiled_code_are_counted_the_same_each_time(
    case: str, told: dict[str, list[int | None]]
) -> None:
    assert told[case] == [CASES[case][3]] * 2
