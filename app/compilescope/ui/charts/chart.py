"""What every chart has: a title with its key, a plot in the theme's colours, and a sentence while there is no data."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from compilescope.ui.theme import Theme


class Chart(QWidget):
    """Subclasses fill `plot`, put keys into `add_key`, and draw anew in `restyle`."""

    def __init__(self, theme: Theme, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.is_fitted = True
        self._label_style: dict[str, str] = {}
        self._build(title)
        theme.changed.connect(self.set_colors)

    def show_empty(self, sentence: str) -> None:
        """Show a sentence instead of axes without data."""
        self._empty.setText(sentence)
        self._pages.setCurrentWidget(self._empty)
        self._keys.setVisible(False)
        self.setAccessibleDescription(sentence)

    def show_plot(self, summary: str) -> None:
        """Show the plot; `summary` says in words what it shows."""
        self._pages.setCurrentWidget(self.plot)
        self._keys.setVisible(True)
        self.setAccessibleDescription(summary)

    @property
    def is_empty(self) -> bool:
        return self._pages.currentWidget() is self._empty

    def add_key(self, key: QWidget) -> None:
        self._key_row.addWidget(key)

    def show_note(self, text: str) -> None:
        self._note.setText(text)

    def label(self, side: str, text: str) -> None:
        """Name an axis; the unit belongs into the text."""
        axis = self.plot.getAxis(side)
        if axis.labelText != text:
            axis.setLabel(text, **self._label_style)

    def set_colors(self) -> None:
        """Take the theme's colours. pyqtgraph's own options only hold for plots that are made later."""
        tokens = self.theme.tokens
        font = QFont(self.font())
        font.setPointSizeF(max(font.pointSizeF() - 1, 7.5))
        self._label_style = {"color": tokens.muted, "font-size": f"{font.pointSizeF()}pt"}
        self.plot.setBackground(tokens.field)
        for axis in self._axes():
            axis.setPen(pg.mkPen(tokens.strong_border))
            axis.setTextPen(pg.mkPen(tokens.muted))
            axis.setTickFont(font)
            axis.setLabel(axis.labelText, **self._label_style)
        self.plot.showGrid(y=True, alpha=0.15)
        self.restyle()

    def restyle(self) -> None:
        """Give everything its colour again; called when the theme has changed."""

    def fit(self) -> None:
        """Show all data, and follow it as it grows."""
        self._fit.hide()
        self.is_fitted = True
        self.fit_range()

    def fit_range(self) -> None:
        """Set the plot's ranges so that all data is seen."""

    def _build(self, title: str) -> None:
        heading = QLabel(title)
        heading.setProperty("role", "heading")
        self._keys = QWidget()
        self._key_row = QHBoxLayout(self._keys)
        self._key_row.setContentsMargins(0, 0, 0, 0)
        self._key_row.setSpacing(16)
        self._note = QLabel()
        self._note.setProperty("role", "muted")
        self._fit: QToolButton = QToolButton()
        self._fit.setText("Fit")
        self._fit.setToolTip("Show all data again")
        self._fit.setObjectName("chart.fit")
        self._fit.setAccessibleName("Fit chart")
        self._fit.clicked.connect(self.fit)
        self._fit.hide()
        self._empty = QLabel()
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setWordWrap(True)
        self._empty.setProperty("role", "muted")
        self._empty.setObjectName("chart.empty")
        self._build_plot(title)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(self.plot)
        self._lay_out(heading)
        self._keys.hide()

    def _lay_out(self, heading: QLabel) -> None:
        top = QHBoxLayout()
        top.setContentsMargins(12, 8, 8, 2)
        top.setSpacing(18)
        top.addWidget(heading)
        top.addWidget(self._keys)
        top.addStretch(1)
        top.addWidget(self._note)
        top.addWidget(self._fit)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(self._pages, 1)

    def _build_plot(self, title: str) -> None:
        self.plot = pg.PlotWidget()
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setAccessibleName(title)
        self.plot.setFrameShape(pg.PlotWidget.Shape.NoFrame)
        self.plot.getViewBox().sigRangeChangedManually.connect(self._note_zoom)
        for axis in self._axes():
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickLength=-4, autoExpandTextSpace=True, hideOverlappingLabels=True)

    def _note_zoom(self) -> None:
        self.is_fitted = False
        self._fit.show()

    def _axes(self) -> list[Any]:
        return [self.plot.getAxis(side) for side in ("left", "bottom")]
