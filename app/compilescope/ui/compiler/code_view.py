"""A long text, coloured where it can be seen, with search in it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPaintEvent, QTextCharFormat, QTextCursor, QTextLayout
from PySide6.QtWidgets import QWidget

from compilescope.ui.highlighter import spans
from compilescope.ui.panels.source_view import SourceView
from compilescope.ui.theme import Theme

FIRST_LINES = 2_000
MORE_LINES = 3_000
_COLORED = 1


class CodeView(SourceView):
    """Shows a text of any length: what is far below is added bit by bit, and only visible lines are lexed."""

    find_wanted = Signal()
    loaded = Signal()  # the last line is there

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, name, parent)
        self._colors = theme
        # it would go through the whole text on every change
        self._highlighter.setDocument(None)
        self.text = ""
        self._lines: list[str] = []
        self._added = 0
        self._more = QTimer(self)
        self._more.setInterval(0)
        self._more.timeout.connect(self._add_lines)
        self._lowered = ""
        # colours change the layout, which must not happen while it is painted
        self._coloring = QTimer(self)
        self._coloring.setSingleShot(True)
        self._coloring.setInterval(0)
        self._coloring.timeout.connect(self._color_visible)
        theme.changed.connect(self._forget_colors)

    def show_text(self, text: str) -> None:
        """Show a text from its beginning."""
        self._more.stop()
        self.text, self._lowered = text, ""
        self._lines = text.split("\n")
        self._added = min(len(self._lines), FIRST_LINES)
        self.setPlainText("\n".join(self._lines[: self._added]))
        self.go_to(None)
        if self._added < len(self._lines):
            self._more.start()
        else:
            self.loaded.emit()

    @property
    def is_loaded(self) -> bool:
        return self._added >= len(self._lines)

    def find_text(self, wanted: str, *, backward: bool = False, here: bool = False) -> tuple[int, int]:
        """Select the next place that holds `wanted`, in any case. Which one of how many; (0, 0) where there is none.

        `here`: the place at the cursor counts too, as while the word is being typed.
        """
        places = self._places(wanted)
        if not places:
            cursor = self.textCursor()
            cursor.clearSelection()
            self.setTextCursor(cursor)
            return 0, 0
        cursor = self.textCursor()
        at = self._offset(cursor.selectionStart())
        if backward:
            index = next((i for i in range(len(places) - 1, -1, -1) if places[i] < at), len(places) - 1)
        else:
            index = next((i for i, place in enumerate(places) if place >= at + (not here)), 0)
        self._select(places[index], len(wanted))
        return index + 1, len(places)

    def _places(self, wanted: str) -> list[int]:
        if not wanted:
            return []
        self._lowered = self._lowered or self.text.lower()
        places: list[int] = []
        at = self._lowered.find(wanted.lower())
        while at >= 0 and len(places) < 100_000:
            places.append(at)
            at = self._lowered.find(wanted.lower(), at + 1)
        return places

    def _select(self, start: int, length: int) -> None:
        line = self.text.count("\n", 0, start)
        while self._added <= line:
            self._add_lines()
        column = start - (self.text.rfind("\n", 0, start) + 1)
        block = self.document().findBlockByNumber(line)
        cursor = QTextCursor(self.document())
        cursor.setPosition(block.position() + _units(self._lines[line][:column]))
        width = _units(self.text[start : start + length])
        cursor.setPosition(cursor.position() + width, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        self.centerCursor()

    def _offset(self, position: int) -> int:
        """The place in the text of a position in the document, which counts in UTF-16 units."""
        block = self.document().findBlock(position)
        line = block.blockNumber()
        before = sum(len(text) + 1 for text in self._lines[:line])
        return before + len(block.text().encode("utf-16-le")[: 2 * (position - block.position())].decode("utf-16-le"))

    def _add_lines(self) -> None:
        until = min(self._added + MORE_LINES, len(self._lines))
        if until > self._added:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText("\n" + "\n".join(self._lines[self._added : until]))
            self._added = until
        if self.is_loaded:
            self._more.stop()
            self.loaded.emit()

    def _color_visible(self) -> None:
        """Lex what is on screen. A line alone is enough, and never takes a string's end for its beginning."""
        block, bottom = self.firstVisibleBlock(), self.viewport().height()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= bottom:
            if block.userState() != _COLORED:
                block.setUserState(_COLORED)
                formats = [self._format(*span) for span in spans(block.text())[0]] if block.text() else []
                block.layout().setFormats(formats)
            top += self.blockBoundingRect(block).height()
            block = block.next()

    def _format(self, start: int, length: int, token: str) -> QTextLayout.FormatRange:
        found = QTextLayout.FormatRange()
        found.start, found.length = start, length
        form = QTextCharFormat()
        form.setForeground(QColor(getattr(self._colors.tokens, token)))
        found.format = form
        return found

    def _forget_colors(self) -> None:
        block = self.document().begin()
        while block.isValid():
            block.setUserState(-1)
            block = block.next()
        self.viewport().update()

    # Qt overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self._coloring.start()

    def event(self, event: QEvent) -> bool:
        # the window's own Ctrl+F searches the log; with the keyboard in here it is this text that is meant
        if event.type() is QEvent.Type.ShortcutOverride and _is_find(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Find):
            self.find_wanted.emit()
            return
        super().keyPressEvent(event)


def _is_find(event: QEvent) -> bool:
    return isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Find)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
