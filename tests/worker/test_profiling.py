"""The profiler pass: which events count, what is known of their work, and that a fault of it harms nothing."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

from compilescope.domain.events import Event, KernelTime, Profile, Warning
from compilescope.worker import generated, kernel_times, profiling
from compilescope.worker.gpu import Launches, busy, copies_among, kernels_among
from compilescope.worker.inputs import Inputs
from compilescope.worker.kernel_times import attributed
from compilescope.worker.operators import does_work
from compilescope.worker.profiling import Profiler, count_work
from compilescope.worker.steps import Recipe, Side, mean_square
from compilescope.worker.work import WorkCounter


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.linear(x).transpose(0, 1) * 2).relu()


def side(name: str = "eager", *, training: bool = False, model: nn.Module | None = None) -> Side:
    model = model or Small()
    recipe = Recipe(
        training=training, precision="fp32", device=torch.device("cpu"), loss=mean_square, optimizer=torch.optim.SGD
    )
    return Side(name, model, model, recipe)


def inputs() -> Inputs:
    return Inputs(args=(torch.randn(8, 16),), kwargs={})


def told(*sides: Side) -> list[Event]:
    events: list[Event] = []
    Profiler([(one, inputs()) for one in sides], events.append).tell()
    return events


@pytest.mark.parametrize("name", ["aten::addmm", "aten::native_layer_norm", "aten::add_", "aten::sum", "aten::copy_"])
def test_that_operators_with_a_kernel_do_work(name: str) -> None:
    assert does_work(name)


@pytest.mark.parametrize(
    "name",
    [
        *("aten::linear", "aten::layer_norm", "aten::to", "aten::matmul"),
        *("aten::view", "aten::transpose", "aten::as_strided", "aten::expand", "aten::detach"),
        *("aten::empty", "aten::empty_strided", "AddmmBackward0", "Torch-Compiled Region: 0/0", "a::b::c: d", ""),
    ],
)
def test_that_views_allocations_and_what_only_calls_others_do_none(name: str) -> None:
    assert not does_work(name)


@pytest.mark.parametrize("training", [False, True])
def test_that_the_work_of_a_call_is_counted_from_its_shapes(training: bool) -> None:
    work = count_work(side(training=training), inputs())
    product = work.find(("aten::addmm", ((32,), (8, 16), (16, 32))))

    # a product of 8 x 16 and 16 x 32; its backward makes one for the weight, and none for the input
    assert work.flops == {"fp32": 2 * 8 * 16 * 32 * (2 if training else 1)}
    assert product.flops == 2 * 8 * 16 * 32
    assert product.bytes == 4 * (32 + 8 * 16 + 16 * 32 + 8 * 32)


def test_that_single_elements_count_for_nothing() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale * 3

    work = count_work(side(model=Scaled()), inputs())

    assert work.find(("aten::mul", ((8, 16),))).bytes == 2 * 4 * 8 * 16


def test_that_an_operator_of_unknown_shapes_has_no_work() -> None:
    found = count_work(side(), inputs()).find(("aten::addmm", ((1,), (2, 2), (2, 2))))

    assert (found.flops, found.bytes) == (None, None)


def test_that_what_reads_a_part_of_its_input_moves_no_known_number_of_bytes() -> None:
    class Lookup(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(1000, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table(x)

    work = count_work(side(model=Lookup()), Inputs(args=(torch.tensor([1, 2]),), kwargs={}))

    assert work.calls == 1
    assert work.find(("aten::embedding", ((1000, 4), (2,)))).bytes is None


def test_that_each_side_tells_its_operators_per_call() -> None:
    eager, compiled = told(side("eager"), side("compiled"))

    for event in (eager, compiled):
        assert isinstance(event, Profile)
        rows = {row.name: row for row in event.kernels}
        assert set(rows) == {"aten::addmm", "aten::mul", "aten::relu"}
        assert {row.launches for row in rows.values()} == {1.0}
        assert rows["aten::addmm"].flops == 2 * 8 * 16 * 32
        assert rows["aten::mul"].bytes == 2 * 4 * 8 * 32
        assert rows["aten::mul"].flops is None
        assert event.call_s and 0 < event.seconds <= event.call_s


def test_that_a_fault_is_a_note() -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError(f"not under a profiler, with {x.dim()} dimensions")

    (warning,) = told(side(model=Broken()))

    assert isinstance(warning, Warning)
    assert warning.code == "not_profiled" and "not under a profiler" in warning.message


def test_that_a_call_of_very_many_operators_is_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "MOST_OPERATORS", 2)

    (warning,) = told(side())

    assert isinstance(warning, Warning)
    assert "A call runs 3 operators" in warning.message


def test_that_generated_kernels_are_told_by_name_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_tensors: object, stream: int) -> int:
        return stream

    module = ModuleType("generated_code")
    module.cpp_fused_relu_0 = cpp = torch.relu  # type: ignore[attr-defined]
    module.triton_poi_fused_add_1 = triton = SimpleNamespace(run=launch)  # type: ignore[attr-defined]
    module.triton_per_fused_embedding_2 = SimpleNamespace(run=launch)  # type: ignore[attr-defined]
    monkeypatch.setattr(generated, "_code_cache", lambda: SimpleNamespace(modules=[module]))
    one = torch.ones(8)

    class Generated(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert module.triton_poi_fused_add_1.run(one, one, 8, stream=7) == 7
            assert module.triton_per_fused_embedding_2.run(one, stream=7) == 7
            result: torch.Tensor = module.cpp_fused_relu_0(x)
            return result

    with generated.told() as uses:
        Generated()(one)
    (event,) = told(side("compiled", model=Generated()))

    assert uses["triton_poi_fused_add_1"].bytes_per_call == 2 * 8 * 4
    assert uses["triton_per_fused_embedding_2"].bytes_per_call is None
    assert isinstance(event, Profile)
    assert [(row.name, row.kind, row.launches, row.bytes) for row in event.kernels] == [
        ("cpp_fused_relu_0", "cpp", 1.0, 8 * 16 * 4)
    ]
    assert module.cpp_fused_relu_0 is cpp and module.triton_poi_fused_add_1 is triton


def device_event(name: str, begin_us: float, end_us: float) -> FunctionEvent:
    return FunctionEvent(0, name, 0, begin_us, end_us, device_type=DeviceType.CUDA)


def cpu_event(name: str, begin_us: float, *kernels: tuple[str, float], shapes: object = None) -> FunctionEvent:
    event = FunctionEvent(0, name, 0, begin_us, begin_us + 10, input_shapes=shapes, use_device="cuda")
    for kernel, duration in kernels:
        event.append_kernel(kernel, 0, duration)
    return event


def test_that_kernels_on_the_gpu_are_those_and_no_copies() -> None:
    found = kernels_among(
        [device_event("triton_poi_0", 0, 10), device_event("Memcpy HtoD", 0, 5), cpu_event("aten::mm", 0)]
    )

    assert [(row.name, row.seconds) for row in found] == [("triton_poi_0", pytest.approx(1e-5))]


def test_that_kernels_that_overlap_are_busy_once() -> None:
    kernels = kernels_among([device_event("a", 0, 10), device_event("b", 5, 20), device_event("c", 30, 40)])
    found = Launches(calls=2, kernels=kernels)

    assert found.busy_s == pytest.approx(35e-6 / 2)
    assert found.active_s == pytest.approx(30e-6 / 2)


def test_that_a_copy_keeps_the_gpu_active_and_is_no_kernel() -> None:
    events = [device_event("a", 0, 10), device_event("Memcpy HtoD", 8, 40)]
    found = Launches(calls=1, kernels=kernels_among(events), copies=copies_among(events))

    assert found.busy_s == pytest.approx(10e-6)
    assert found.active_s == pytest.approx(40e-6)
    told = busy(side(), found)
    assert told is not None and (told.launches, told.copies_s) == (1, pytest.approx(32e-6))


def test_that_a_kernel_on_the_gpu_has_the_work_of_the_operator_that_launched_it() -> None:
    work = count_work(side(), inputs())
    shapes = [[32], [8, 16], [16, 32], [], [], [8, 32]]
    events = EventList(
        [
            cpu_event("aten::addmm", 0, ("gemm", 8.0), ("split_k_reduce", 2.0), shapes=shapes),
            cpu_event("aten::mul", 20, ("elementwise", 3.0), shapes=[[32, 8], []]),
        ]
    )
    events._build_tree()
    origins = attributed(events, work)
    kernels = kernels_among(
        [device_event("gemm", 0, 8), device_event("elementwise", 8, 11), device_event("triton_poi_0", 11, 12)] * 2
    )
    uses = {"triton_poi_0": generated.Use(calls=4, bytes=400)}

    rows = {row.name: row for row in kernel_times.on_gpu(Launches(calls=2, kernels=kernels), origins, uses)}

    # a product of several kernels moves between them what nobody knows
    assert (rows["gemm"].operator, rows["gemm"].flops, rows["gemm"].bytes) == ("aten::addmm", 2 * 8 * 16 * 32, None)
    assert (rows["elementwise"].flops, rows["elementwise"].bytes) == (None, 2 * 4 * 8 * 32)
    assert rows["triton_poi_0"] == KernelTime(
        name="triton_poi_0", kind="triton", seconds=pytest.approx(1e-6), launches=1.0, bytes=100.0
    )


def test_that_a_replayed_cuda_graph_tells_kernels_without_their_work() -> None:
    kernels = kernels_among([device_event("gemm", 0, 8)])

    (row,) = kernel_times.on_gpu(Launches(calls=1, kernels=kernels), attributed([], WorkCounter()), {})

    assert (row.launches, row.operator, row.flops, row.bytes) == (1.0, None, None, None)
