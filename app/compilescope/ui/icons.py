"""Icons from the resources' SVG files, tinted for the theme in force."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from compilescope import paths

SIZES = (16, 32, 64)


def icon(name: str, color: str, disabled: str = "") -> QIcon:
    """The icon `name` with `currentColor` replaced; an empty icon where there is no such file."""
    path = paths.resources() / "icons" / f"{name}.svg"
    result = QIcon()
    if not path.is_file():
        return result
    drawing = path.read_text("utf-8")
    for size in SIZES:
        result.addPixmap(_pixmap(drawing, color, size), QIcon.Mode.Normal)
        if disabled:
            result.addPixmap(_pixmap(drawing, disabled, size), QIcon.Mode.Disabled)
    return result


def _pixmap(drawing: str, color: str, size: int) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(drawing.replace("currentColor", QColor(color).name()).encode()))
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return pixmap
