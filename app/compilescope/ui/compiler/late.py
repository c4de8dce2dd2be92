"""A pane that is built when it is first seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

if TYPE_CHECKING:
    from compilescope.ui.compiler.run_pane import RunPane


class LatePane(QWidget):
    """Stands in a tab for the pane that `make` builds on the first showing."""

    def __init__(self, make: Callable[[], RunPane], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make = make
        self._pane: RunPane | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)

    @property
    def pane(self) -> RunPane:
        """The pane itself, built now if it has not been."""
        if self._pane is None:
            self._pane = self._make()
            layout = self.layout()
            assert layout is not None
            layout.addWidget(self._pane)
        return self._pane

    def refresh(self) -> None:
        self.pane.refresh()

    def close_reader(self) -> None:
        """End the thread that reads texts, where the pane has one and was ever built."""
        if self._pane is not None:
            self._pane.close_reader()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.pane.show()
