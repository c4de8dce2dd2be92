"""Pieces that flow onto pages: what belongs together stays together, and tables repeat their heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from PySide6.QtGui import QPainter

Draw = Callable[[QPainter, float, float], None]


@dataclass(kw_only=True, eq=False)
class Piece:
    """Something that is never split. `before` is the space above it, which falls away at the top of a page.

    `keep`: it must not be the last of its page while something follows. `head`: what stands above it again when it
    begins a page. `link`, `anchor`: where it leads, and its own name for those that lead to it.
    """

    height: float
    draw: Draw
    before: float = 0.0
    keep: bool = False
    starts_page: bool = False
    head: Piece | None = None
    link: str = ""
    anchor: str = ""
    section: str = ""


@dataclass(kw_only=True)
class Placed:
    """A piece at its place on a page; `scale` below 1 where it would not fit on any."""

    piece: Piece
    y: float
    scale: float = 1.0


@dataclass(kw_only=True)
class Page:
    """One page: the pieces on it, and the section that it begins in."""

    section: str = ""
    placed: list[Placed] = field(default_factory=list)


def paginate(pieces: Sequence[Piece], top: float, bottom: float) -> list[Page]:
    """Put pieces on pages, between the heights `top` and `bottom` of each."""
    return _Paginator(top, bottom).run(pieces)


class _Paginator:
    def __init__(self, top: float, bottom: float) -> None:
        self._top = top
        self._bottom = bottom
        self._y = top
        self._section = ""
        self._pages = [Page()]

    def run(self, pieces: Sequence[Piece]) -> list[Page]:
        for cluster in clusters(pieces):
            needed = sum(piece.before + piece.height for piece in cluster)
            if (cluster[0].starts_page and self._pages[-1].placed) or not self._fits(needed):
                self._new_page(cluster[0])
            for piece in cluster:
                if not self._fits(piece.before + piece.height):
                    self._new_page(piece)
                self._place(piece)
        return self._pages

    def _fits(self, needed: float) -> bool:
        at_top = not self._pages[-1].placed
        return at_top or self._y + needed <= self._bottom + 0.01

    def _new_page(self, first: Piece) -> None:
        self._pages.append(Page(section=first.section or self._section))
        self._y = self._top
        if first.head is not None and first.head is not first:
            self._place(first.head)

    def _place(self, piece: Piece) -> None:
        page = self._pages[-1]
        if piece.section:
            self._section = piece.section
            page.section = page.section or piece.section
        if page.placed:
            self._y += piece.before
        room = self._bottom - self._y
        scale = min(1.0, room / piece.height) if piece.height > 0 and room > 0 else 1.0
        page.placed.append(Placed(piece=piece, y=self._y, scale=scale))
        self._y += piece.height * scale


def clusters(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Runs of pieces that stay together: each that is kept with the next, and that next one."""
    current: list[Piece] = []
    for piece in pieces:
        current.append(piece)
        if not piece.keep:
            yield current
            current = []
    if current:
        yield current
