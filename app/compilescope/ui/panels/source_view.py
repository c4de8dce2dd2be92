"""A file's text with line numbers, syntax colours and marked lines. Read only."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from compilescope.ui.highlighter import PythonHighlighter
from compilescope.ui.theme import Theme

LARGEST_BYTES = 2_000_000
MARK = 5


class SourceView(QPlainTextEdit):
    """Shows one file at a time and reads it anew when it has changed on disk."""

    def __init__(self, theme: Theme, name: str = "Source", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._path: Path | None = None
        self._stamp = 0
        self._marks: Mapping[int, str] = {}
        self._current: int | None = None
        self.setObjectName("code")
        self.setAccessibleName(name)
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.mono())
        self._gutter = _Gutter(self)
        self._highlighter = PythonHighlighter(self.document(), theme)
        self.blockCountChanged.connect(self._fit_gutter)
        self.updateRequest.connect(self._move_gutter)
        theme.changed.connect(self._restyle)
        self._fit_gutter()

    @property
    def path(self) -> Path | None:
        return self._path

    @property
    def current_line(self) -> int | None:
        return self._current

    def show_file(self, path: Path | None, text_then: str | None = None) -> None:
        """Show a file, or a sentence where it cannot be read. `text_then`: what it held when it ran, instead."""
        stamp = _stamp(path) if text_then is None else hash(text_then)
        if path == self._path and stamp == self._stamp:
            return
        self._path, self._stamp, self._current, self._marks = path, stamp, None, {}
        text, is_source = _text(path) if text_then is None else (text_then, True)
        self._highlighter.set_source(text if is_source else "")
        self.setPlainText(text)
        self._mark_lines()

    def mark(self, lines: Mapping[int, str]) -> None:
        """Mark lines; the value is the colour token."""
        if lines != self._marks:
            self._marks = dict(lines)
            self._mark_lines()

    def go_to(self, line: int | None) -> None:
        """Scroll to a line, counted from 1, and show it as the current one."""
        self._current = line
        if line:
            block = self.document().findBlockByNumber(line - 1)
            if block.isValid():
                self.setTextCursor(QTextCursor(block))
                self.centerCursor()
        self._mark_lines()

    @property
    def gutter_width(self) -> int:
        digits = max(len(str(self.blockCount())), 3)
        return self.fontMetrics().horizontalAdvance("0") * digits + 26

    def paint_gutter(self, painter: QPainter, area: QRect) -> None:
        tokens = self._theme.tokens
        painter.fillRect(area, QColor(tokens.panel))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= area.bottom():
            height = self.blockBoundingRect(block).height()
            number = block.blockNumber() + 1
            is_current = number == self._current
            painter.setPen(QColor(tokens.text if is_current or number in self._marks else tokens.faint))
            place = QRect(0, round(top), self._gutter.width() - 9, round(height))
            painter.drawText(place, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), str(number))
            if number in self._marks:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(getattr(tokens, self._marks[number])))
                painter.drawEllipse(QRect(6, round(top + height / 2 - MARK / 2 - 1), MARK + 2, MARK + 2))
            top += height
            block = block.next()

    def _mark_lines(self) -> None:
        tokens = self._theme.tokens
        fills = {"warn": tokens.warn_fill, "bad": tokens.bad_fill, "good": tokens.good_fill}
        marked = [(line, fills.get(token, tokens.accent_fill)) for line, token in self._marks.items()]
        if self._current and self._current not in self._marks:
            marked.append((self._current, tokens.accent_fill))
        self.setExtraSelections([selection for line, fill in marked if (selection := self._line(line, fill))])
        self._gutter.update()

    def _line(self, number: int, fill: str) -> QTextEdit.ExtraSelection | None:
        block = self.document().findBlockByNumber(number - 1)
        if not block.isValid():
            return None
        selection = QTextEdit.ExtraSelection()
        form = QTextCharFormat()
        form.setBackground(QColor(fill))
        form.setProperty(QTextFormat.Property.FullWidthSelection, True)
        selection.format = form
        selection.cursor = QTextCursor(block)
        return selection

    def _fit_gutter(self) -> None:
        self.setViewportMargins(self.gutter_width, 0, 0, 0)

    def _move_gutter(self, area: QRect, dy: int) -> None:
        if dy:
            self._gutter.scroll(0, dy)
        else:
            self._gutter.update(0, area.y(), self._gutter.width(), area.height())

    def _restyle(self) -> None:
        self.setFont(self._theme.mono())
        self._highlighter.restyle()
        self._mark_lines()

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._gutter.setGeometry(QRect(inside.left(), inside.top(), self.gutter_width, inside.height()))


class _Gutter(QWidget):
    """Line numbers and marks."""

    def __init__(self, view: SourceView) -> None:
        super().__init__(view)
        self._view = view

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(self._view.gutter_width, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._view.paint_gutter(painter, event.rect())
        painter.end()


def _stamp(path: Path | None) -> int:
    try:
        return path.stat().st_mtime_ns if path else 0
    except OSError:
        return 0


def _text(path: Path | None) -> tuple[str, bool]:
    """The text, and whether it is the file's own."""
    if path is None:
        return "", False
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return f"{path} is too large to be shown here.", False
        raw = path.read_bytes()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}.", False
    if b"\0" in raw:
        return f"{path.name} holds binary data, and no text to show.", False
    try:
        # a script may name its encoding in its first lines
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding).replace("\r\n", "\n"), True
    except (SyntaxError, UnicodeDecodeError):
        return f"{path.name} is no text in the encoding that Python expects of it (UTF-8, unless it says else).", False
