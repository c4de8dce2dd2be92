"""Verdicts on results, from real processes: rounding is no error, and an error is found at the stage that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compilescope.domain.agreement import agreement
from compilescope.domain.config import Config
from compilescope.domain.events import Numerics, WorkloadReady
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload

if TYPE_CHECKING:
    from conftest import Told, Worker

RESIDUAL = """
import torch
import torch.nn.functional as F
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x):
        return x + self.two(F.relu(self.norm(self.one(x))))

def build_model():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), Block(8), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    head = nn.Linear(8, 5)
    head.weight.data *= 5
    return nn.Sequential(*layers, head)

def get_inputs():
    return [torch.randn(8, 3, 12, 12)]
"""

# what a backend of the script's own does to the first output
BACKEND = """
import torch._dynamo

@torch._dynamo.register_backend(name="{name}")
def backend(graph, inputs):
    def run(*args):
        first, *rest = graph(*args)
        {change}
        return (first, *rest)
    return run
"""

ROUNDING = "first = first * (1 + 8e-5 * torch.sin(1e3 * first.detach()))"
ONE_ELEMENT = "first = first + 1e-2 * (torch.arange(first.numel()) == 3).reshape(first.shape)"


def verdicts(told: Told) -> dict[tuple[str, str | None], Numerics]:
    assert told.status == 0, told.log[-3000:]
    return {(row.subject, row.backend): row for row in told.all(Numerics)}


def stage_at_fault(told: Told, backend: str) -> str | None:
    run = Run("run", config=Config(backend=backend), workload=Workload(script="script.py"))
    run.apply_all(told.events)
    return agreement(run).backend


def test_that_rounding_of_a_training_step_with_batch_norm_is_a_match_by_the_reference(worker: Worker) -> None:
    script = worker.script(RESIDUAL + BACKEND.format(name="coarse", change=ROUNDING.replace("8e-5", "2e-3")))

    told = worker.run(script, Config(backend="coarse"), budget=0.2, phase="training", precision="bf16")

    found = verdicts(told)
    assert {key for key, row in found.items() if row.verdict != "match"} == set()
    assert "Against double precision" in found["loss", "coarse"].detail
    assert "Against double precision" in found["gradients", "coarse"].detail
    assert {backend for _, backend in found} == {"coarse"}


@pytest.mark.parametrize("phase", ["inference", "training"])
def test_that_one_wrong_element_is_found_at_the_backend_that_makes_it(worker: Worker, phase: str) -> None:
    script = worker.script(RESIDUAL + BACKEND.format(name="wrong", change=ONE_ELEMENT))

    told = worker.run(script, Config(backend="wrong"), budget=0.2, phase=phase)

    found = verdicts(told)
    assert found["outputs", "wrong"].verdict == "differ"
    assert found["outputs", "wrong"].max_abs_error == pytest.approx(1e-2, rel=1e-3)
    assert found["outputs", "eager"].verdict == found["outputs", "aot_eager"].verdict == "match"
    assert stage_at_fault(told, "wrong") == "wrong"


def test_that_without_a_reference_a_difference_within_the_precision_is_not_checked(worker: Worker) -> None:
    fails = RESIDUAL.replace("return x + self", "assert x.dtype is torch.float32, 'fp32 only'\n        return x + self")
    script = worker.script(fails + BACKEND.format(name="coarse", change=ROUNDING))

    row = verdicts(worker.run(script, Config(backend="coarse"), budget=0.2))["outputs", "coarse"]

    assert row.verdict == "not_checked"
    assert "fp32 may explain" in row.detail
    assert "AssertionError: fp32 only" in row.detail


def test_that_without_a_reference_a_larger_difference_is_one(worker: Worker) -> None:
    fails = RESIDUAL.replace("return x + self", "assert x.dtype is torch.float32, 'fp32 only'\n        return x + self")
    script = worker.script(fails + BACKEND.format(name="wrong", change=ONE_ELEMENT))

    row = verdicts(worker.run(script, Config(backend="wrong"), budget=0.2))["outputs", "wrong"]

    assert row.verdict == "differ"
    assert "more than fp32 explains" in row.detail


def test_that_eager_s_own_spread_is_told_as_such(worker: Worker) -> None:
    # noise in every element, so that two draws always differ by about as much
    noise = "torch.frombuffer(bytearray(os.urandom(x.numel())), dtype=torch.uint8).view(x.shape) / 255"
    source = RESIDUAL.replace("return x + self", f"import os\n        return x + {noise} + self")
    script = worker.script(source)

    row = verdicts(worker.run(script, Config(backend="eager"), budget=0.2))["outputs", "eager"]

    assert row.verdict == "nondeterministic"
    assert "Eager differs from itself" in row.detail


PLAIN = """
import itertools
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(6, 6)

    def forward(self, x):
        return self.one(x)

def get_inputs():
    return [torch.randn(8, 6)]
"""


def test_that_rounding_in_an_early_call_hides_no_error_of_a_later_one(worker: Worker) -> None:
    # the fourth inputs, those of the third comparison, have another size, and only there it is wrong
    sizes = "made = itertools.count()\ndef get_inputs():\n    return [torch.randn(4 if next(made) == 3 else 8, 6)]\n"
    change = "first = first + (3.0 if first.shape[0] == 4 else 3e-5)"
    script = worker.script(PLAIN + sizes + BACKEND.format(name="wrong", change=change))

    row = verdicts(worker.run(script, Config(backend="wrong"), budget=0.2))["outputs", "wrong"]

    assert (row.verdict, row.max_abs_error) == ("differ", pytest.approx(3.0, rel=1e-3))


def test_that_every_size_of_a_sweep_is_compared(worker: Worker) -> None:
    change = "first = first + (3.0 if first.shape[0] == 4 else 0.0)"
    script = worker.script(PLAIN + BACKEND.format(name="wrong", change=change))

    told = worker.run(script, Config(backend="wrong"), budget=0.4, inputs={"x": [[8, 6], [4, 6]]})

    assert verdicts(told)["outputs", "wrong"].verdict == "differ"


def test_that_training_with_one_model_for_both_sides_is_compared_from_one_state(worker: Worker) -> None:
    lock = PLAIN.replace("self.one = ", "import threading\n        self.lock = threading.Lock()\n        self.one = ")
    # what the whole process holds, a second load finds too
    once = "import sys\nassert not sys.__dict__.setdefault('made', [])\nsys.made.append(1)\n"
    script = worker.script(lock + once + "\nmodel = Model()\n")

    told = worker.run(script, Config(backend="aot_eager"), budget=0.2, phase="training", entry="model")

    assert told.one(WorkloadReady).copies == "shared"
    assert {row.verdict for row in verdicts(told).values()} == {"match"}


def test_that_buffers_are_compared_after_each_call(worker: Worker) -> None:
    source = PLAIN.replace("self.one = ", 'self.register_buffer("total", torch.zeros(()))\n        self.one = ')
    source = source.replace("return self.one(x)", "self.total.add_(x.mean())\n        return self.one(x)")
    change = "[arg.add_(1) for arg in args if arg.dim() == 0 and arg.is_floating_point()]"
    script = worker.script(source + BACKEND.format(name="wrong", change=change))

    found = verdicts(worker.run(script, Config(backend="wrong"), budget=0.2))

    assert found["outputs", "wrong"].verdict == "match"
    assert found["buffers", "wrong"].verdict == "differ"
    assert "buffers['total']" in found["buffers", "wrong"].detail


def test_that_gradients_of_parameters_that_no_optimizer_takes_do_not_add_up(worker: Worker) -> None:
    source = PLAIN + "\ndef get_optimizer(params):\n    return torch.optim.SGD([list(params)[0]], lr=0.1)\n"
    script = worker.script(source)

    found = verdicts(worker.run(script, Config(backend="aot_eager"), budget=0.2, phase="training"))

    assert found["gradients", "aot_eager"].verdict == "match"


def test_that_a_model_s_own_autocast_sets_what_may_differ(worker: Worker) -> None:
    # double precision is refused, so that only the type that is computed in tells what rounding explains
    cast = (
        "assert x.dtype is torch.float32, 'fp32 only'\n"
        "        with torch.autocast(x.device.type, dtype=torch.bfloat16):\n"
        "            y = self.one(x)\n"
        "        return y.float()"
    )
    change = "first = first * (1 + 5e-3 * torch.sin(1e3 * first.detach()))"
    script = worker.script(PLAIN.replace("return self.one(x)", cast) + BACKEND.format(name="coarse", change=change))

    row = verdicts(worker.run(script, Config(backend="coarse"), budget=0.2))["outputs", "coarse"]

    assert row.verdict == "match"
    assert "Rounding takes eager's own results as far" in row.detail


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_that_an_index_which_rounding_never_sends_elsewhere_is_a_fault(worker: Worker, dtype: str) -> None:
    source = PLAIN.replace("return self.one(x)", "return self.one(x).argmax(-1)")
    source = source.replace("nn.Linear(6, 6)", f"nn.Linear(6, 6, dtype=torch.{dtype})")
    # the largest value stands apart from the others, so that no tie explains it in fp32
    source = source.replace("torch.randn(8, 6)", f"torch.randn(200, 6).to(torch.{dtype})")
    change = "first = torch.where(torch.arange(first.numel()) == 3, (first + 1) % 6, first)"
    script = worker.script(source + BACKEND.format(name="wrong", change=change))

    row = verdicts(worker.run(script, Config(backend="wrong"), budget=0.2))["outputs", "wrong"]

    assert row.verdict == "differ"
    assert "1 of 200 whole numbers of outputs differ" in row.detail


@pytest.mark.parametrize("lock", ["", "import threading; self.lock = threading.Lock()"], ids=["two models", "one"])
def test_that_state_in_a_plain_attribute_is_no_fault_of_the_compiler(worker: Worker, lock: str) -> None:
    source = PLAIN.replace("self.one = ", f"{lock}\n        self.calls = torch.zeros(())\n        self.one = ")
    source = source.replace("return self.one(x)", "self.calls += 1\n        return self.one(x) * self.calls")
    # rounding, so that both sides are called once more, and by then the timing has called them many times
    change = "first = first + 2e-5"
    script = worker.script(source + BACKEND.format(name="coarse", change=change) + "\nmodel = Model()\n")

    told = worker.run(script, Config(backend="coarse"), budget=0.2, entry="model")

    found = verdicts(told)
    assert {key: row.verdict for key, row in found.items()} == dict.fromkeys(found, "match")
    assert "Against double precision" in found["outputs", "coarse"].detail
    assert ("state", "coarse") in found


def test_that_gradients_which_overflow_in_the_compiled_model_alone_are_its_fault(worker: Worker) -> None:
    backend = """
from torch._dynamo import register_backend
from torch._dynamo.backends.common import aot_autograd

def forward(graph, inputs):
    return graph

def backward(graph, inputs):
    return lambda *args: [None if g is None else g + float("inf") for g in graph(*args)]

register_backend(aot_autograd(fw_compiler=forward, bw_compiler=backward), name="wrong")
"""
    script = worker.script(PLAIN + backend)

    told = worker.run(script, Config(backend="wrong"), budget=0.2, phase="training", precision="fp16")

    assert verdicts(told)["gradients", "wrong"].verdict == "differ"
