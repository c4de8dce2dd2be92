"""The log pane."""

from compilescope.ui.log.pane import LogPane

__all__ = ["LogPane"]
