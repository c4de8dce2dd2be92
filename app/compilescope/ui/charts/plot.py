"""A pyqtgraph plot in the theme's colours, with units that we choose ourselves."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from compilescope.ui.charts.chart import Chart
from compilescope.ui.theme import Theme


class Plot(Chart):
    """A chart whose view is `plot`."""

    def __init__(self, theme: Theme, title: str, parent: QWidget | None = None) -> None:
        self.plot = pg.PlotWidget()
        super().__init__(theme, title, self.plot, parent)
        self._label_style: dict[str, str] = {}
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setFrameShape(pg.PlotWidget.Shape.NoFrame)
        # room for the outermost tick labels
        self.plot.getPlotItem().setContentsMargins(4, 8, 16, 2)
        self.plot.getViewBox().sigRangeChangedManually.connect(self.note_zoom)
        for axis in self._axes():
            # it would make "kms" of "ms"
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickLength=-4, autoExpandTextSpace=True, hideOverlappingLabels=False)
        self._restyle_plot()

    def label(self, side: str, text: str) -> None:
        """Name an axis; the unit belongs into the text."""
        axis = self.plot.getAxis(side)
        if axis.labelText != text:
            axis.setLabel(text, **self._label_style)

    def restyle(self) -> None:
        self._restyle_plot()

    def _restyle_plot(self) -> None:
        # pyqtgraph's own options hold only for plots that are made later
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

    def _axes(self) -> list[Any]:
        return [self.plot.getAxis(side) for side in ("left", "bottom", "top")]
