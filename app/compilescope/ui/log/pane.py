"""The log pane: what the script, torch and the compiler wrote, live, with search and filter."""

from __future__ import annotations

from compilescope.domain.log import Level

REFRESH_MS = 100
SLICE_S = 0.006
TYPING_MS = 150
_LEVELS = (
    ("All levels", Level.DEBUG),
    ("Without debug", Level.OUTPUT),
    ("Warnings and errors", Level.WARNING),
    ("Errors only", Level.ERROR),
)
_EMPTY = "Nothing has been written yet. What the script prints and torch logs appears here during a run."
