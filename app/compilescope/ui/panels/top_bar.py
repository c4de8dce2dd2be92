"""The bar at the top: what can be done now, and the pipeline."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from compilescope.ui.actions import Actions
from compilescope.ui.icons import icon
from compilescope.ui.panels.pipeline_strip import PipelineStrip
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme


class TopBar(QFrame):
    """Three buttons, the strip, and the switch between light and dark."""

    def __init__(self, state: AppState, actions: Actions, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("top_bar")
        self.strip = PipelineStrip(state, theme)
        self._switch = QToolButton()
        self._switch.setObjectName("theme_button")
        self._switch.setAccessibleName("Switch between light and dark")
        self._switch.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._switch.setToolTip(actions["theme"].toolTip())
        self._switch.clicked.connect(actions["theme"].trigger)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 0, 8, 0)
        layout.setSpacing(2)
        for name, text in (("open", "Open"), ("run", "Run"), ("stop", "Stop")):
            layout.addWidget(_tool(actions[name], text))
        layout.addSpacing(10)
        layout.addWidget(self.strip, 1)
        layout.addSpacing(6)
        layout.addWidget(self._switch)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self._switch.setIcon(icon("sun" if self._theme.is_dark else "moon", self._theme.tokens.muted))


def _tool(action: QAction, text: str) -> QToolButton:
    tool = QToolButton()
    tool.setDefaultAction(action)
    tool.setAccessibleName(text)
    tool.setIconSize(QSize(16, 16))
    tool.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    tool.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return tool
