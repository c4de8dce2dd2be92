"""The card at the top of the centre: what will run, what is running, and then the answer."""

from __future__ import annotations

import time

from PySide6.QtCore import QMargins, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from compilescope.domain import units
from compilescope.ui.answer import Answer, answer
from compilescope.ui.findings import Findings
from compilescope.ui.icons import icon
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import ElidedLabel, Paragraph, button, label, plain_tip, set_role

TEXT_LINES = 3
WORDS_APART = 3
MARGINS = QMargins(14, 9, 12, 7)
# the height of a window in which every line counts
LOW = 720
CLOCK_MS = 1000


class AnswerCard(QFrame):
    """As high as its text; while something runs it only grows, so that nothing below it jumps."""

    run_wanted = Signal()
    stop_wanted = Signal()
    copied = Signal(str)

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._findings = findings
        self._theme = theme
        self._began = time.monotonic()
        self.setObjectName("answer")
        self._lines = 0
        self._build()
        self._clock = QTimer(self)
        self._clock.setInterval(CLOCK_MS)
        self._clock.timeout.connect(self.refresh)
        for signal in (
            state.script_changed,
            state.selection_changed,
            state.comparison_changed,
            findings.recommended,
        ):
            signal.connect(self.refresh)
        findings.changed.connect(self.refresh)
        state.activity_changed.connect(self._follow_activity)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.refresh()

    @property
    def answer(self) -> Answer:
        return self._answer

    def refresh(self) -> None:
        self._answer = answer(self._state, self._findings)
        shown = self._answer
        set_role(self, "tone", shown.tone)
        self._title.setText(shown.title)
        self._text.setText(shown.text)
        self._text.setToolTip(plain_tip("\n".join((shown.title, shown.text))))
        self._snippet.setText(shown.snippet)
        self._actions.setVisible(bool(shown.action))
        if shown.action:
            self._actions.setCurrentIndex({"run": 0, "stop": 1, "snippet": 2}[shown.action])
        self._run.setEnabled(shown.can_run)
        if self._state.is_stopping:
            self._stop.setText("Stopping…")
        else:
            self._stop.setText("Stop  Esc")
        self._elapsed.setText(units.clock(time.monotonic() - self._began) if self._state.is_busy else "")
        self.setAccessibleName(f"{shown.title} {shown.text}")
        self.fit_height()

    def fit_height(self) -> None:
        """Whole lines only, and not too many: what does not fit is in the tooltip."""
        spacing = self._text.fontMetrics().lineSpacing()
        most = TEXT_LINES if self.window().height() >= LOW else TEXT_LINES - 1
        lines = min(self._text.needed_lines, most)
        width = self._snippet.fontMetrics().horizontalAdvance(self._answer.snippet) + 26
        self._snippet.setMinimumWidth(min(width, 380, max(self.width() * 2 // 5, 120)))
        if self._state.is_busy:
            lines = max(lines, self._lines)
        words = self._title.sizeHint().height() + WORDS_APART + lines * spacing
        beside = self._actions.currentWidget() if self._answer.action else None
        # the style's border is known only once the card has been styled
        frame = self.contentsMargins() + MARGINS
        height = max(words, beside.sizeHint().height() if beside else 0) + frame.top() + frame.bottom()
        if lines != self._lines:
            self._lines = lines
            self._text.setFixedHeight(lines * spacing)
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def _follow_activity(self) -> None:
        if self._state.is_busy and not self._clock.isActive():
            self._began = time.monotonic()
            self._clock.start()
        elif not self._state.is_busy:
            self._clock.stop()
        self.refresh()

    def _build(self) -> None:
        self._title = ElidedLabel("", "heading")
        font = self._title.font()
        font.setPointSizeF(font.pointSizeF() + 2.5)
        font.setBold(True)
        self._title.setFont(font)
        self._text = Paragraph("", "muted")
        self._text.width_changed.connect(self.fit_height)
        self._actions = QStackedWidget()
        for page in (self._run_page(), self._stop_page(), self._snippet_page()):
            self._actions.addWidget(page)
        self._actions.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        words = QVBoxLayout()
        words.setSpacing(WORDS_APART)
        words.addWidget(self._title)
        words.addWidget(self._text)
        words.addStretch(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(MARGINS)
        layout.setSpacing(14)
        layout.addLayout(words, 1)
        layout.addWidget(self._actions)

    def _run_page(self) -> QWidget:
        self._run = button("Run comparison", "primary")
        self._run.setObjectName("run_button")
        self._run.clicked.connect(self.run_wanted)
        return _page(self._run)

    def _stop_page(self) -> QWidget:
        self._stop = button("Stop  Esc")
        self._stop.setObjectName("stop_button")
        self._stop.clicked.connect(self.stop_wanted)
        self._elapsed = label("", "muted")
        self._elapsed.setAlignment(Qt.AlignmentFlag.AlignCenter)
        return _page(self._stop, self._elapsed)

    def _snippet_page(self) -> QWidget:
        self._snippet = ElidedLabel("")
        self._snippet.setObjectName("snippet")
        self._snippet.setMinimumHeight(28)
        self._copy = QPushButton("Copy")
        self._copy.setObjectName("copy_snippet")
        self._copy.setAccessibleName("Copy the line of code")
        self._copy.clicked.connect(self._copy_snippet)
        row = QHBoxLayout()
        row.addWidget(self._snippet, 1)
        row.addWidget(self._copy)
        row.setContentsMargins(0, 0, 0, 0)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addStretch(1)
        layout.addLayout(row)
        layout.addStretch(1)
        return page

    def _copy_snippet(self) -> None:
        QGuiApplication.clipboard().setText(self._answer.snippet)
        self.copied.emit("The line of code is on the clipboard.")

    def _restyle(self) -> None:
        self._snippet.setFont(self._theme.mono())
        self._copy.setIcon(icon("copy", self._theme.tokens.text))
        self._run.setIcon(icon("run", self._theme.tokens.on_accent, self._theme.tokens.faint))
        self._stop.setIcon(icon("stop", self._theme.tokens.bad))


def _page(*parts: QWidget) -> QWidget:
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(3)
    layout.addStretch(1)
    for part in parts:
        layout.addWidget(part)
    layout.addStretch(1)
    return page
