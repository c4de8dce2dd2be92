"""Which of several reasons tells why a function was compiled again."""

from __future__ import annotations

import json

import pytest

from compilescope.domain.trace.recompiles import parse_reasons
from compilescope.domain.trace.variants import Variants

GRAD = "tensor 'x' requires_grad mismatch. expected requires_grad={}"
SIZE = "tensor 'x' size mismatch at index 0. expected {}, actual {}"


def causes(*records: tuple[str, list[str]]) -> list[str]:
    """The guard that each recompile is told with, in order."""
    variants = Variants()
    return [variants.cause(parse_reasons(json.dumps(reasons)), compiled).guard for compiled, reasons in records]


def test_that_a_new_size_is_the_cause_though_the_variant_used_last_differs_in_another_thing_first() -> None:
    # blocks that share one forward, as torch 2.13 told it: sizes 8, then 12, each first without and then with gradients
    told = causes(
        ("1/1", ["1/0: " + GRAD.format(0)]),
        ("1/2", ["1/1: " + GRAD.format(1), "1/0: " + SIZE.format(8, 12)]),
        ("1/3", ["1/2: " + GRAD.format(0), "1/1: " + SIZE.format(8, 12), "1/0: " + GRAD.format(0)]),
    )

    assert told == [GRAD.format(0), SIZE.format(8, 12), SIZE.format(8, 12)]


def test_that_a_number_that_no_variant_has_is_the_cause() -> None:
    told = causes(
        ("3/1", ["3/0: " + GRAD.format(0)]),
        ("3/2", ["3/1: " + GRAD.format(1), "3/0: ___stack0 == 1.9156574010849  # return x + y  # m.py:17 in forward"]),
        ("3/3", ["3/1: " + GRAD.format(1), "3/2: " + SIZE.format(8, 12), "3/0: " + SIZE.format(8, 12)]),
    )

    assert told == [GRAD.format(0), "___stack0 == 1.9156574010849", SIZE.format(8, 12)]


def test_that_a_number_which_another_variant_has_is_not_the_cause_of_a_new_size() -> None:
    told = causes(("0/1", ["0/0: n == 1"]), ("0/2", ["0/1: n == 2", "0/0: " + SIZE.format(8, 12)]))

    assert told == ["n == 1", SIZE.format(8, 12)]


def test_that_a_number_is_the_cause_where_another_variant_has_the_size() -> None:
    told = causes(("0/1", ["0/0: " + SIZE.format(8, 12)]), ("0/2", ["0/1: n == 2", "0/0: " + SIZE.format(8, 12)]))

    assert told == [SIZE.format(8, 12), "n == 2"]


def test_that_a_counter_is_told_with_the_variant_used_last() -> None:
    told = causes(
        ("0/1", ["0/0: self.step == 0"]),
        ("0/2", ["0/1: self.step == 1", "0/0: self.step == 0"]),
        ("0/3", ["0/2: self.step == 2", "0/1: self.step == 1", "0/0: self.step == 0"]),
    )

    assert told == ["self.step == 0", "self.step == 1", "self.step == 2"]


@pytest.mark.parametrize(
    "early",
    ["GLOBAL_STATE changed: grad_mode ", "___check_type_id(fn, 9), type=<class 'a.B'>", "tensor 'x' dtype mismatch."],
)
def test_that_of_known_values_the_guard_tested_latest_is_the_cause(early: str) -> None:
    told = causes(
        ("0/1", ["0/0: " + SIZE.format(8, 12)]),
        ("0/2", ["0/1: " + early, "0/0: " + early]),
        ("0/3", ["0/2: " + SIZE.format(8, 12), "0/1: " + early, "0/0: " + early]),
    )

    assert told[2] == SIZE.format(8, 12)
