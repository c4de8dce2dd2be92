"""The groups of compiler phases: colours."""

from __future__ import annotations

from PySide6.QtGui import QColor

from compilescope.ui.theme import Tokens

# number of a series colour, and how much of the ground is mixed in: near colours belong together
_COLORS = {
    "dynamo": (0, 0.0),
    "guards": (0, 0.5),
    "aot": (2, 0.0),
    "backward": (2, 0.5),
    "inductor": (1, 0.0),
    "codegen": (1, 0.5),
    "kernels": (4, 0.0),
    "autotune": (4, 0.5),
    "cudagraphs": (3, 0.0),
    "first use": (3, 0.5),
}


def color(group: str, tokens: Tokens) -> QColor:
    """A group's colour in a theme."""
    if group not in _COLORS:
        return mix(QColor(tokens.eager), QColor(tokens.field), 0.35)
    number, ground = _COLORS[group]
    return mix(QColor(tokens.series[number]), QColor(tokens.field), ground)


def mix(first: QColor, second: QColor, share: float) -> QColor:
    """A colour between two; `share` is that of the second."""
    parts = zip(first.getRgb()[:3], second.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * share) for a, b in parts))


def ink(ground: QColor) -> QColor:
    """Black or white, whichever can be read on a colour."""
    luminance = 0.2126 * ground.redF() ** 2.2 + 0.7152 * ground.greenF() ** 2.2 + 0.0722 * ground.blueF() ** 2.2
    return QColor("#101216" if luminance > 0.2 else "#ffffff")
