"""Rows of a name and a control, and the controls that more than one form has."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QGridLayout, QLabel, QWidget

from compilescope.ui.widgets import label


class Form(QWidget):
    """Rows of a name and a control, with an optional note under it."""

    def __init__(self) -> None:
        super().__init__()
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(2, 2, 0, 0)
        self._layout.setHorizontalSpacing(10)
        self._layout.setVerticalSpacing(7)
        self._layout.setColumnMinimumWidth(0, 64)
        self._layout.setColumnStretch(1, 1)

    def add(self, name: str, control: QWidget, note: QLabel | None = None) -> None:
        row = self._layout.rowCount()
        if name:
            title = label(name, "muted")
            title.setBuddy(control)
            title.setContentsMargins(0, 4, 0, 0)
            self._layout.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
        self._layout.addWidget(control, row, 1 if name else 0, 1, 1 if name else 2)
        if note is not None:
            self._layout.addWidget(note, row + 1, 1 if name else 0, 1, 1 if name else 2)


def combo(name: str) -> QComboBox:
    """A list to choose one from, named for those who do not see it."""
    box = QComboBox()
    box.setObjectName(name.lower())
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(10)
    return box


def say(note: QLabel, text: str) -> None:
    """Show a note, or nothing where there is nothing to say."""
    note.setText(text)
    note.setVisible(bool(text))
