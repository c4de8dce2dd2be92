"""Sizes and places of windows and their parts as text, for the settings."""

from __future__ import annotations

import base64

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QMainWindow, QSplitter


def remembered(*parts: QMainWindow | QSplitter) -> str:
    """How these stand now."""
    states = (part.saveState() if isinstance(part, QSplitter) else part.saveGeometry() for part in parts)
    return " ".join(base64.b64encode(state.data()).decode("ascii") for state in states)


def restore(text: str, *parts: QMainWindow | QSplitter) -> None:
    """Let these stand as they did; what cannot be read changes nothing."""
    for part, word in zip(parts, text.split(" "), strict=False):
        state = _bytes(word)
        if isinstance(part, QSplitter):
            part.restoreState(state)
        else:
            part.restoreGeometry(state)


def _bytes(text: str) -> QByteArray:
    try:
        return QByteArray(base64.b64decode(text))
    except ValueError:
        return QByteArray()
