"""Tensor classes that keep their values in other tensors: quantised, jagged, distributed."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from compilescope.domain.config import Config
from compilescope.domain.events import Ended, Failure, FirstCall, Measured, Numerics, Profile, Warning, WorkloadReady
from compilescope.worker import layout, reach
from compilescope.worker.inputs import Inputs, duplicate, signature
from compilescope.worker.likeness import common, form, synchronise
from compilescope.worker.models import storage_bytes
from compilescope.worker.profiling import count_work
from compilescope.worker.state import State
from compilescope.worker.steps import Recipe, Side, mean_square

if TYPE_CHECKING:
    from conftest import Worker

CPU = torch.device("cpu")

# weight-only int8 as torchao does it
INT8 = """
import torch
from torch import nn

aten = torch.ops.aten


class Int8Weight(torch.Tensor):
    @staticmethod
    def __new__(cls, data, scale, dtype):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=dtype, device=data.device)

    def __init__(self, data, scale, dtype):
        self.data_int8, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["data_int8", "scale"], self.dtype

    @classmethod
    def __tensor_unflatten__(cls, parts, dtype, size, stride):
        return cls(parts["data_int8"], parts["scale"], dtype)

    @classmethod
    def from_float(cls, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().to(torch.int8), scale, weight.dtype)

    def __repr__(self):
        return "Int8Weight()"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is nn.functional.linear:
            x, w, bias = args
            return (x @ w.data_int8.to(x.dtype).t()) * w.scale.t() + bias
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (aten.detach.default, aten.clone.default, aten.alias.default):
            return cls(func(args[0].data_int8), args[0].scale.clone(), args[0].dtype)
        if func is aten.copy_.default:
            args[0].data_int8.copy_(args[1].data_int8)
            args[0].scale.copy_(args[1].scale)
            return args[0]
        raise NotImplementedError(func)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.up.weight = nn.Parameter(Int8Weight.from_float(self.up.weight.detach()), requires_grad=False)

    def forward(self, x):
        return self.up(x)


def get_inputs():
    return [torch.randn(8, 32)]
"""

JAGGED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(48, 48)

    def forward(self, nt):
        return torch.nn.functional.silu(self.up(nt))


def get_inputs():
    return [torch.nested.nested_tensor([torch.randn(n, 48) for n in (6, 5, 3)], layout=torch.jagged)]
"""


@pytest.fixture(scope="module")
def quantised() -> ModuleType:
    module = ModuleType("quantised")
    exec(INT8, vars(module))
    return module


def jagged(fill: float = 0.0) -> torch.Tensor:
    rows = [torch.full((size, 4), fill) for size in (2, 3)]
    nested: torch.Tensor = torch.nested.nested_tensor(rows, layout=torch.jagged)
    return nested


@pytest.fixture
def distributed() -> Iterator[Any]:
    """A distributed tensor of a group of one."""
    dist = pytest.importorskip("torch.distributed")
    tensor = pytest.importorskip("torch.distributed.tensor")
    if not dist.is_available():
        pytest.skip("This torch has no distributed tensors.")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = tensor.DeviceMesh("cpu", [0])
        yield tensor.distribute_tensor(torch.arange(12.0).view(3, 4), mesh, [tensor.Shard(0)])
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("script", [INT8, JAGGED], ids=["int8", "jagged"])
def test_that_a_script_with_a_tensor_class_runs_to_its_end(worker: Worker, script: str) -> None:
    told = worker.run(worker.script(script), Config(backend="eager"), budget=0.3)

    assert told.all(Failure) == [] and told.status == 0, told.log[-3000:]
    assert len(told.all(FirstCall)) == 2 and told.all(Measured)
    assert {profile.side for profile in told.all(Profile)} == {"eager", "compiled"}
    assert "not_profiled" not in [warning.code for warning in told.all(Warning)]
    assert [row for row in told.all(Numerics) if row.verdict == "incorrect"] == []
    ready = told.one(WorkloadReady)
    assert ready.parameter_bytes == (32 * 64 + 4 * 64 + 4 * 64 if script is INT8 else 4 * (48 * 48 + 48))
    assert not told.all(Ended)


def test_that_the_bytes_of_a_wrapper_are_those_inside_it(quantised: ModuleType) -> None:
    model = quantised.Model()

    assert storage_bytes(model.parameters()) == 32 * 64 + 2 * 4 * 64
    assert storage_bytes([jagged()]) >= 5 * 4 * 4
    assert storage_bytes([torch.ones(2).to_sparse(), torch.ones(3, device="meta")]) == 12


def test_that_an_eager_call_on_wrappers_is_counted_by_what_runs_inside(quantised: ModuleType) -> None:
    recipe = Recipe(training=False, precision="fp32", device=CPU, loss=mean_square, optimizer=None)
    model = quantised.Model().eval()

    work = count_work(Side("eager", model, model, recipe), Inputs(args=(torch.randn(8, 32),)))
    nested = count_work(Side("eager", nn.SiLU(), nn.SiLU(), recipe), Inputs(args=(jagged(),)))

    assert work.flops == {"fp32": 2 * 8 * 32 * 64}
    assert nested.calls == 1


def test_that_the_state_of_wrappers_is_kept_and_put_back(quantised: ModuleType) -> None:
    model, nested = quantised.Model(), jagged(1.0)
    state = State({"model": model, "inputs": [nested]})

    assert state.changes() == []
    model.up.weight.data_int8.add_(1)
    nested.values().add_(1)

    assert sorted(change.name for change in state.changes()) == ["inputs[0]", "model.up.weight"]
    state.put_back()
    assert state.changes() == []
    assert reach.same_values(nested, jagged(1.0))


def test_that_two_models_with_wrappers_are_made_equal(quantised: ModuleType) -> None:
    one, two = quantised.Model(), quantised.Model()
    assert not reach.same_values(one.up.weight, two.up.weight)

    likeness = synchronise(one, two)

    assert likeness.forms == [] and "up.weight" in likeness.copied
    assert reach.same_values(one.up.weight, two.up.weight)
    assert list(common(one, two)) == []
    assert form(jagged()) == form(jagged(2.0))


def test_that_a_copy_of_a_jagged_tensor_can_be_trained_on() -> None:
    linear = nn.Linear(4, 4)
    inputs = Inputs(args=(jagged(1.0),))

    copied = duplicate(inputs)
    linear(copied.args[0]).square().mean().backward()

    assert linear.weight.grad is not None
    copied.args[0].values().add_(1)
    assert reach.same_values(inputs.args[0], jagged(1.0))
    assert signature(inputs) == signature(copied) == signature(Inputs(args=(jagged(3.0),)))


def test_that_a_distributed_tensor_is_looked_into(distributed: Any) -> None:
    model = nn.Linear(4, 3)
    model.weight = nn.Parameter(distributed)
    twin = nn.Linear(4, 3)
    twin.weight = nn.Parameter(distributed.detach().clone().mul_(2))
    state = State({"model": model})
    rows = {"outputs": (distributed, distributed)}

    assert storage_bytes(model.parameters()) == 12 * 4 + 3 * 4
    assert not reach.same_values(model.weight, twin.weight)
    synchronise(model, twin)
    assert reach.same_values(model.weight, twin.weight)
    assert list(layout.differences(rows, rows)) == []
    model.weight.to_local().data.fill_(7)
    assert [change.name for change in state.changes()] == ["model.weight"]
    state.put_back()
    assert model.weight.to_local().tolist() == torch.arange(12.0).view(3, 4).tolist()
