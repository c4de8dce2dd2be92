"""Scripts that cannot be measured get one clear sentence and a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.worker.channel import CHANNEL_CLOSED, Channel
from compilescope.worker.errors import describe

if TYPE_CHECKING:
    from conftest import Worker

EAGER = Config(backend="eager")
HEAD = "import torch\nfrom torch import nn\n"
INPUTS = "def get_inputs():\n    return [torch.ones(2)]\n"
MODEL = HEAD + "class Model(nn.Module):\n    def forward(self, x):\n{body}\n" + INPUTS


def failure(
    worker: Worker, source: str, *, task: str = "inspect", config: Config = EAGER, **workload: object
) -> e.RunError:
    told = worker.run(worker.script(source), config, task=task, budget=0.3, **workload)
    assert told.status == 1, told.log
    error = told.one(e.Failure).error
    assert error is not None
    return error


def test_that_a_script_that_raises_is_told_with_its_line(worker: Worker) -> None:
    error = failure(worker, "x = 1\nraise ValueError('no such table')\n")

    assert (error.stage, error.type, error.message, error.line) == ("load", "ValueError", "no such table", 2)
    assert "Traceback" in error.traceback


def test_that_text_which_no_file_could_hold_is_told_all_the_same(worker: Worker) -> None:
    error = failure(worker, "raise ValueError('größe \\ud800 ☃')\n")

    assert error.message == "größe ? ☃"


def test_that_a_script_that_recurses_without_end_is_not_blamed_on_the_compiler(worker: Worker) -> None:
    error = failure(worker, "def again():\n    again()\nagain()\n")

    assert (error.stage, error.type) == ("load", "RecursionError")
    assert "compiler" not in error.hint


def test_that_wanted_arguments_are_named(worker: Worker) -> None:
    error = failure(
        worker,
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--width', required=True)\nparser.parse_args()\n",
    )

    assert error.type == "SystemExit"
    assert "--width" in error.message
    assert "--arg" in error.hint


def test_that_a_script_that_exits_is_told(worker: Worker) -> None:
    error = failure(worker, "import sys\nsys.exit(3)\n")

    assert "status 3" in error.message
    assert error.line == 2


def test_that_a_model_that_exits_is_not_told_to_guard_its_module_level(worker: Worker) -> None:
    source = "import sys\n" + MODEL.format(body="        sys.exit(3)")

    error = failure(worker, source, task="run")

    assert (error.stage, error.line) == ("eager", 6)
    assert "__main__" not in error.hint and "sys.exit" in error.hint


def test_that_a_model_whose_arguments_nobody_gives_is_told_how(worker: Worker) -> None:
    constructor = "    def __init__(self, width):\n        super().__init__()\n"
    source = HEAD + "class Model(nn.Module):\n" + constructor + INPUTS

    error = failure(worker, source)

    assert "'width'" in error.message
    assert "get_init_inputs()" in error.hint


def test_that_a_script_that_asks_at_the_keyboard_is_told_that_nobody_answers(worker: Worker, mlp: str) -> None:
    error = failure(worker, "name = input('name? ')\n" + mlp)

    assert (error.stage, error.type, error.line) == ("load", "EOFError", 1)
    assert "keyboard" in error.hint


def test_that_a_missing_library_is_named(worker: Worker) -> None:
    error = failure(worker, "import surely_not_installed.part\n")

    assert error.type == "ModuleNotFoundError"
    assert "surely_not_installed" in error.hint


def test_that_a_script_without_a_model_is_told(worker: Worker) -> None:
    error = failure(worker, "x = 1\n")

    assert error.type == "NothingToRun"
    assert "get_inputs()" in error.message


def test_that_an_unknown_entry_is_told_with_those_there_are(worker: Worker, mlp: str) -> None:
    error = failure(worker, mlp, entry="net")

    assert "no entry net" in error.message
    assert "Model" in error.hint


def test_that_a_syntax_error_is_told_with_its_line(worker: Worker) -> None:
    error = failure(worker, "x = 1\ndef f(:\n")

    assert (error.type, error.line) == ("SyntaxError", 2)


def test_that_a_device_whose_calls_cannot_be_waited_for_is_refused(worker: Worker, mlp: str) -> None:
    error = failure(worker, mlp, device="mps")

    assert error.message == "Calls on mps cannot be timed here."
    assert "Choose cpu" in error.hint


def test_that_a_device_that_is_not_there_is_told(worker: Worker, mlp: str) -> None:
    error = failure(worker, mlp, device="cuda:63")

    assert "cuda:63" in error.message


def test_that_a_model_that_fails_in_eager_too_is_the_script_s_fault(worker: Worker) -> None:
    source = MODEL.format(body="        y = x + 1\n        return y @ torch.ones(3)")
    told = worker.run(worker.script(source), EAGER)

    error = told.one(e.Failure).error
    assert error is not None
    assert (error.stage, error.type, error.line) == ("eager", "RuntimeError", 6)


def test_that_inputs_of_a_wrong_kind_are_told(worker: Worker) -> None:
    error = failure(worker, MODEL.format(body="        return x") + "def get_inputs():\n    return 3\n")

    assert "int" in error.message


def test_that_a_broken_graph_fails_under_fullgraph_at_its_line(worker: Worker) -> None:
    source = MODEL.format(body="        if x.sum() > 0:\n            return x\n        return -x")

    error = failure(worker, source, task="run", config=Config(backend="eager", fullgraph=True))

    assert (error.stage, error.type, error.line) == ("compile", "Unsupported", 5)
    assert "fullgraph" in error.hint


def test_that_a_contradicted_mark_is_told(worker: Worker) -> None:
    source = HEAD + (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.bias = nn.Parameter(torch.ones(4, 1))\n    def forward(self, x):\n        return x + self.bias\n"
        "def make_inputs():\n    x = torch.randn(4, 6)\n    torch._dynamo.mark_dynamic(x, 0)\n    return (x,)\n"
        "def build_model():\n    return Net()\n"
    )

    error = failure(worker, source, task="run")

    assert error.stage == "compile"
    assert "mark" in error.hint


@pytest.mark.slow
def test_that_a_backend_that_is_not_there_is_told(worker: Worker, mlp: str) -> None:
    error = failure(worker, mlp, task="run", config=Config(backend="nosuch"))

    assert (error.stage, error.type) == ("compile", "InvalidBackend")
    assert "doctor" in error.hint


def test_that_an_option_that_is_not_there_is_told_without_all_that_are(worker: Worker, mlp: str) -> None:
    error = failure(worker, mlp, task="run", config=Config(options={"nosuch": 1}))

    assert error.message == "Unexpected optimization option nosuch."
    assert "list_options" in error.hint


def test_that_a_missing_compiler_is_told(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), environment={"PATH": "/nonexistent", "CXX": "/nonexistent/c++"})

    error = told.one(e.Failure).error
    assert error is not None
    assert "C++ compiler" in error.hint
    assert any("compiler" in sentence for sentence in told.all(e.Environment)[0].missing)


def test_that_an_interrupt_that_the_model_raises_itself_is_told_as_the_script_s(worker: Worker) -> None:
    error = failure(worker, MODEL.format(body="        raise KeyboardInterrupt"), task="run")

    assert (error.stage, error.type, error.line) == ("eager", "KeyboardInterrupt", 5)
    assert error.message == "The script raised KeyboardInterrupt."


def test_that_a_script_may_close_the_descriptors_that_it_finds(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script("import os\nos.closerange(3, 256)\n" + mlp), EAGER, task="inspect")

    assert told.status == 0, told.log
    assert told.one(e.WorkloadReady).entry == "Model"


def test_that_a_script_that_closes_the_channel_leaves_with_a_status_that_says_so(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script("import os\nos.closerange(3, 4096)\n" + mlp), EAGER, task="inspect")

    assert told.status == CHANNEL_CLOSED


def test_that_layers_of_the_script_s_that_do_not_fit_are_not_called_a_failure_of_compilescope(worker: Worker) -> None:
    error = failure(worker, HEAD + "model = nn.Linear(3, 3)\nexample_inputs = torch.ones(2, 2)\n", task="run")

    assert (error.stage, error.type) == ("eager", "RuntimeError")


def test_that_an_error_of_this_program_is_not_blamed_on_the_script() -> None:
    try:
        Channel(-1).emit(None)  # type: ignore[arg-type]
    except AttributeError as error:
        # without the frame of this test, which would be the user's
        own = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)

    told = describe(own, "eager", None)

    assert told.message.startswith("CompileScope failed (AttributeError:")
    assert "report it" in told.hint and "Correct it first" not in told.hint


CAUGHT = (
    HEAD
    + """
def factor(matrix):
    for step in range(3):
        try:
            return torch.linalg.cholesky(matrix + step * torch.eye(2))
        except RuntimeError:
            continue
    raise RuntimeError("not positive definite")

class Model(nn.Module):
    def forward(self, x):
        return factor(x) * 2

def get_inputs():
    return [torch.tensor([[1.0, 2.0], [2.0, 1.0]])]
"""
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_that_an_error_of_compiled_code_that_runs_is_no_failure_of_the_compiler(worker: Worker, backend: str) -> None:
    error = failure(worker, CAUGHT, task="run", config=Config(backend=backend))

    assert (error.stage, error.ran, error.type) == ("compile", True, "_LinAlgError")
    assert error.message.startswith("The compiled code raised this as it ran: linalg.cholesky")
    assert "torch.linalg.cholesky(matrix" in CAUGHT.splitlines()[(error.line or 0) - 1]
    assert "the script's own try (line 6 of " in error.hint


RAGGED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, values, offsets):
        nt = torch.nested.nested_tensor_from_jagged(values, offsets)
        return nn.functional.layer_norm(nt, [values.shape[-1]], self.weight).values()

def get_inputs():
    return [torch.randn(20, 8), torch.tensor([0, 6, 11, 14, 20])]
"""
)


def test_that_an_error_within_the_compiler_is_told_with_the_scripts_line(worker: Worker) -> None:
    error = failure(worker, RAGGED, task="run")

    assert (error.stage, error.type, error.ran) == ("compile", "IndexError", False)
    assert "layer_norm" in RAGGED.splitlines()[(error.line or 0) - 1]
    assert error.hint.startswith("torch itself fails here as it compiles, not the script")


@pytest.mark.parametrize(
    ("message", "mode"),
    [
        ("element 0 of tensors does not require grad and does not have a grad_fn", "enable_grad"),
        ("Inference tensors cannot be saved for backward. Please do not use them", "no_grad"),
        ("Guard failed on the same frame it was created. This is a bug", "no_grad"),
        ("Guard check failed: 0/0: tensor 'x' dispatch key set mismatch. expected", "no_grad"),
    ],
)
@pytest.mark.parametrize("stage", ["eager", "compile"])
def test_that_gradients_are_named_where_they_are_the_matter_and_the_script_is_not_blamed(
    message: str, mode: str, stage: str
) -> None:
    told = describe(RuntimeError(message), stage, None)

    assert "--grad-mode" in told.hint and mode in told.hint
    assert "Correct it first" not in told.hint
