"""The status bar: what was just done, and which interpreter, torch and device are meant."""

from __future__ import annotations

from PySide6.QtWidgets import QStatusBar, QWidget

from compilescope.ui.state import AppState
from compilescope.ui.widgets import label, plain_tip

SAY_MS = 6000


class StatusBar(QStatusBar):
    """The right side is the environment, as a worker told it."""

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._environment = label("")
        self._environment.setObjectName("environment")
        self.setSizeGripEnabled(False)
        self.addPermanentWidget(self._environment)
        state.environment_changed.connect(self.refresh)
        self.refresh()

    def say(self, text: str) -> None:
        """A word for a few seconds."""
        self.showMessage(text, SAY_MS)

    def refresh(self) -> None:
        environment = self._state.environment
        if environment is None:
            problem = self._state.environment_problem
            self._environment.setText("torch was not found" if problem else "asking torch…")
            self._environment.setToolTip(plain_tip(problem))
            return
        device = environment.cpu if environment.device == "cpu" else environment.device
        parts = [
            f"Python {environment.python}" if environment.python else "",
            f"torch {environment.torch}" if environment.torch else "no torch",
            f"CUDA {environment.cuda}" if environment.cuda else "",
            device or "",
        ]
        self._environment.setText("   ·   ".join(part for part in parts if part))
        more = [environment.os or "", environment.compiler or "", *environment.missing]
        self._environment.setToolTip(plain_tip("\n".join(part for part in more if part)))
