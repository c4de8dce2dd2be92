"""Whose fault a failed first call is: found by trying eager, and the modes that a user's own program would use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.domain.config import Config
from compilescope.domain.events import Failure, FirstCall, GraphBreak

if TYPE_CHECKING:
    from conftest import Told, Worker

    from compilescope.domain.events import RunError

EAGER = Config(backend="eager")

HEAD = "import torch\nfrom torch import nn\n"
NUMPY = (
    HEAD + "class Model(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(8, 8)\n"
    "    def forward(self, x):\n        y = self.lin(x).numpy()\n        print('between two graphs')\n"
    "        return self.lin(torch.from_numpy(y))\n"
    "def get_inputs():\n    return [torch.randn(4, 8)]\n"
)
FORCES = (
    HEAD + "class Model(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(3, 1)\n"
    "    def forward(self, x):\n{body}"
    "def get_inputs():\n    return [torch.randn(4, 3)]\n"
)
BODY = (
    "        x = x.detach().requires_grad_(True)\n        energy = self.lin(x).square().sum()\n"
    "        return energy, torch.autograd.grad(energy, x)[0]\n"
)
GRADIENTS_ON = "        with torch.enable_grad():\n" + "".join(
    f"    {line}\n"
    for line in BODY.replace("self.lin(x)", "torch.nn.functional.linear(x, self.lin.weight)").splitlines()
)


def failure(told: Told) -> RunError:
    error = told.one(Failure).error
    assert error is not None
    return error


def test_that_a_bug_of_torch_under_inference_mode_is_told_with_the_mode_that_works(worker: Worker) -> None:
    script = worker.script(NUMPY)

    error = failure(worker.run(script, EAGER, budget=0.2))
    told = worker.run(script, EAGER, budget=0.2, grad_mode="no_grad")

    assert error.stage == "compile"
    assert "no fault of the script" in error.hint
    assert "--grad-mode no_grad" in error.hint
    assert told.status == 0, told.log[-2000:]


def test_that_a_model_which_needs_gradients_is_not_told_to_be_corrected(worker: Worker) -> None:
    script = worker.script(FORCES.format(body=BODY))

    error = failure(worker.run(script, EAGER, budget=0.2))
    told = worker.run(script, EAGER, budget=0.2, grad_mode="enable_grad")

    assert error.stage == "eager"
    assert "Correct it first" not in error.hint
    assert "--grad-mode enable_grad" in error.hint
    assert told.status == 0, told.log[-2000:]
    assert {call.side for call in told.all(FirstCall)} == {"eager", "compiled"}


def test_that_a_model_which_turns_gradients_on_itself_is_told_that_no_grad_works(worker: Worker) -> None:
    script = worker.script(FORCES.format(body=GRADIENTS_ON))

    told = worker.run(script, EAGER, budget=0.2)

    if told.status:  # inference tensors, which this torch refuses to differentiate
        assert "--grad-mode no_grad" in failure(told).hint


def test_that_a_script_which_fails_in_eager_is_the_script_s_fault(worker: Worker) -> None:
    source = NUMPY.replace("print('between two graphs')", "raise ValueError('of its own')")

    told = worker.run(worker.script(source), EAGER, budget=0.2)

    assert (failure(told).stage, failure(told).type) == ("eager", "ValueError")
    assert "without torch.compile too" in failure(told).hint


def test_that_a_failure_of_the_compiler_alone_is_the_compiler_s(worker: Worker) -> None:
    source = (
        HEAD + "import torch._dynamo\n"
        "@torch._dynamo.register_backend(name='broken')\n"
        "def broken(graph, inputs):\n    raise RuntimeError('no code')\n"
        "model = nn.Linear(2, 2)\ninputs = torch.ones(1, 2)\n"
    )

    told = worker.run(worker.script(source), Config(backend="broken"), budget=0.2)

    assert failure(told).stage == "compile"
    assert "--grad-mode" not in failure(told).hint
    assert not told.all(GraphBreak)
