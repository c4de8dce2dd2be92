"""Whole worker processes: what they tell, and in which order."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.workload import Job, Workload

if TYPE_CHECKING:
    from conftest import Told, Worker

STAGES = ["start", "load", "compile", "eager", "check", "warm_up", "measure", "profile", "done"]
EAGER = Config(backend="eager")


@pytest.mark.slow
def test_that_a_run_tells_its_stages_in_order(compiled_run: Told) -> None:
    assert compiled_run.status == 0, compiled_run.log
    assert isinstance(compiled_run.events[0], e.Hello)
    assert [stage.name for stage in compiled_run.all(e.Stage) if stage.state == "end"] == STAGES
    assert not compiled_run.odd_lines


@pytest.mark.slow
def test_that_a_run_describes_the_workload(compiled_run: Told) -> None:
    workload = compiled_run.one(e.WorkloadReady)

    assert workload.entry == "Model"
    assert workload.copies == "loaded_twice"
    assert [(item.name, item.shape, item.dtype) for item in workload.inputs] == [("x", (8, 32), "float32")]


def test_that_a_model_of_which_only_one_can_be_is_shared_and_said_to_be(worker: Worker) -> None:
    source = (
        # what the whole process holds, a second load finds too
        "import sys\nimport threading\nimport torch\nfrom torch import nn\n"
        "made = sys.__dict__.setdefault('made', [])\n"
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        assert not made, 'only one'\n        made.append(self)\n        self.lock = threading.Lock()\n"
        "    def forward(self, x):\n        return x + 1\n"
        "def get_inputs():\n    return [torch.ones(2)]\n"
    )

    told = worker.run(worker.script(source), EAGER, budget=0.3)

    assert told.status == 0, told.log
    assert told.one(e.WorkloadReady).copies == "shared"
    assert "shared_model" in [warning.code for warning in told.all(e.Warning)]


def test_that_a_format_of_gpus_is_not_passed_off_as_one_of_the_cpu(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), EAGER, task="inspect", precision="tf32", device="cpu")

    assert [warning.code for warning in told.all(e.Warning)] == ["tf32_on_cpu"]


@pytest.mark.slow
def test_that_a_script_that_stops_the_clock_does_not_stop_ours(worker: Worker, mlp: str) -> None:
    stopped = "import time\ntime.perf_counter = time.monotonic = time.time = lambda: 0.0\n"

    told = worker.run(worker.script(stopped + mlp), EAGER, budget=0.3)

    assert told.status == 0, told.log
    assert all(first.duration_s > 0 for first in told.all(e.FirstCall))
    assert all(seconds > 0 for row in told.all(e.Samples) for seconds in row.seconds)


@pytest.mark.slow
def test_that_both_first_calls_are_told_and_the_compiled_one_with_what_listening_took(compiled_run: Told) -> None:
    # the cold process is the user's program, which calls no eager model first
    compiled, eager = compiled_run.all(e.FirstCall)

    assert (compiled.side, eager.side) == ("compiled", "eager")
    assert 0 < eager.duration_s < compiled.duration_s
    assert compiled.capture_s is not None
    assert 0 < compiled.capture_s < compiled.duration_s


@pytest.mark.slow
def test_that_both_sides_are_timed_in_the_same_blocks(compiled_run: Told) -> None:
    timed = [row for row in compiled_run.all(e.Samples) if row.measure == "back_to_back"]
    blocks = {
        side: [row.block + index for row in timed if row.side == side for index in range(len(row.seconds))]
        for side in ("eager", "compiled")
    }

    assert blocks["eager"] == blocks["compiled"] == list(range(len(blocks["eager"])))
    assert all(seconds > 0 for row in timed for seconds in row.seconds)
    assert compiled_run.one(e.Measured).stop in ("interval", "budget")


@pytest.mark.slow
def test_that_latency_is_measured_apart(compiled_run: Told) -> None:
    rows = [row for row in compiled_run.all(e.Samples) if row.measure == "latency"]

    assert {row.side for row in rows} == {"eager", "compiled"}


@pytest.mark.slow
def test_that_both_sides_tell_where_their_time_goes_after_the_timing(compiled_run: Told) -> None:
    eager, compiled = compiled_run.all(e.Profile)

    assert (eager.side, compiled.side) == ("eager", "compiled")
    assert {row.kind for row in eager.kernels} == {"operator"}
    # an Inductor kernel of this torch is seen by name
    assert any(row.kind == "cpp" and row.name.startswith("cpp_") for row in compiled.kernels)
    assert eager.flops == compiled.flops and sum(eager.flops.values()) > 0
    assert min(eager.at, compiled.at) > max(row.at for row in compiled_run.all(e.Samples))


@pytest.mark.slow
def test_that_equal_results_are_a_match(compiled_run: Told) -> None:
    assert {(row.subject, row.verdict) for row in compiled_run.all(e.Numerics)} == {
        ("outputs", "match"),
        ("inputs", "match"),
    }


@pytest.mark.slow
def test_that_the_environment_names_what_this_torch_offers(compiled_run: Told) -> None:
    environment = compiled_run.all(e.Environment)[-1]

    assert "reduce-overhead" in environment.modes
    assert {"inductor", "eager", "aot_eager"} <= set(environment.backends)
    assert environment.devices[-1]["id"] == "cpu"


def test_that_the_doctor_needs_no_script(worker: Worker) -> None:
    told = worker.collect(worker.start(Job(run=uuid.uuid4().hex, task="doctor")))

    assert told.status == 0
    assert told.one(e.Environment).torch
    assert not told.all(e.WorkloadReady)


def test_that_inspecting_compiles_and_calls_nothing(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), task="inspect")

    assert told.status == 0
    assert told.one(e.WorkloadReady).parameters == 32 * 64 + 64 + 64 * 32 + 32
    assert not told.all(e.FirstCall)


def test_that_a_training_step_compares_loss_gradients_and_update(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), EAGER, phase="training", budget=0.4)

    assert told.status == 0, told.log
    assert {(row.subject, row.verdict) for row in told.all(e.Numerics)} == {
        (subject, "match") for subject in ("outputs", "inputs", "loss", "gradients", "update")
    }
    assert {call.direction for call in told.all(e.FirstCall)} == {"step"}


def test_that_a_whole_step_is_compiled_with_its_loss_and_its_optimizer(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), Config(backend="eager", scope="step"), phase="training", budget=0.4)

    run = Run("step", config=Config(), workload=Workload(script="m.py")).apply_all(told.events)
    lines = {Path(row.event.file or "").name for row in run.story.step_breaks.values()} if run.story else set()
    assert told.status == 0, told.log[-2000:]
    # the break at loss.backward() ends a graph with the loss in it, and the optimizer is a graph of its own
    assert "training.py" in lines
    # which is no break of the script's
    assert run.story is not None and not run.story.graph_breaks
    assert {row.function for row in run.processes[0].compiles.values() if row.graphs} >= {"step"}
    assert {row.verdict for row in told.all(e.Numerics)} == {"match"}


def test_that_what_the_script_prints_is_log_and_its_stdin_is_empty(worker: Worker, mlp: str) -> None:
    noise = (
        "import os, sys\nprint('by print')\nos.write(1, b'by write\\n')\nos.system('echo by system')\n"
        "print('stdin', repr(sys.stdin.read()))\n"
    )

    told = worker.run(worker.script(mlp + noise), task="inspect")

    assert told.status == 0
    assert not told.odd_lines
    for line in ("by print", "by write", "by system", "stdin ''"):
        assert line in told.log


LOADER = """
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.full((32,), float(index))

def get_inputs():
    loader = DataLoader(Rows(), batch_size=8, num_workers=1, multiprocessing_context="{context}")
    return [next(iter(loader))]
"""


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_that_inputs_may_come_from_a_data_loader_with_workers(worker: Worker, mlp: str, context: str) -> None:
    told = worker.run(worker.script(mlp + LOADER.format(context=context)), task="inspect")

    assert told.status == 0, told.log
    assert told.one(e.WorkloadReady).inputs[0].shape == (8, 32)


def test_that_a_script_with_a_library_s_name_is_loaded(worker: Worker, mlp: str) -> None:
    # which its spawned children find too
    told = worker.run(worker.script(mlp + LOADER.format(context="spawn"), "colorsys.py"), task="inspect")

    assert told.status == 0, told.log


def test_that_a_file_of_a_package_may_import_its_neighbours(worker: Worker, mlp: str) -> None:
    worker.script("", "nets/__init__.py")
    worker.script("WIDTH = 32\n", "nets/sizes.py")
    script = worker.script("from .sizes import WIDTH\n" + mlp.replace("[32]", "[WIDTH]"), "nets/mlp.py")

    told = worker.run(script, task="inspect")

    assert told.status == 0, told.log


def test_that_sizes_can_be_chosen_by_input(worker: Worker, mlp: str) -> None:
    told = worker.run(worker.script(mlp), task="inspect", inputs={"x": [[3, 32]]})

    assert told.one(e.WorkloadReady).inputs[0].shape == (3, 32)


STATE = {
    "a step counter": (
        "self.calls = 0",
        "self.calls += 1\n        return self.lin(x) * (1 - 0.9 ** self.calls)",
    ),
    "running statistics": ("self.norm = nn.BatchNorm1d(6)", "return self.norm(self.lin(x))"),
}


@pytest.mark.parametrize("kind", STATE)
def test_that_state_within_the_model_is_the_same_on_both_sides(worker: Worker, kind: str) -> None:
    init, forward = STATE[kind]
    script = worker.script(
        "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        self.lin = nn.Linear(6, 6)\n        {init}\n"
        f"    def forward(self, x):\n        {forward}\ndef get_inputs():\n    return [torch.randn(4, 6)]\n"
    )

    told = worker.run(script, EAGER, train_mode=True, budget=0.4)

    assert told.status == 0, told.log
    assert {row.verdict for row in told.all(e.Numerics)} == {"match"}
    if kind == "a step counter":
        assert len(told.all(e.RecompileLimit)) == 1
        assert "recompiles_every_call" in {warning.code for warning in told.all(e.Warning)}


def test_that_inputs_that_change_shape_are_asked_for_until_they_repeat(worker: Worker) -> None:
    script = worker.script(
        "import itertools, torch\nfrom torch import nn\nmodel = nn.Linear(4, 4)\n"
        "lengths = itertools.cycle([9, 14, 7, 11, 20, 1])\n"
        "def get_inputs():\n    return [torch.randn(next(lengths), 4)]\n"
    )

    told = worker.run(script, EAGER, budget=0.3)

    assert told.status == 0, told.log
    assert len(told.all(e.Recompile)) == 2


def test_that_a_script_s_own_compile_is_undone(worker: Worker) -> None:
    script = worker.script(
        "import torch\nfrom torch import nn\n"
        "inner = torch.compile(nn.Linear(4, 4), backend='eager')\n"
        "model = torch.compile(nn.Sequential(inner, nn.ReLU()), backend='eager')\ninputs = torch.randn(2, 4)\n"
    )

    told = worker.run(script, task="inspect", entry="model")

    assert told.status == 0, told.log
    assert "script_compiles" in {warning.code for warning in told.all(e.Warning)}


def test_that_the_folder_of_the_script_stays_as_it_was(worker: Worker, mlp: str, tmp_path: Path) -> None:
    worker.run(worker.script(mlp), task="inspect")

    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


MODES = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        print("mode", torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.get_num_threads())
        return x + 1

def get_inputs():
    return [torch.randn(8, 32)]
"""


@pytest.mark.parametrize(("grad_mode", "is_inference"), [("inference_mode", True), ("no_grad", False)])
def test_that_grad_mode_and_threads_are_as_chosen(worker: Worker, grad_mode: str, is_inference: bool) -> None:
    script = worker.script(MODES)

    told = worker.run(script, EAGER, budget=0.2, grad_mode=grad_mode, threads=1)

    assert told.status == 0, told.log[-2000:]
    assert {line for line in told.log.splitlines() if line.startswith("mode")} == {f"mode {is_inference} False 1"}
    assert told.all(e.Environment)[-1].threads == 1


def test_that_each_size_of_a_sweep_has_its_first_call_and_its_recompiles(worker: Worker, mlp: str) -> None:
    sizes = {"x": [[8, 32], [16, 32], [24, 32]]}
    workload = Workload(script="script.py", inputs=sizes)

    told = worker.run(worker.script(mlp), Config(backend="eager", dynamic=False), budget=0.9, inputs=sizes)

    run = Run("run", config=Config(), workload=workload)
    run.apply_all(told.events)
    rows = measure(run).shapes
    assert [row.recompiles for row in rows] == [0, 1, 1]
    assert all(row.first_call_s and row.first_call_s > 0 for row in rows)
    assert measure(run).eager_peak_bytes is measure(run).compiled_peak_bytes is None
    assert measure(run).process_rss_bytes


def test_that_a_model_whose_calls_take_long_is_called_no_more_than_it_must(worker: Worker) -> None:
    source = (
        "import time\nimport torch\nfrom torch import nn\n"
        "class Model(nn.Module):\n    @torch.compiler.disable\n    def forward(self, x):\n"
        "        print('called')\n        time.sleep(1.05)\n        return x + 1\n"
        "def get_inputs():\n    return [torch.ones(2)]\n"
    )

    told = worker.run(worker.script(source), Config(backend="eager"), budget=0.2)

    assert told.status == 0, told.log
    assert told.log.count("called") <= 20
    assert {row.side for row in told.all(e.Samples)} == {"eager", "compiled"}
    outputs = next(row for row in told.all(e.Numerics) if row.subject == "outputs")
    assert outputs.detail == "Bitwise equal. 2 calls compared."


@pytest.mark.parametrize(("cast", "said"), [("", []), (".bfloat16()", ["own_precision"])])
def test_that_weights_of_another_type_than_the_precision_says_are_told(
    worker: Worker, cast: str, said: list[str]
) -> None:
    source = (
        "import torch\nfrom torch import nn\n"
        f"class Model(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 2)\n        self{cast}\n"
        f"def get_inputs():\n    return [torch.ones(2){cast}]\n"
    )

    told = worker.run(worker.script(source), EAGER, task="inspect")

    assert told.status == 0, told.log
    assert [row.code for row in told.all(e.Warning) if row.code == "own_precision"] == said
    assert all("bfloat16" in row.message for row in told.all(e.Warning) if row.code == "own_precision")


def test_that_the_precision_of_float32_products_that_a_script_sets_is_told(worker: Worker, mlp: str) -> None:
    source = mlp + '\ntorch.set_float32_matmul_precision("high")\n'

    told = worker.run(worker.script(source), Config(backend="eager"), task="inspect")

    assert told.one(e.WorkloadReady).float32_matmul_precision == "high"
