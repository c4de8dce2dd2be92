"""What values that are equal may still differ in."""

from __future__ import annotations

import torch

from compilescope.worker.layout import differences


def test_that_strides_and_shared_memory_are_compared() -> None:
    x = torch.zeros(4, 6)
    expected = {"inputs": (x,), "outputs": (x[0], torch.ones(2, 3).t())}
    actual = {"inputs": (x,), "outputs": (x[0].clone(), torch.ones(3, 2))}

    assert list(differences(expected, expected)) == []
    assert list(differences(expected, actual)) == [
        "outputs[1] has strides (2, 1) instead of (1, 3).",
        "outputs[0] has memory of its own in the compiled model, and shares memory with inputs[0] in eager.",
    ]


def test_that_strides_of_axes_with_one_element_and_of_empty_tensors_do_not_matter() -> None:
    one = {"outputs": [torch.zeros(1, 5), torch.zeros(0, 3)]}
    two = {"outputs": [torch.zeros(5, 1).t(), torch.zeros(3, 0).t()]}

    assert list(differences(one, two)) == []
