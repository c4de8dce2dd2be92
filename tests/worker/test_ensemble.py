"""Rounding that is made on purpose: what it moves and what it leaves, and which rows count as jumps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from compilescope.worker.allowance import TABLE
from compilescope.worker.ensemble import Stochastic, beside, jumps, moved


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_that_numbers_move_by_a_unit_in_the_last_place_of_their_type(dtype: torch.dtype) -> None:
    value = torch.rand(1000, dtype=torch.float64).add(1.25).to(dtype)
    other = beside(value, torch.finfo(dtype).eps, seed=0)

    gap = (other.double() - value.double()).abs() / torch.finfo(dtype).eps
    assert other.dtype is dtype
    assert 0.3 < float((gap > 0).float().mean()) < 0.9
    assert float(gap.max()) <= 2


def test_that_numbers_held_in_a_wider_type_move_by_half_a_unit_of_the_type_that_is_computed_in() -> None:
    value = torch.full((1000,), 1.5)

    gap = (beside(value, 2**-7, seed=0) - value).abs()

    torch.testing.assert_close(gap, torch.full((1000,), 1.5 * 2**-8))


def test_that_whole_numbers_stay_since_they_are_masks_and_counts() -> None:
    value = torch.tensor([0.0, 1.0, -3.0, float("inf"), float("-inf")])

    assert torch.equal(beside(value, 2**-7, seed=0), value)


def test_that_parameters_come_back_in_the_memory_that_they_had() -> None:
    model = nn.Linear(3, 3)
    before, address = model.weight.detach().clone(), model.weight.data_ptr()

    with moved(model, 2**-23, seed=0):
        assert not torch.equal(model.weight, before)

    assert torch.equal(model.weight, before)
    assert model.weight.data_ptr() == address


def test_that_an_operation_that_selects_stays_exact_and_one_that_rounds_does_not() -> None:
    x = torch.rand(100)

    with Stochastic(2**-23, seed=0):
        chosen, product = x.max(), x * 1.1

    assert chosen == x.max()
    assert not torch.equal(product, x * 1.1)


def rounded(values: torch.Tensor, seed: int) -> torch.Tensor:
    return values + values * 1e-7 * torch.randn(values.shape, generator=torch.Generator().manual_seed(seed))


def test_that_a_row_which_jumps_in_eager_too_is_told_from_one_that_does_not() -> None:
    eager = torch.rand(50, 16, generator=torch.Generator().manual_seed(0))
    members = [rounded(eager, seed) for seed in range(6)]
    members[2][7] += 0.3
    compiled = rounded(eager, 9)

    compiled[7] += 0.3
    known = jumps("", eager, compiled, members, None, TABLE["fp32"])
    compiled[8:20] += 0.3
    beyond = jumps("", eager, compiled, members, None, TABLE["fp32"])

    assert known is not None and (known.compiled, known.own, known.new, known.is_wrong) == (1, 1, 0, False)
    assert beyond is not None and (beyond.compiled, beyond.new, beyond.is_wrong) == (13, 12, True)
    assert int(known.steady.sum()) == 49


def test_that_a_row_which_jumps_farther_than_rounding_sends_any_is_wrong() -> None:
    eager = torch.rand(50, 16, generator=torch.Generator().manual_seed(0))
    members = [rounded(eager, seed) for seed in range(6)]
    members[2][7] += 0.3
    compiled = rounded(eager, 9)
    compiled[7] += 3.0

    found = jumps("", eager, compiled, members, None, TABLE["fp32"])

    assert found is not None and found.is_wrong and "farther" in found.fault


def test_that_rows_of_other_sizes_are_no_jumps() -> None:
    size = torch.logspace(-3, 3, 50)[:, None]
    eager = torch.rand(50, 16, generator=torch.Generator().manual_seed(0)) * size

    assert jumps("", eager, rounded(eager, 9), [rounded(eager, s) for s in range(6)], None, TABLE["fp32"]) is None
