"""Text set in lines of a given width."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QTextLayout, QTextOption

_UNBOUNDED = 100_000.0


class TextBox:
    """A paragraph broken into lines. Words longer than a line are broken too, so that nothing is ever cut off."""

    def __init__(
        self,
        text: str,
        font: QFont,
        width: float | None = None,
        *,
        right: bool = False,
        spacing: float = 1.0,
    ) -> None:
        self._layout = QTextLayout(_plain(text), font)
        self._layout.setTextOption(_option(right))
        self._set(width if width is not None else _UNBOUNDED, spacing)

    def _set(self, width: float, spacing: float) -> None:
        self.tops: list[float] = []
        self.heights: list[float] = []
        self.width = 0.0
        y = 0.0
        self._layout.beginLayout()
        while True:
            line = self._layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(width)
            line.setPosition(QPointF(0.0, y))
            height = line.height() * spacing
            self.tops.append(y)
            self.heights.append(height)
            self.width = max(self.width, line.naturalTextWidth())
            y += height
        self._layout.endLayout()
        self.height = y

    @property
    def line_count(self) -> int:
        return len(self.tops)

    def draw(self, painter: QPainter, x: float, y: float, color: str) -> None:
        painter.setPen(_pen(color))
        self._layout.draw(painter, QPointF(x, y))

    def draw_line(self, painter: QPainter, index: int, x: float, y: float, color: str) -> None:
        """Draw one line with its top at `y`."""
        painter.setPen(_pen(color))
        self._layout.lineAt(index).draw(painter, QPointF(x, y - self.tops[index]))

    def lines(self) -> Iterator[tuple[int, float]]:
        """Each line's number and height."""
        yield from enumerate(self.heights)


@cache
def _option(right: bool) -> QTextOption:
    option = QTextOption()
    option.setUseDesignMetrics(True)
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft)
    # figures and code keep their direction whatever stands beside them
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    return option


@cache
def _pen(color: str) -> QPen:
    return QPen(QColor(color))


def _plain(text: str) -> str:
    """Text that sets as it reads: line ends as such, control characters as the sign for what cannot be shown."""
    if text.isprintable():
        return text
    clean = text.replace("\r\n", "\n").replace("\n", "\u2028").replace("\t", "    ")
    return "".join(c if c >= " " and c != "\x7f" else "\N{REPLACEMENT CHARACTER}" for c in clean)
