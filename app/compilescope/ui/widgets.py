"""Small parts that many panels are made of."""

from __future__ import annotations

import html

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent, QTextLayout, QTextLine, QTextOption
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget


def label(text: str = "", role: str = "", *, wrap: bool = False) -> QLabel:
    """A label that never reads markup into its text."""
    result = QLabel(text)
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(wrap)
    if role:
        result.setProperty("role", role)
    return result


def set_role(widget: QWidget, name: str, value: str) -> None:
    """Set a property that the style sheet asks for, and style the widget anew."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
        widget.update()


def plain_tip(text: str) -> str:
    """A tooltip that wraps, from a text that may come from anywhere."""
    return f"<p style='white-space: pre-wrap'>{html.escape(text)}</p>" if text else ""


def button(text: str, role: str = "") -> QPushButton:
    result = QPushButton(text)
    if role:
        result.setProperty("role", role)
        if role == "link":
            result.setCursor(Qt.CursorShape.PointingHandCursor)
    return result


def chip(text: str, name: str) -> QToolButton:
    """A small on/off button, one of a set in which several may be on."""
    result = QToolButton()
    result.setText(text)
    result.setCheckable(True)
    result.setProperty("role", "chip")
    result.setAccessibleName(name)
    result.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return result


class ElidedLabel(QLabel):
    """One line of text that gives way in the middle instead of pushing its neighbours; the tooltip has it all."""

    def __init__(self, text: str = "", role: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(text)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        if role:
            self.setProperty("role", role)

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setToolTip(plain_tip(text))

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        return QSize(20, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        place = self.contentsRect()
        shown = QFontMetrics(self.font()).elidedText(self.text(), self._mode, place.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(place, int(self.alignment() | Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()


class Paragraph(ElidedLabel):
    """Text over as many whole lines as its height holds, the last one elided; the tooltip has it all."""

    width_changed = Signal()

    @property
    def needed_lines(self) -> int:
        """How many lines the whole text takes at this width."""
        return max(len(self._lines()[1]), 1)

    def _lines(self) -> tuple[QTextLayout, list[QTextLine]]:
        layout = QTextLayout(self.text().replace("\n", "\N{LINE SEPARATOR}"), self.font())
        layout.setTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
        lines = []
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(max(self.width(), 100))
            lines.append(line)
        layout.endLayout()
        return layout, lines

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.width_changed.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        metrics = QFontMetrics(self.font())
        _layout, lines = self._lines()
        room = max(self.height() // metrics.lineSpacing(), 1)
        for number, line in enumerate(lines[:room]):
            baseline = number * metrics.lineSpacing() + metrics.ascent()
            text = self.text()[line.textStart() : line.textStart() + line.textLength()]
            if number == room - 1 and len(lines) > room:
                text = metrics.elidedText(self.text()[line.textStart() :], Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(QPointF(0, baseline), text.rstrip())
        painter.end()


class Section(QWidget):
    """A titled part of a panel that can be folded away."""

    def __init__(self, title: str, content: QWidget, *, is_open: bool = True) -> None:
        super().__init__()
        self._content = content
        self._button = QToolButton()
        self._button.setText(title)
        self._button.setProperty("role", "section")
        self._button.setCheckable(True)
        self._button.setChecked(is_open)
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._button.toggled.connect(self.set_open)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._button)
        layout.addWidget(content)
        self.set_open(is_open)

    def set_open(self, is_open: bool) -> None:
        self._content.setVisible(is_open)
        self._button.setArrowType(Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow)


class FigureCard(QFrame):
    """One number that matters: title, figure, and what to know about it."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setObjectName("card")
        self._title = title
        self._figure = label("–")
        self._figure.setObjectName("figure")
        self._note = ElidedLabel("", "muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(1)
        layout.addWidget(label(title, "muted"))
        layout.addWidget(self._figure)
        layout.addWidget(self._note)

    def set_brief(self, is_brief: bool) -> None:
        """The number alone."""
        self._note.setVisible(not is_brief)

    def full_height(self) -> int:
        """With its note, whether it shows it now or not."""
        hidden = 0 if self._note.isVisibleTo(self) else self._note.sizeHint().height() + 1
        return self.sizeHint().height() + hidden

    def show_figure(self, figure: str, note: str = "") -> None:
        self._figure.setText(figure)
        self._note.setText(note)
        self.setAccessibleName(f"{self._title}: {figure}, {note}" if note else f"{self._title}: {figure}")
