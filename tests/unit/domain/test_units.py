"""Numbers as people read them."""

from __future__ import annotations

import pytest

from compilescope.domain import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (8.4e-7, "840 ns"),
        (9.9996e-7, "1.00 µs"),
        (1.24e-2, "12.4 ms"),
        (0.99999, "1.00 s"),
        (3.214, "3.21 s"),
        (99.96, "100 s"),
        (250, "4 min 10 s"),
        (240, "4 min"),
        (3599.9, "1 h"),
        (7500, "2 h 5 min"),
        (-0.5, "−500 ms"),
    ],
)
def test_that_a_duration_has_three_digits_and_a_unit(seconds: float | None, text: str):
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1023.9 * 1024, "1020 KiB"), (5 << 40, "5.00 TiB")],
)
def test_that_sizes_are_in_binary_units(count: int | None, text: str):
    assert units.size(count) == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (None, None, "–"),
        (1.84, None, "1.84×"),
        (1.8437, 0.021, "1.844× ± 0.021"),
        (12.34, 0.4, "12.34× ± 0.40"),
        (123.4, 12.0, "123× ± 12"),
        (0.969, 0.0054, "0.969× ± 0.005"),
        (1.0, 0.0001, "1.000× ± <0.001"),
        (0.909, 71.4, "0.91× (unsettled)"),
    ],
)
def test_that_a_speedup_has_the_digits_that_its_spread_allows(value: float | None, half: float | None, text: str):
    assert units.speedup(value, half) == text


def test_that_counts_have_spaces_between_thousands():
    assert units.count(4200) == "4\u202f200"
    assert units.count(None) == "–"


def test_that_a_noun_follows_its_number():
    assert units.plural(1, "graph break") == "1 graph break"
    assert units.plural(2, "graph break") == "2 graph breaks"
    assert units.plural(0, "match", "matches") == "0 matches"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123, "0.0123"),
        (0.0999999, "0.100"),
        (0.99999, "1.00"),
        (9.999, "10.0"),
        (1234, "1230"),
        (-2.5, "-2.50"),
    ],
)
def test_that_numbers_keep_three_digits_and_no_exponent(value: float, text: str):
    assert units.significant(value) == text


def test_that_a_range_of_times_names_its_unit_once_where_both_ends_share_it() -> None:
    assert units.duration_range([0.0246, 0.0358, 0.03]) == "24.6–35.8 ms"
    assert units.duration_range([0.5e-3, 1.5e-3]) == "500 µs – 1.50 ms"
    assert units.duration_range([0.02461, 0.02462]) == "24.6 ms"
    assert units.duration_range([]) == "–"
