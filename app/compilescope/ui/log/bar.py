"""The row above the log: search, level, count, and what can be done with the lines."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLabel, QLineEdit, QSizePolicy, QToolButton, QWidget

from compilescope.domain.errors import UsageError
from compilescope.domain.log import Level
from compilescope.domain.log_search import LogFilter

TYPING_MS = 120
LEVELS = (
    ("All levels", Level.DEBUG),
    ("Without debug", Level.OUTPUT),
    ("Warnings and errors", Level.WARNING),
    ("Errors only", Level.ERROR),
)


class CountLabel(QWidget):
    """A text that changes ten times a second: unlike QLabel it has the window laid out anew only to grow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ""
        self._width = 0
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str) -> None:
        if text == self.text:
            return
        self.text = text
        self.setAccessibleName(text)
        needed = self.fontMetrics().horizontalAdvance(text)
        if needed > self._width:
            # some room to grow in
            self._width = needed + 24
            self.updateGeometry()
        self.update()

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(self._width, self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        shown = painter.fontMetrics().elidedText(self.text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()


class LogBar(QWidget):
    """Signals: `filter_changed` (LogFilter), `follow_toggled` (bool), `left` when the search is done with."""

    filter_changed = Signal(object)
    follow_toggled = Signal(bool)
    left = Signal()
    save_clicked = Signal()
    clear_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filter = LogFilter()
        # a pause in typing, so that not every letter starts a search
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(TYPING_MS)
        self._build()
        self._connect()

    def focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def reset(self) -> None:
        """Back to all lines."""
        self._search.clear()
        self._level.setCurrentIndex(0)
        self._apply()

    def set_follow(self, follows: bool) -> None:
        self._follow.setChecked(follows)

    def show_count(self, text: str) -> None:
        self._count.set_text(text)

    def show_problem(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.setVisible(bool(text))

    def _build(self) -> None:
        self._search = QLineEdit(placeholderText="Find in log (Ctrl+F)", clearButtonEnabled=True)
        self._search.setObjectName("log.search")
        self._search.setAccessibleName("Find in log")
        self._search.setMinimumWidth(140)
        self._search.installEventFilter(self)
        self._pattern = self._button(".*", "pattern", "Take the text as a regular expression")
        self._pattern.setCheckable(True)
        self._level = QComboBox()
        self._level.setObjectName("log.level")
        self._level.setAccessibleName("Levels to show")
        for text, level in LEVELS:
            self._level.addItem(text, level)
        self._count = CountLabel()
        self._count.setObjectName("log.count")
        self._problem = QLabel(wordWrap=True)
        self._problem.setObjectName("log.problem")
        self._problem.hide()
        self._follow = QCheckBox("Follow")
        self._follow.setChecked(True)
        self._follow.setObjectName("log.follow")
        self._follow.setToolTip("Keep the last line in view")
        self._save = self._button("Save…", "save", "Write the lines that are shown to a file")
        self._clear = self._button("Clear", "clear", "Forget all lines")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 8, 6)
        row.setSpacing(8)
        for widget, stretch in ((self._search, 3), (self._pattern, 0), (self._level, 0), (self._count, 0)):
            row.addWidget(widget, stretch)
        row.addWidget(self._problem, 2)
        row.addStretch(1)
        for button in (self._follow, self._save, self._clear):
            row.addWidget(button)

    def _button(self, text: str, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAutoRaise(True)
        button.setObjectName(f"log.{name}")
        button.setAccessibleName(tip)
        return button

    def _connect(self) -> None:
        self._search.textChanged.connect(self._note_typing)
        self._typing.timeout.connect(self._apply)
        self._pattern.toggled.connect(self._apply)
        self._level.currentIndexChanged.connect(self._apply)
        self._follow.toggled.connect(self.follow_toggled)
        self._save.clicked.connect(self.save_clicked)
        self._clear.clicked.connect(self.clear_clicked)

    def _note_typing(self) -> None:
        self._typing.start()

    def _apply(self) -> None:
        self._typing.stop()
        try:
            wanted = LogFilter(
                text=self._search.text(), is_pattern=self._pattern.isChecked(), level=Level(self._level.currentData())
            )
        except UsageError as error:
            self.show_problem(str(error))
            return
        self.show_problem("")
        if wanted != self._filter:
            self._filter = wanted
            self.filter_changed.emit(wanted)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
                self._apply()
                self.left.emit()
                return True
            if event.key() == Qt.Key.Key_Escape and self._search.text():
                self._search.clear()
                self._apply()
                return True
        return super().eventFilter(watched, event)
