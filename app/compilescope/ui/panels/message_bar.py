"""One line across the window for what went wrong; it never takes the keyboard and never blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from compilescope.ui.icons import icon
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import button, label, set_role

# what a button says, and what it does
Answer = tuple[str, Callable[[], None]]


class MessageBar(QFrame):
    """Hidden while there is nothing to say. The latest message stands until it is closed or answered by another."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._details = ""
        self._act: Callable[[], None] | None = None
        self._other_act: Callable[[], None] | None = None
        self.setObjectName("message_bar")
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text() if not self.isHidden() else ""

    def show_error(self, message: str, hint: str = "") -> None:
        self._show("bad", message, hint, "")

    def show_details(self, message: str, details: str) -> None:
        """An error whose long text can be copied."""
        self._show("bad", message, "", details)

    def show_info(self, message: str) -> None:
        self._show("info", message, "", "")

    def ask(self, question: str, answer: str, act: Callable[[], None]) -> None:
        """A question; `answer` is what the button says that does it. Closing the bar means no."""
        self._show("warn", question, "", "")
        self._act = act
        self._yes.setText(answer)
        self._yes.show()

    def offer(self, message: str, answers: Sequence[Answer]) -> None:
        """Something that can be answered by one of two buttons at most, or not at all."""
        self.ask(message, *answers[0])
        set_role(self, "tone", "info")
        for text, act in answers[1:2]:
            self._other_act = act
            self._no.setText(text)
            self._no.show()

    def _answer_otherwise(self) -> None:
        act, self._other_act = self._other_act, None
        self.hide()
        if act is not None:
            act()

    def _answer(self) -> None:
        act, self._act = self._act, None
        self.hide()
        if act is not None:
            act()

    def _show(self, tone: str, message: str, hint: str, details: str) -> None:
        self._details = details
        self._act = self._other_act = None
        self._yes.hide()
        self._no.hide()
        self._text.setText(message)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self._copy.setVisible(bool(details))
        set_role(self, "tone", tone)
        self.setAccessibleName(f"{message} {hint}".strip())
        self.show()

    def _build(self) -> None:
        self._text = label("", "heading", wrap=True)
        self._hint = label("", "muted", wrap=True)
        for part in (self._text, self._hint):
            part.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._copy = button("Copy details")
        self._copy.clicked.connect(self._copy_details)
        self._yes = button("Yes")
        self._yes.setObjectName("message_yes")
        self._yes.clicked.connect(self._answer)
        self._no = button("Dismiss")
        self._no.setObjectName("message_no")
        self._no.clicked.connect(self._answer_otherwise)
        self._close = QToolButton()
        self._close.setAccessibleName("Close message")
        self._close.setToolTip("Close")
        self._close.clicked.connect(self.hide)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self._text)
        words.addWidget(self._hint)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 7, 8, 7)
        layout.addLayout(words, 1)
        layout.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._yes, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._no, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._text.text()}\n\n{self._details}")

    def _restyle(self) -> None:
        self._close.setIcon(icon("close", self._theme.tokens.muted))
