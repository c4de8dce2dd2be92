"""Colours, fonts and measures of the printed report. Lengths are points."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QImage

from compilescope.report.blocks import Tone

TEXT = "#1b1f27"
MUTED = "#5d6673"
FAINT = "#98a0ac"
HAIRLINE = "#dde1e7"
PANEL = "#f4f6f8"
ACCENT = "#0b4f8a"
MARK = "#fdeed3"
MARK_EDGE = "#e69f00"

# Okabe and Ito's colours, told apart with any colour vision
EAGER = "#7a7f87"
COMPILED = "#0072b2"
SERIES = {
    "dynamo": "#0072b2",
    "guards": "#56b4e9",
    "aot": "#009e73",
    "backward": "#7fcfb5",
    "inductor": "#e69f00",
    "codegen": "#f0e442",
    "kernels": "#d55e00",
    "autotune": "#cc79a7",
    "cudagraphs": "#8a5a83",
    "other": "#7a7f87",
    "first use": "#a6abb3",
    "outside the compiler": "#d5d9df",
}
TONES: dict[Tone, str] = {
    "": TEXT,
    "muted": MUTED,
    "accent": ACCENT,
    "strong": TEXT,
    "good": "#00674b",
    "warn": "#8a5a00",
    "bad": "#a63200",
}
FILLS: dict[Tone, str] = {
    "": PANEL,
    "muted": PANEL,
    "accent": PANEL,
    "strong": PANEL,
    "good": "#e8f4ef",
    "warn": "#fdf3df",
    "bad": "#fbe9e2",
}

_SANS = ("Inter", "Noto Sans", "Source Sans 3", "Open Sans", "Segoe UI", "Helvetica Neue", "Arial", "DejaVu Sans")
_MONO = ("JetBrains Mono", "Noto Sans Mono", "Cascadia Mono", "Consolas", "Menlo", "DejaVu Sans Mono")


def _family(wanted: tuple[str, ...], system: QFontDatabase.SystemFont) -> str:
    families = set(QFontDatabase.families())
    return next((name for name in wanted if name in families), QFontDatabase.systemFont(system).family())


def _font(family: str, size: float, *, bold: bool = False) -> QFont:
    font = QFont([family])
    font.setPointSizeF(size)
    font.setBold(bold)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    # joined letters cannot be searched for in the PDF; figures of one width can be compared down a column
    for tag, value in (("liga", 0), ("clig", 0), ("calt", 0), ("tnum", 1)):
        font.setFeature(QFont.Tag(tag), value)
    return QFont(font, _points())


def _points() -> QImage:
    """A device whose unit is the point: without one, the size of letters would follow the user's screen."""
    device = QImage(1, 1, QImage.Format.Format_RGB32)
    dots_per_metre = round(72 / 0.0254)
    device.setDotsPerMeterX(dots_per_metre)
    device.setDotsPerMeterY(dots_per_metre)
    return device


def middle(font: QFont) -> float:
    """The height of a bullet's centre below the top of a line: half that of a small letter."""
    metrics = QFontMetricsF(font)
    return metrics.ascent() - metrics.xHeight() / 2


@dataclass
class Fonts:
    """Every font of the report. A character that a font lacks is taken from another of the system's."""

    sans: str = field(default_factory=lambda: _family(_SANS, QFontDatabase.SystemFont.GeneralFont))
    mono: str = field(default_factory=lambda: _family(_MONO, QFontDatabase.SystemFont.FixedFont))

    def __post_init__(self) -> None:
        self.title = _font(self.sans, 18, bold=True)
        self.chapter = _font(self.sans, 16, bold=True)
        self.heading = _font(self.sans, 13, bold=True)
        self.card = _font(self.sans, 13, bold=True)
        self.lead = _font(self.sans, 11)
        self.body = _font(self.sans, 9.5)
        self.strong = _font(self.sans, 9.5, bold=True)
        self.label = _font(self.sans, 9.5, bold=True)
        self.small = _font(self.sans, 8)
        self.small_bold = _font(self.sans, 8, bold=True)
        self.tiny = _font(self.sans, 7)
        self.code = _font(self.mono, 8)
