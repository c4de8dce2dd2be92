"""The report's charts, drawn as vectors with text that can be selected."""

from __future__ import annotations

from compilescope.report.blocks import (
    Chart,
    CostChart,
    DistributionChart,
    MemoryChart,
    PhaseChart,
    SpeedupChart,
    SweepChart,
)
from compilescope.report.pdf.chart_cost import cost_piece
from compilescope.report.pdf.chart_distribution import distribution_piece
from compilescope.report.pdf.chart_memory import memory_piece
from compilescope.report.pdf.chart_phases import phase_piece
from compilescope.report.pdf.chart_speedup import speedup_piece
from compilescope.report.pdf.chart_sweep import sweep_piece
from compilescope.report.pdf.flow import Piece
from compilescope.report.pdf.look import Fonts


def chart_piece(chart: Chart, fonts: Fonts, width: float) -> Piece:
    """The chart as a piece of the given width."""
    match chart:
        case SpeedupChart():
            return speedup_piece(chart, fonts, width)
        case DistributionChart():
            return distribution_piece(chart, fonts, width)
        case PhaseChart():
            return phase_piece(chart, fonts, width)
        case CostChart():
            return cost_piece(chart, fonts, width)
        case SweepChart():
            return sweep_piece(chart, fonts, width)
        case MemoryChart():
            return memory_piece(chart, fonts, width)
