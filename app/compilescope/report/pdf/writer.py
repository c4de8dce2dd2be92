"""Pages of a report, written as a PDF."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QHashSeed, QIODevice, QMarginsF, QRectF, Qt, QUuid
from PySide6.QtGui import QColor, QGuiApplication, QPageLayout, QPageSize, QPainter, QPdfWriter

from compilescope.domain.comparison import Comparison
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.faults import fault
from compilescope.domain.workload import Measurement
from compilescope.report.blocks import Block, Bullets, Document, Section
from compilescope.report.document import build_document
from compilescope.report.pdf import look
from compilescope.report.pdf.characters import with_readable_text
from compilescope.report.pdf.flow import Page, Piece, Placed, paginate
from compilescope.report.pdf.look import Fonts
from compilescope.report.pdf.outline import Bookmark, Link, with_outline
from compilescope.report.pdf.text import TextBox
from compilescope.report.pdf.typeset import Typesetter

PAGES = {"A4": QPageSize.PageSizeId.A4, "Letter": QPageSize.PageSizeId.Letter}
SIDE = 56.0
TOP = 62.0
BOTTOM = 58.0
AUTHOR = "CompileScope"

_own_application: QGuiApplication | None = None
# one report at a time: the hash seed is the process's, and Qt has crashed where two threads painted PDFs at once
_writing = threading.Lock()


def write_pdf(
    comparison: Comparison,
    path: str | Path,
    page: str = "A4",
    *,
    source: str | None = None,
    measurement: Measurement | None = None,
) -> None:
    """Write the report of a comparison. `page`: one of PAGES.

    `source` is the script's text as it was when it ran, `measurement` how long was measured. Needs no display; any
    thread may call it once a QGuiApplication exists, and the main thread also before.
    """
    if page not in PAGES:
        raise UsageError(f"There is no page size {page!r}.", hint=f"Choose one of {', '.join(PAGES)}.")
    if not comparison.runs:
        raise AppError("There is nothing to report: the comparison has no runs.", hint="Run a configuration first.")
    document = build_document(comparison, source=source, measurement=measurement)
    _write(Path(path), pdf_bytes(document, page, name=comparison.id))


def pdf_bytes(document: Document, page: str = "A4", *, name: str = "") -> bytes:
    """The PDF of a document; the same for the same document and name, but for the date in it."""
    _ensure_application()
    with _writing:
        return _Writer(document, page).made(name)


def _ensure_application() -> None:
    """Fonts need a QGuiApplication; where there is none, one that needs no screen."""
    global _own_application
    if QGuiApplication.instance() is None:
        arguments = ["compilescope"]
        if os.name == "posix" and not os.environ.get("QT_QPA_PLATFORM"):
            arguments += ["-platform", "offscreen"]
        _own_application = QGuiApplication(arguments)


class _Writer:
    def __init__(self, document: Document, page: str) -> None:
        self._document = document
        self._size = QPageSize(PAGES[page])
        points = self._size.size(QPageSize.Unit.Point)
        self._width, self._height = points.width(), points.height()
        self._fonts = Fonts()
        self._typesetter = Typesetter(self._fonts, self._width - 2 * SIDE)

    def made(self, name: str) -> bytes:
        pages = paginate(self._pieces(), TOP, self._height - BOTTOM)
        # fonts are written in the order of a hash table, which is another in each process
        QHashSeed.setDeterministicGlobalSeed()
        try:
            content = self._painted(pages, name)
        finally:
            QHashSeed.resetRandomGlobalSeed()
        content = with_readable_text(content)
        return with_outline(content, _bookmarks(pages), self._links(pages), self._height)

    def _pieces(self) -> list[Piece]:
        pieces: list[Piece] = []
        chapter = part = 0
        for index, section in enumerate(self._document.sections):
            chapter, part = (chapter + 1, 0) if section.level == 1 else (chapter, part + 1)
            number = f"{chapter}.{part}" if part else str(chapter)
            pieces += self._typesetter.section(section, number) if index else self._first_page(section, number)
        return pieces

    def _first_page(self, section: Section, number: str) -> list[Piece]:
        width = self._typesetter.width
        kind = TextBox("torch.compile comparison report", self._fonts.small_bold)
        title = TextBox(self._document.title, self._fonts.title, width)
        subtitle = TextBox(self._document.subtitle, self._fonts.lead, width)
        created = TextBox(self._document.created, self._fonts.small, width)

        def draw(painter: QPainter, x: float, y: float) -> None:
            kind.draw(painter, x, y, look.ACCENT)
            at = y + kind.height + 4.0
            for box, color, gap in ((title, look.TEXT, 5.0), (subtitle, look.MUTED, 3.0), (created, look.MUTED, 0.0)):
                box.draw(painter, x, at, color)
                at += box.height + gap
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.ACCENT))
            painter.drawRect(QRectF(x, at + 7.0, width, 1.2))

        height = kind.height + title.height + subtitle.height + created.height + 22.0
        heading = Piece(height=height, draw=draw, keep=True, anchor=section.anchor, section=f"{number} {section.title}")
        return [heading, *self._fitting(section.blocks, height)]

    def _fitting(self, blocks: Sequence[Block], taken: float) -> list[Piece]:
        """The first page in one: of the list that ends it, as much as fits; all of it stands further on as well."""
        room = self._height - BOTTOM - TOP - taken
        pieces = self._typesetter.blocks(blocks)
        while isinstance(last := blocks[-1], Bullets) and len(last.items) > 1:
            if sum(piece.before + piece.height for piece in pieces) <= room:
                break
            blocks = [*blocks[:-1], Bullets(items=last.items[:-1])]
            pieces = self._typesetter.blocks(blocks)
        return pieces

    def _painted(self, pages: Sequence[Page], name: str) -> bytes:
        content = QByteArray()
        buffer = QBuffer(content)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        writer = self._device(buffer, name)
        painter = QPainter(writer)
        try:
            for index, page in enumerate(pages):
                if index:
                    writer.newPage()
                self._draw_page(painter, page, index, len(pages))
        finally:
            painter.end()
        buffer.close()
        return bytes(content.data())

    def _device(self, buffer: QBuffer, name: str) -> QPdfWriter:
        writer = QPdfWriter(buffer)
        # one unit of the painter is one point
        writer.setResolution(72)
        writer.setPageLayout(QPageLayout(self._size, QPageLayout.Orientation.Portrait, QMarginsF(0, 0, 0, 0)))
        writer.setTitle(self._document.title)
        writer.setCreator(self._document.made_with)
        if hasattr(writer, "setAuthor"):
            writer.setAuthor(AUTHOR)
        if hasattr(writer, "setDocumentId"):
            seed = "\n".join((name, self._document.title, self._document.created, self._document.made_with))
            digest = hashlib.sha256(seed.encode()).digest()
            writer.setDocumentId(QUuid(str(uuid.UUID(bytes=digest[:16], version=4))))
        return writer

    def _draw_page(self, painter: QPainter, page: Page, index: int, count: int) -> None:
        for placed in page.placed:
            try:
                self._draw_piece(painter, placed)
            except Exception as error:  # a fault of ours: one chart must not cost the report
                note = TextBox(fault("A part cannot be drawn here", error), self._fonts.small, self._typesetter.width)
                note.draw(painter, SIDE, placed.y, look.TONES["warn"])
        if index:
            self._draw_header(painter, page)
        self._draw_footer(painter, index, count)

    def _draw_piece(self, painter: QPainter, placed: Placed) -> None:
        if placed.scale == 1.0:
            placed.piece.draw(painter, SIDE, placed.y)
            return
        painter.save()
        try:
            painter.translate(SIDE, placed.y)
            painter.scale(placed.scale, placed.scale)
            placed.piece.draw(painter, 0.0, 0.0)
        finally:
            painter.restore()

    def _draw_header(self, painter: QPainter, page: Page) -> None:
        width = self._typesetter.width
        section = TextBox(_short(page.section, 60), self._fonts.tiny)
        title = TextBox(_short(self._document.title, 80), self._fonts.tiny)
        title.draw(painter, SIDE, 34.0, look.MUTED)
        section.draw(painter, SIDE + width - section.width, 34.0, look.MUTED)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.HAIRLINE))
        painter.drawRect(QRectF(SIDE, 47.0, width, 0.5))

    def _draw_footer(self, painter: QPainter, index: int, count: int) -> None:
        y = self._height - 38.0
        made = TextBox(f"{self._document.made_with} · {self._document.created}", self._fonts.tiny)
        made.draw(painter, SIDE, y, look.MUTED)
        number = TextBox(f"{index + 1} / {count}", self._fonts.tiny)
        number.draw(painter, self._width - SIDE - number.width, y, look.MUTED)

    def _links(self, pages: Sequence[Page]) -> list[Link]:
        anchors = {
            placed.piece.anchor: (index, placed.y)
            for index, page in enumerate(pages)
            for placed in page.placed
            if placed.piece.anchor
        }
        return [
            self._link(index, placed, anchors[placed.piece.link])
            for index, page in enumerate(pages)
            for placed in page.placed
            if placed.piece.link in anchors
        ]

    def _link(self, page: int, placed: Placed, target: tuple[int, float]) -> Link:
        box = (SIDE, placed.y, self._width - SIDE, placed.y + placed.piece.height * placed.scale)
        return Link(page=page, box=box, target_page=target[0], target_top=target[1] - 12.0)


def _bookmarks(pages: Sequence[Page]) -> list[Bookmark]:
    return [
        Bookmark(
            title=placed.piece.section,
            level=2 if "." in placed.piece.section.partition(" ")[0] else 1,
            page=index,
            top=placed.y - 12.0,
        )
        for index, page in enumerate(pages)
        for placed in page.placed
        if placed.piece.section
    ]


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _write(path: Path, content: bytes) -> None:
    """The file appears whole or not at all: a viewer may have the old one open. Links and devices stay as they are."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise AppError(
            f"{path} could not be written: {error.strerror or error}.", hint="Choose a folder that you can write to."
        ) from error


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
