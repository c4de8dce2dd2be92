"""Where pages break."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QPainter

from compilescope.report.pdf.flow import Page, Piece, paginate


def nothing(painter: QPainter, x: float, y: float) -> None:
    """Draws nothing."""


def piece(height: float, *, keep: bool = False, head: Piece | None = None, starts_page: bool = False) -> Piece:
    return Piece(height=height, draw=nothing, keep=keep, head=head, starts_page=starts_page)


def heights(pages: Sequence[Page]) -> list[list[float]]:
    return [[placed.piece.height for placed in page.placed] for page in pages]


def test_that_pieces_fill_a_page_before_the_next_begins() -> None:
    pages = paginate([piece(40), piece(40), piece(30)], top=0, bottom=100)

    assert heights(pages) == [[40, 40], [30]]


def test_that_a_heading_is_never_the_last_on_its_page() -> None:
    pages = paginate([piece(80), piece(10, keep=True), piece(20)], top=0, bottom=100)

    assert heights(pages) == [[80], [10, 20]]


def test_that_a_table_repeats_its_head() -> None:
    head = piece(5, keep=True)
    rows = [piece(30, head=head) for _ in range(5)]

    pages = paginate([head, *rows], top=0, bottom=100)

    assert heights(pages) == [[5, 30, 30, 30], [5, 30, 30]]


def test_that_what_is_kept_together_and_longer_than_a_page_still_breaks() -> None:
    pages = paginate([piece(40, keep=True) for _ in range(4)], top=0, bottom=100)

    assert heights(pages) == [[40, 40], [40, 40]]


def test_that_a_piece_taller_than_a_page_is_made_smaller() -> None:
    pages = paginate([piece(10), piece(200)], top=0, bottom=100)

    assert heights(pages) == [[10], [200]]
    assert pages[1].placed[0].scale == 0.5


def test_that_a_chapter_starts_a_page_and_leaves_none_empty() -> None:
    pages = paginate([piece(10, starts_page=True), piece(10, starts_page=True)], top=0, bottom=100)

    assert heights(pages) == [[10], [10]]
