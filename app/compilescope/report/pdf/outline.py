"""Bookmarks, links and the document's language, added to a PDF that Qt wrote.

Qt writes neither an outline nor links within a document. Both are added as the PDF standard's incremental update
(ISO 32000-1, 7.5.6): what Qt wrote stays as it is, new and changed objects and their own cross-reference follow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Bookmark:
    """An entry of the outline; `top` is the distance from the page's top edge, in points."""

    title: str
    level: int
    page: int
    top: float


@dataclass(frozen=True, kw_only=True)
class Link:
    """A rectangle on a page (left, top, right, bottom, from the top left corner) that leads to a place on another."""

    page: int
    box: tuple[float, float, float, float]
    target_page: int
    target_top: float


class UnknownStructureError(Exception):
    """The file is not built as Qt builds its PDFs."""


@dataclass
class _Node:
    bookmark: Bookmark
    number: int
    children: list[_Node] = field(default_factory=list)


def with_outline(pdf: bytes, bookmarks: Sequence[Bookmark], links: Sequence[Link], page_height: float) -> bytes:
    """The same PDF with an outline and links."""
    return _Update(pdf, page_height).made(bookmarks, links)


class _Update:
    def __init__(self, pdf: bytes, page_height: float) -> None:
        self._pdf = pdf
        self._page_height = page_height
        self._objects: dict[int, bytes] = {}
        trailer = _found(rb"trailer\s*<<(.*?)>>\s*startxref\s+(\d+)\s+%%EOF\s*$", pdf, re.DOTALL)
        self._trailer, self._xref = trailer.group(1), int(trailer.group(2))
        self._size = int(_found(rb"/Size\s+(\d+)", self._trailer).group(1))
        self._offsets = self._cross_reference()

    def made(self, bookmarks: Sequence[Bookmark], links: Sequence[Link]) -> bytes:
        root = int(_found(rb"/Root\s+(\d+) 0 R", self._trailer).group(1))
        catalog = self._object(root)
        pages = self._pages(int(_found(rb"/Pages\s+(\d+) 0 R", catalog).group(1)))
        extra = b"/Lang (en)\n/ViewerPreferences << /DisplayDocTitle true >>\n"
        if bookmarks:
            outlines = self._outline(bookmarks, pages)
            extra += b"/Outlines %d 0 R\n/PageMode /UseOutlines\n" % outlines
        self._objects[root] = _with_entries(catalog, extra)
        self._add_links(links, pages)
        return self._written()

    def _cross_reference(self) -> dict[int, int]:
        table = self._pdf[self._xref :]
        head = _found(rb"xref\s+0 (\d+)\s*\n", table)
        rows = table[head.end() : head.end() + 20 * int(head.group(1))]
        return {number: int(rows[20 * number : 20 * number + 10]) for number in range(1, int(head.group(1)))}

    def _object(self, number: int) -> bytes:
        start = self._offsets[number]
        return _found(rb"\d+ 0 obj\s*(.*?)\s*endobj", self._pdf[start : start + 100_000], re.DOTALL).group(1)

    def _pages(self, tree: int) -> list[int]:
        kids = _found(rb"/Kids\s*\[(.*?)\]", self._object(tree), re.DOTALL).group(1)
        return [int(number) for number in re.findall(rb"(\d+) 0 R", kids)]

    def _new_number(self) -> int:
        number = self._size
        self._size += 1
        return number

    def _outline(self, bookmarks: Sequence[Bookmark], pages: Sequence[int]) -> int:
        root = self._new_number()
        top: list[_Node] = []
        for bookmark in bookmarks:
            node = _Node(bookmark, self._new_number())
            (top[-1].children if bookmark.level > 1 and top else top).append(node)
        self._add_nodes(top, root, pages)
        count = len(top)
        self._objects[root] = b"<< /Type /Outlines /First %d 0 R /Last %d 0 R /Count %d >>" % (
            top[0].number,
            top[-1].number,
            count,
        )
        return root

    def _add_nodes(self, nodes: Sequence[_Node], parent: int, pages: Sequence[int]) -> None:
        for index, node in enumerate(nodes):
            parts = [
                b"/Title " + _text(node.bookmark.title),
                b"/Parent %d 0 R" % parent,
                b"/Dest " + self._destination(pages[node.bookmark.page], node.bookmark.top),
            ]
            parts += [b"/Prev %d 0 R" % nodes[index - 1].number] if index else []
            parts += [b"/Next %d 0 R" % nodes[index + 1].number] if index + 1 < len(nodes) else []
            if node.children:
                self._add_nodes(node.children, node.number, pages)
                # a negative count: the entries below are there and closed
                ends = (node.children[0].number, node.children[-1].number, -len(node.children))
                parts.append(b"/First %d 0 R /Last %d 0 R /Count %d" % ends)
            self._objects[node.number] = b"<< " + b" ".join(parts) + b" >>"

    def _destination(self, page: int, top: float) -> bytes:
        return b"[%d 0 R /XYZ 0 %.1f 0]" % (page, self._page_height - top)

    def _add_links(self, links: Sequence[Link], pages: Sequence[int]) -> None:
        by_page: dict[int, list[int]] = {}
        for link in links:
            number = self._new_number()
            self._objects[number] = self._annotation(link, pages)
            by_page.setdefault(link.page, []).append(number)
        for page, numbers in by_page.items():
            body = self._object(pages[page])
            annotations = b"/Annots [" + b" ".join(b"%d 0 R" % number for number in numbers) + b"]"
            without = re.sub(rb"/Annots\s+\d+ 0 R", b"", body)
            self._objects[pages[page]] = _with_entries(without, annotations + b"\n")

    def _annotation(self, link: Link, pages: Sequence[int]) -> bytes:
        left, top, right, bottom = link.box
        box = b"[%.1f %.1f %.1f %.1f]" % (left, self._page_height - bottom, right, self._page_height - top)
        destination = self._destination(pages[link.target_page], link.target_top)
        return b"<< /Type /Annot /Subtype /Link /Border [0 0 0] /Rect %s /Dest %s >>" % (box, destination)

    def _written(self) -> bytes:
        out = bytearray(self._pdf)
        offsets = {}
        for number in sorted(self._objects):
            offsets[number] = len(out)
            out += b"%d 0 obj\n%s\nendobj\n" % (number, self._objects[number])
        start = len(out)
        out += b"xref\n0 1\n0000000000 65535 f \n"
        for number in sorted(offsets):
            out += b"%d 1\n%010d 00000 n \n" % (number, offsets[number])
        trailer = re.sub(rb"/Size\s+\d+", b"/Size %d" % self._size, self._trailer).strip()
        out += b"trailer\n<<\n%s\n/Prev %d\n>>\nstartxref\n%d\n%%%%EOF\n" % (trailer, self._xref, start)
        return bytes(out)


def _with_entries(dictionary: bytes, entries: bytes) -> bytes:
    end = dictionary.rindex(b">>")
    return dictionary[:end] + b"\n" + entries + dictionary[end:]


def _text(text: str) -> bytes:
    """A text string: UTF-16 with its byte order mark, in hexadecimal digits."""
    return b"<FEFF" + text.encode("utf-16-be").hex().upper().encode() + b">"


def _found(pattern: bytes, where: bytes, flags: int = 0) -> re.Match[bytes]:
    found = re.search(pattern, where, flags)
    if found is None:
        raise UnknownStructureError(pattern.decode("ascii", "replace"))
    return found
