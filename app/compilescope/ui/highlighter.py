"""Syntax colours for Python, by Pygments."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtGui import QColor, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from compilescope.ui.theme import Theme

_TOKENS = {
    "Keyword": "syntax_keyword",
    "Operator.Word": "syntax_keyword",
    "Name.Function": "syntax_name",
    "Name.Class": "syntax_name",
    "Name.Decorator": "syntax_name",
    "Name.Builtin": "syntax_name",
    "Literal.String": "syntax_string",
    "Literal.Number": "syntax_number",
    "Comment": "syntax_comment",
}


class Span(NamedTuple):
    """Characters of one line that share a colour token."""

    start: int
    length: int
    token: str


class PythonHighlighter(QSyntaxHighlighter):
    """Lexes a file once, as a whole, and colours lines from the result."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._theme = theme
        self._lines: list[list[Span]] = []

    def set_source(self, source: str) -> None:
        """Lex the text that is about to be shown."""
        self._lines = spans(source) if source else []

    def restyle(self) -> None:
        self.rehighlight()

    # Qt overrides

    def highlightBlock(self, text: str) -> None:
        number = self.currentBlock().blockNumber()
        if number >= len(self._lines) or not text:
            return
        for span in self._lines[number]:
            form = QTextCharFormat()
            form.setForeground(QColor(getattr(self._theme.tokens, span.token)))
            self.setFormat(span.start, span.length, form)


def spans(source: str) -> list[list[Span]]:
    """The coloured spans of every line."""
    # some 30 ms to import, wanted only once a source is shown
    from pygments.lexers.python import PythonLexer

    lines: list[list[Span]] = [[]]
    column = 0
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        token = _color(str(kind).removeprefix("Token."))
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
                column = 0
            # Qt counts UTF-16 units
            length = len(part.encode("utf-16-le")) // 2
            if token and length:
                lines[-1].append(Span(column, length, token))
            column += length
    return lines


def _color(kind: str) -> str:
    while kind:
        if kind in _TOKENS:
            return _TOKENS[kind]
        kind = kind.rpartition(".")[0]
    return ""
