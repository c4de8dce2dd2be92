"""Inputs: copied without sharing memory, moved and resized without losing what the compiler looks at."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from compilescope.worker.errors import WorkerError
from compilescope.worker.inputs import Inputs, Source, duplicate, from_value, resized, signature, to_device


@dataclass
class Batch:
    """A container of a script's own."""

    ids: torch.Tensor
    label: str


def test_that_a_copy_keeps_strides_aliases_and_marks() -> None:
    tensor = torch.randn(4, 6).t()
    tensor._dynamo_dynamic_indices = {0}  # type: ignore[attr-defined]
    copied = duplicate(Inputs(args=(tensor, tensor, torch.ones(1).expand(8))))

    first, second, wide = copied.args
    assert first is second and first is not tensor
    assert first.stride() == tensor.stride()
    assert first._dynamo_dynamic_indices == {0}
    assert wide.stride() == (0,)
    assert first.data_ptr() != tensor.data_ptr()


def test_that_tensors_with_a_history_can_be_copied() -> None:
    grown = torch.ones(2, requires_grad=True) * 2

    copied = duplicate(Inputs(args=(grown,))).args[0]

    assert copied.is_leaf and copied.requires_grad
    assert torch.equal(copied, grown)


def test_that_moving_keeps_marks_and_goes_into_containers() -> None:
    tensor = torch.ones(2)
    tensor._dynamo_dynamic_indices = {0}  # type: ignore[attr-defined]

    moved = to_device(Inputs(args=(Batch(tensor, "x"), b"key", None, 3)), torch.device("meta"))

    batch, key, nothing, number = moved.args
    assert batch.ids.device.type == "meta" and batch.label == "x"
    assert batch.ids._dynamo_dynamic_indices == {0}
    assert (key, nothing, number) == (b"key", None, 3)


@pytest.mark.parametrize(
    ("value", "args", "kwargs"),
    [(torch.ones(1), 1, 0), ([torch.ones(1), 2], 2, 0), ((), 0, 0), ({"x": torch.ones(1)}, 0, 1)],
)
def test_that_inputs_may_be_a_tensor_a_sequence_or_keywords(value: object, args: int, kwargs: int) -> None:
    inputs = from_value(value)

    assert (len(inputs.args), len(inputs.kwargs)) == (args, kwargs)


def test_that_inputs_are_described_by_the_names_of_forward() -> None:
    class Net(nn.Module):
        def forward(self, ids: torch.Tensor, scale: float, *rest: torch.Tensor) -> torch.Tensor:
            return ids * scale + rest[0]

    source = Source(lambda: [torch.ones(2, 3), 0.5, [torch.ones(1)]], torch.device("cpu"))
    source.use_names_of(Net())

    rows = source.describe(source.make())

    assert [(row.name, row.shape, row.detail) for row in rows] == [
        ("ids", (2, 3), ""),
        ("scale", None, "float 0.5"),
        ("args[2][0]", (1,), ""),
    ]


def test_that_whole_numbers_stay_in_their_range_when_resized() -> None:
    ids = torch.tensor([[3, 9]])

    other = resized(Inputs(args=(ids,)), ["ids"], {"ids": (4, 50)}).args[0]

    assert other.shape == (4, 50) and other.dtype == torch.int64
    assert int(other.min()) >= 3 and int(other.max()) <= 9


def test_that_an_unknown_input_is_named_with_those_there_are() -> None:
    with pytest.raises(WorkerError) as caught:
        resized(Inputs(args=(torch.ones(1),)), ["x"], {"y": (2,)})

    assert "y" in caught.value.message and "x" in caught.value.hint


def test_that_the_signature_changes_with_shape_and_number_but_not_with_values() -> None:
    def of(*args: object) -> object:
        return signature(Inputs(args=args))

    assert of(torch.ones(2), 1) == of(torch.zeros(2), 1)
    assert of(torch.ones(2), 1) != of(torch.ones(3), 1)
    assert of(torch.ones(2), 1) != of(torch.ones(2), 2)
