"""Whether a window can be shown here."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """Whether there is a screen, or a Qt platform was chosen that needs none."""
    if sys.platform != "linux":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
