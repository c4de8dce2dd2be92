"""A run that did not finish: one sentence, one hint, and the traceback when asked for."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from compilescope.domain.run import Run
from compilescope.domain.standing import standing
from compilescope.ui.answer import fault
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import button, label

# what the app itself calls an end that the script did not raise: the message says it better
OWN_NAMES = {"SetupError", "InternalError", "Failure", "Timeout", "NoStart", "EarlyExit", "NothingToRun"}


class FailureView(QWidget):
    """Shows one run's error."""

    line_wanted = Signal(str, int)  # file, line

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._key: tuple[object, ...] = ()
        self._what = "traceback"
        self._place: tuple[str, int] | None = None
        self._build()
        theme.changed.connect(self._restyle)

    def show_run(self, run: Run) -> None:
        error, ended = run.error, run.ended
        key = (run.id, run.outcome, error)
        if key == self._key:
            return
        self._key = key
        self._title.setText(f"{run.label}: {standing(run, None)}")
        message = error.message if error else ""
        name = error.type if error and error.type not in OWN_NAMES else ""
        self._message.setText(f"{name}: {message}" if name and not message.startswith(name) else message)
        self._message.setVisible(bool(message))
        hints = [fault(error), error.hint] if error else []
        self._hint.setText("\n".join(text for text in hints if text))
        self._hint.setVisible(any(hints))
        self._place = (error.file, error.line) if error and error.file and error.line else None
        self._go.setVisible(self._place is not None)
        self._go.setText(f"Go to line {error.line}" if error else "")
        details = (error.traceback if error else "") or "\n".join(ended.last_lines if ended else ())
        self._details.setPlainText(details)
        self._what = "traceback" if error and error.traceback else "last lines"
        self._toggle.setText(f"Show {self._what}")
        self._toggle.setVisible(bool(details))
        self._copy.setVisible(bool(details))
        self._toggle.setChecked(False)

    def _build(self) -> None:
        self._title = label("", "heading")
        self._message = label("", "bad", wrap=True)
        self._hint = label("", "", wrap=True)
        for part in (self._message, self._hint):
            part.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._go = button("Go to line")
        self._go.clicked.connect(self._go_to_line)
        self._toggle = button("Show traceback")
        self._toggle.setObjectName("show_traceback")
        self._toggle.setCheckable(True)
        self._toggle.toggled.connect(self._show_details)
        self._copy = button("Copy")
        self._copy.setAccessibleName("Copy traceback")
        self._copy.clicked.connect(self._copy_details)
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setTabChangesFocus(True)
        self._details.setAccessibleName("Traceback")
        self._details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._details.setFont(self._theme.mono())
        self._details.hide()
        buttons = QHBoxLayout()
        buttons.addWidget(self._go)
        buttons.addWidget(self._toggle)
        buttons.addWidget(self._copy)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 12)
        layout.setSpacing(8)
        for part in (self._title, self._message, self._hint):
            layout.addWidget(part)
        layout.addLayout(buttons)
        layout.addWidget(self._details, 1)
        layout.addStretch(0)
        layout.setAlignment(Qt.AlignmentFlag.AlignTop)

    def _show_details(self, is_shown: bool) -> None:
        self._details.setVisible(is_shown)
        self._toggle.setText(f"{'Hide' if is_shown else 'Show'} {self._what}")

    def _go_to_line(self) -> None:
        if self._place:
            self.line_wanted.emit(*self._place)

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(self._details.toPlainText())

    def _restyle(self) -> None:
        self._details.setFont(self._theme.mono())
