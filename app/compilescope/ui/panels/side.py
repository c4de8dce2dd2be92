"""The side of the window: the script and the options, as high as they want to be."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

WIDTH = 300
MOST = 520


class Side(QFrame):
    """Scrolls where the window is too low for it."""

    def __init__(self, upper: QWidget, lower: QWidget) -> None:
        super().__init__()
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(14)
        column.addWidget(upper)
        column.addWidget(lower, 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(inside)
        self.setObjectName("side")
        self.setMaximumWidth(MOST)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)
        self._scroll = scroll
        self._inside = inside
        inside.installEventFilter(self)

    # Qt overrides

    def minimumSizeHint(self) -> QSize:
        # whatever the font: nothing is cut at the right, where the scroll bar stands
        width = self._inside.minimumSizeHint().width() + self._scroll.verticalScrollBar().sizeHint().width()
        return QSize(min(width, MOST), super().minimumSizeHint().height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._inside and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
