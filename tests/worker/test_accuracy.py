"""What counts as rounding: errors against double precision, and how far apart the precision in force lets two be."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from compilescope.worker.accuracy import accuracy
from compilescope.worker.allowance import Allowance, allowance
from compilescope.worker.numerics import compare
from compilescope.worker.steps import Recipe, mean_square

TEN_BITS = 10
FP32 = Allowance(name="fp32", eps=2**-23, floor=1e-4, factor=2.0, share=1e-4, stray=1e-2)
TF32 = Allowance(name="TF32", eps=2**-10, floor=1e-3, factor=3.0, share=1e-2, stray=0.1)


def rounded(tensor: torch.Tensor, bits: int = TEN_BITS) -> torch.Tensor:
    """The nearest values with so many bits of mantissa, as TF32 has ten."""
    mantissa, exponent = torch.frexp(tensor)
    scale = 2.0 ** (bits + 1)
    return torch.ldexp(torch.round(mantissa * scale) / scale, exponent)


def product(x: torch.Tensor, w: torch.Tensor, split: int) -> torch.Tensor:
    """A matrix product as a TF32 unit makes it, added up in two parts; another split rounds differently."""
    return rounded(x[:, :split]) @ rounded(w[:split]) + rounded(x[:, split:] * 1.5) @ rounded(w[split:] / 1.5)


@pytest.fixture
def products() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A product in double precision, and two as TF32 makes it."""
    source = torch.Generator().manual_seed(0)
    x, w = (torch.randn(256, 256, generator=source) for _ in range(2))
    return x.double() @ w.double(), product(x, w, 100), product(x, w, 200)


def recipe(precision: str = "fp32", device: str = "cpu") -> Recipe:
    return Recipe(
        training=False,
        precision=precision,
        device=torch.device(device),
        loss=mean_square,
        optimizer=torch.optim.AdamW,
    )


def test_that_two_tf32_products_are_equally_right_although_they_differ(
    products: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    exact, eager, compiled = products
    found = accuracy((exact,), [(eager,)] * 2, (compiled,), FP32)

    assert compare((eager,), (compiled,), "outputs").gap.rms > 1e-4
    assert found is not None and found.passes
    assert found.ratio == pytest.approx(1.0, abs=0.3)


def test_that_without_a_reference_tf32_explains_them_and_fp32_does_not(
    products: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    gap = compare((products[1],), (products[2],), "outputs").gap

    assert TF32.explains(gap)
    assert not FP32.explains(gap)


def test_that_a_wrong_element_is_no_rounding_in_tf32(
    products: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    exact, eager, compiled = products
    compiled[3, 3] += 0.5 * float(exact.square().mean().sqrt())

    found = accuracy((exact,), [(eager,)] * 2, (compiled,), TF32)

    assert found is not None and not found.passes
    assert not TF32.explains(compare((eager,), (compiled,), "outputs").gap)


def test_that_one_wrong_element_of_many_is_found_in_fp32() -> None:
    exact = torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    eager = exact.float()
    wrong = eager.clone()
    wrong[7] += 1e-2

    found = accuracy((exact,), [(eager,)] * 2, (wrong,), FP32)

    assert found is not None and not found.passes
    assert not FP32.explains(compare((eager,), (wrong,), "outputs").gap)


def test_that_a_scalar_loss_may_err_by_what_tf32_does_although_eager_s_is_right_by_luck() -> None:
    exact = torch.tensor(2.0, dtype=torch.float64)
    eager, compiled = exact.float() + 1e-7, exact.float() + 2e-4

    lenient = accuracy(exact, [eager, eager], compiled, TF32)
    wrong = accuracy(exact, [eager, eager], exact.float() + 0.05, TF32)

    assert lenient is not None and lenient.passes
    assert wrong is not None and not wrong.passes


def test_that_a_gradient_near_zero_is_judged_by_the_size_of_all_gradients() -> None:
    large = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = {"weight": large, "bias": torch.full((4,), 1e-9, dtype=torch.float64)}
    eager = {"weight": large.float(), "bias": torch.full((4,), 1e-9)}
    compiled = {"weight": large.float(), "bias": torch.full((4,), 1e-6)}

    alone = accuracy(exact, [eager, eager], compiled, FP32)
    together = accuracy(exact, [eager, eager], compiled, FP32, common=True)

    assert alone is not None and not alone.passes
    assert together is not None and together.passes


def test_that_what_eager_varies_by_is_allowed() -> None:
    exact = torch.zeros(1000, dtype=torch.float64) + 1
    one, two = exact.float(), exact.float() + 1e-2
    compiled = exact.float() - 2e-2

    steady = accuracy(exact, [one, one], compiled, FP32)
    varying = accuracy(exact, [one, two], compiled, FP32)

    assert steady is not None and not steady.passes
    assert varying is not None and varying.passes


def test_that_a_part_without_a_reference_leaves_the_whole_without() -> None:
    value = torch.ones(3)

    assert accuracy((value.double(), value), [(value, value)] * 2, (value, value * 1.001), FP32) is None
    # but for one that is the same on both sides
    assert accuracy((value.double(), value), [(value, value)] * 2, (value, value), FP32) is not None


@pytest.mark.parametrize(
    ("model", "precision", "name"),
    [
        (nn.Linear(2, 2), "fp32", "fp32"),
        (nn.Linear(2, 2), "bf16", "bf16"),
        (nn.Linear(2, 2), "tf32", "fp32"),
        (nn.Linear(2, 2).half(), "fp32", "fp16"),
    ],
)
def test_that_the_coarsest_precision_in_use_counts(model: nn.Module, precision: str, name: str) -> None:
    assert allowance(recipe(precision), model).name == name


@pytest.mark.parametrize(("model", "name"), [(nn.Conv2d(1, 1, 1), "TF32"), (nn.Linear(2, 2), "fp32")])
def test_that_convolutions_on_a_gpu_use_tf32_unless_told_otherwise(
    model: nn.Module, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))

    assert allowance(recipe(device="cuda"), model).name == name
