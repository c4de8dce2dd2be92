"""Comparing values: what counts as equal, as rounding, and as a difference."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

import pytest
import torch

from compilescope.worker.norms import PIECE
from compilescope.worker.numerics import compare


@dataclass
class Result(OrderedDict):  # type: ignore[type-arg]
    """A dict-like dataclass, as model libraries return."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


def test_that_equal_structures_are_equal() -> None:
    value = {"a": (torch.ones(3), None), "b": [torch.arange(3), "word", 1.5]}

    found = compare(value, {"a": (torch.ones(3), None), "b": [torch.arange(3), "word", 1.5]}, "outputs")

    assert found.equal and found.close


@pytest.mark.parametrize(
    ("expected", "actual", "word"),
    [
        (torch.ones(3), torch.ones(4), "shape"),
        (torch.ones(3), torch.ones(3).double(), "dtype"),
        ((torch.ones(3),), [torch.ones(3)], "list instead of a tuple"),
        ({"a": 1}, {"b": 1}, "one of the two only"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "whole numbers"),
        (torch.tensor([1.0, float("nan")]), torch.tensor([float("nan"), 1.0]), "NaN"),
        (torch.tensor([float("inf")]), torch.tensor([-float("inf")]), "infinite"),
        ((torch.ones(1), None), (torch.ones(1), torch.ones(1)), "tensor in one"),
    ],
)
def test_that_a_fault_is_named(expected: object, actual: object, word: str) -> None:
    found = compare(expected, actual, "outputs")

    assert word in found.reason
    assert not found.is_rounding


@pytest.mark.parametrize("actual", [(torch.ones(4),), (torch.ones(3).double(),), [torch.ones(3)], (None,)])
def test_that_results_of_another_form_are_farther_apart_than_any_spread(actual: object) -> None:
    assert compare((torch.ones(3),), actual, "outputs").gap.rms == float("inf")


def test_that_nan_and_infinity_at_the_same_places_are_equal() -> None:
    value = torch.tensor([1.0, float("nan"), float("inf")])

    assert compare(value, value.clone(), "outputs").close


@pytest.mark.parametrize(("dtype", "small", "large"), [(torch.float32, 1e-7, 1e-3), (torch.bfloat16, 0.0, 0.1)])
def test_that_closeness_depends_on_the_type(dtype: torch.dtype, small: float, large: float) -> None:
    value = torch.ones(8, dtype=dtype)

    assert compare(value, value + small, "outputs").close
    apart = compare(value, value + large, "outputs")
    assert apart.is_rounding
    assert apart.max_abs_error == pytest.approx(large, rel=0.1)


def test_that_a_large_tensor_is_compared_to_its_end() -> None:
    value = torch.zeros(PIECE + 3)
    other = value.clone()
    other[-1] = 1.0

    assert compare(value, other, "outputs").reason.startswith("1 of ")


def test_that_complex_sparse_and_expanded_tensors_compare() -> None:
    for value in (torch.ones(3, dtype=torch.complex64), torch.eye(3).to_sparse(), torch.ones(1).expand(5)):
        assert compare(value, value.clone(), "outputs").close
        assert not compare(value, value * 2, "outputs").close


def test_that_a_dict_like_dataclass_is_walked() -> None:
    one, two = Result(loss=torch.ones(1)), Result(loss=torch.zeros(1))
    one["loss"], two["loss"] = one.loss, two.loss

    assert compare(one, one, "outputs").close
    assert not compare(one, two, "outputs").close


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_that_what_is_not_finite_on_both_sides_hides_no_difference_beside_it(odd: float) -> None:
    one, two = torch.tensor([odd, 1.0, 2.0]), torch.tensor([odd, 1.0, 2.5])

    found = compare(one, two, "outputs")

    assert (found.equal, found.is_rounding, found.max_abs_error) == (False, True, 0.5)
    assert found.gap.peak == pytest.approx(0.5 / finite_size(one))


def finite_size(values: torch.Tensor) -> float:
    """The root mean square of what is finite, over all elements."""
    finite = values[values.isfinite()].double()
    return float((finite.square().sum() / values.numel()).sqrt())


def test_that_norms_of_several_pieces_are_those_of_the_whole() -> None:
    one = torch.rand(PIECE + 5)
    two = one.clone()
    two[-1] += 0.25

    assert compare(one, two, "outputs").gap.peak == pytest.approx(0.25 / finite_size(one))


class Cache:
    """A class of a library: tensors in a list of objects, and a count of calls."""

    def __init__(self, value: float, calls: int = 0) -> None:
        self.layers = [Layer(value)]
        self.calls = calls


class Layer:
    def __init__(self, value: float) -> None:
        self.keys = torch.full((3,), value)


def test_that_tensors_within_objects_are_compared_and_their_counters_are_not() -> None:
    assert compare({"cache": Cache(1.0, calls=3)}, {"cache": Cache(1.0, calls=4)}, "outputs").equal
    found = compare({"cache": Cache(1.0)}, {"cache": Cache(2.0)}, "outputs")
    assert "outputs['cache'].layers[0].keys" in found.reason
    assert found.is_rounding and not found.unseen
    one, two = (torch.distributions.Categorical(logits=torch.tensor([0.0, x])) for x in (1.0, 2.0))
    assert not compare(one, two, "outputs").close
    assert compare(one, two, "outputs").gap.peak > 0.1


def test_that_an_object_without_tensors_is_named_as_not_looked_into() -> None:
    class Opaque:
        __slots__ = ("value",)

    found = compare((torch.ones(1), Opaque()), (torch.ones(1), Opaque()), "outputs")

    assert found.close and found.unseen == "outputs[1] (Opaque)"
    assert not compare((), (), "outputs").unseen


def test_that_numbers_of_any_kind_and_arrays_are_compared() -> None:
    assert not compare(1 + 1j, 1 + 2j, "outputs").close
    assert compare(1 + 1j, 1 + 1j, "outputs").equal
    assert not compare(1.0, 2, "outputs").close
    numpy = pytest.importorskip("numpy")
    assert compare(numpy.ones(3), numpy.ones(3), "outputs").equal
    assert not compare(numpy.ones(3), numpy.zeros(3), "outputs").close


def test_that_a_sparse_tensor_s_places_are_compared() -> None:
    one, two = torch.tensor([1.0, 0, 1, 0]).to_sparse(), torch.tensor([0, 1.0, 1, 0]).to_sparse()

    assert "non-zero" in compare(one, two, "outputs").reason


def test_that_whole_numbers_which_differ_are_counted_beside_rounding() -> None:
    logits, choice = torch.ones(4), torch.tensor([0, 1, 2, 3])

    found = compare((logits, choice), (logits + 1e-3, torch.tensor([0, 1, 2, 0])), "outputs")

    assert (found.is_rounding, found.flipped, found.is_fault) == (True, 0.25, False)


def test_that_a_number_of_python_is_rounded_as_a_tensor_is() -> None:
    found = compare((1.0, torch.ones(1)), (1.001, torch.ones(1)), "outputs")

    assert found.is_rounding and found.max_abs_error == pytest.approx(1e-3)
    assert found.gap.rms == pytest.approx(1e-3)
    assert compare(1.0, float("nan"), "outputs").is_fault


class Held:
    """An object that can be called, with a tensor and what is given."""

    def __init__(self, value: object) -> None:
        self.first = torch.ones(2)
        self.rest = value

    def __call__(self) -> None:
        raise AssertionError


def test_that_what_an_object_holds_beside_a_tensor_is_compared_or_named() -> None:
    assert not compare(Held(torch.ones(1)), Held(torch.zeros(1)), "outputs").close
    assert not compare(Held(deque([torch.ones(1)])), Held(deque([torch.zeros(1)])), "outputs").close
    assert compare(Held({torch.ones(1)}), Held({torch.ones(1)}), "outputs").unseen == "outputs.rest (set)"
    assert not compare(Held({"a"}), Held({"a"}), "outputs").unseen


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_that_nested_tensors_compare(layout: torch.layout) -> None:
    rows = [torch.ones(2, 4), torch.ones(3, 4)]
    one, two, other = (torch.nested.nested_tensor([row * f for row in rows], layout=layout) for f in (1.0, 1.0, 2.0))

    assert compare(one, two, "outputs").close
    assert compare(one, other, "outputs").is_rounding
    assert compare(one, other, "outputs").gap.peak == pytest.approx(1.0)
