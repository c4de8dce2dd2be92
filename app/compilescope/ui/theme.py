"""Colours and fonts of the window, light and dark; every widget takes them from here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from compilescope.ui import style


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """One theme's colours as "#rrggbb", and its fonts.

    `eager` is the quiet baseline, `compiled` what is judged against it; `series` tells configurations apart (Okabe and
    Ito's colours, in a brighter cut for dark), always together with a dash or a marker.
    """

    name: str
    window: str
    panel: str
    raised: str
    field: str
    hover: str
    selection: str
    border: str
    strong_border: str
    text: str
    muted: str
    faint: str
    accent: str
    on_accent: str
    eager: str
    compiled: str
    good: str
    warn: str
    bad: str
    good_fill: str
    warn_fill: str
    bad_fill: str
    accent_fill: str
    grid: str
    series: tuple[str, ...]
    syntax_keyword: str
    syntax_name: str
    syntax_string: str
    syntax_number: str
    syntax_comment: str
    mono: tuple[str, ...] = (
        "JetBrains Mono", "Cascadia Code", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Noto Mono", "monospace",
    )  # fmt: skip


LIGHT = Tokens(
    name="light",
    window="#f4f5f7",
    panel="#fbfbfc",
    raised="#ffffff",
    field="#ffffff",
    hover="#eaecf0",
    selection="#dbe8fb",
    border="#dfe2e7",
    strong_border="#b9bfc9",
    text="#1d2129",
    muted="#616a78",
    faint="#969dab",
    accent="#1a63d8",
    on_accent="#ffffff",
    eager="#69758a",
    compiled="#0072b2",
    good="#0b7a55",
    warn="#9a6200",
    bad="#c0361c",
    good_fill="#e3f4ec",
    warn_fill="#fdf2dc",
    bad_fill="#fce9e4",
    accent_fill="#e6effd",
    grid="#e6e8ec",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a87900", "#4b9cd3", "#6a51a3"),
    syntax_keyword="#8430b8",
    syntax_name="#0b5cad",
    syntax_string="#26734d",
    syntax_number="#a64d00",
    syntax_comment="#7d8695",
)

DARK = Tokens(
    name="dark",
    window="#191b1f",
    panel="#1f2126",
    raised="#26292f",
    field="#16181b",
    hover="#2d3138",
    selection="#26415f",
    border="#30343b",
    strong_border="#555c68",
    text="#e2e5ea",
    muted="#9aa2af",
    faint="#6c7482",
    accent="#4c93f5",
    on_accent="#0b1220",
    eager="#a3adbd",
    compiled="#56b4e9",
    good="#3fc796",
    warn="#e9b04a",
    bad="#ff7f61",
    good_fill="#17322a",
    warn_fill="#362c18",
    bad_fill="#3c221d",
    accent_fill="#1b2c45",
    grid="#2a2d33",
    series=("#56b4e9", "#ff8a3d", "#2fc49b", "#e59ac4", "#e8b923", "#9ecbff", "#b7a1f0"),
    syntax_keyword="#c792ea",
    syntax_name="#7fb8ff",
    syntax_string="#98c379",
    syntax_number="#e5a06b",
    syntax_comment="#747d8c",
)


class Scheme(str, Enum):
    """What the user asked for."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Theme(QObject):
    """The theme in force. `changed` comes after palette and style sheet have been set."""

    changed = Signal()

    def __init__(self, scheme: Scheme = Scheme.SYSTEM, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app: QApplication | None = None
        self._scheme = scheme
        self._is_dark = scheme is Scheme.DARK

    @property
    def tokens(self) -> Tokens:
        return DARK if self._is_dark else LIGHT

    @property
    def is_dark(self) -> bool:
        return self._is_dark

    @property
    def scheme(self) -> Scheme:
        return self._scheme

    def apply(self, app: QApplication) -> None:
        """Style the application and follow the system from now on."""
        self._app = app
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self._follow_system)
        self.set_scheme(self._scheme)

    def set_scheme(self, scheme: Scheme) -> None:
        self._scheme = scheme
        # on plain X11 and offscreen the system says Unknown and cannot be told, so our own word holds
        self._is_dark = self._system_is_dark() if scheme is Scheme.SYSTEM else scheme is Scheme.DARK
        self._restyle()

    def toggle(self) -> None:
        self.set_scheme(Scheme.LIGHT if self._is_dark else Scheme.DARK)

    def color(self, token: str) -> QColor:
        return QColor(getattr(self.tokens, token))

    def mono(self, points: float | None = None) -> QFont:
        """The font of code and logs, as large as the text around it unless told."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setFamilies(list(self.tokens.mono))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setFixedPitch(True)
        font.setPointSizeF(points or max(QApplication.font().pointSizeF(), 8.0))
        return font

    def _system_is_dark(self) -> bool:
        return self._app is not None and self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark

    def _follow_system(self) -> None:
        if self._scheme is Scheme.SYSTEM and self._system_is_dark() != self._is_dark:
            self.set_scheme(Scheme.SYSTEM)

    def _restyle(self) -> None:
        if self._app is not None:
            self._app.setPalette(palette(self.tokens))
            self._app.setStyleSheet(style.sheet(self.tokens))
        self.changed.emit()


def palette(tokens: Tokens) -> QPalette:
    """Fusion's palette in these colours."""
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    colors = {
        role.Window: tokens.window,
        role.WindowText: tokens.text,
        role.Base: tokens.field,
        role.AlternateBase: tokens.panel,
        role.Text: tokens.text,
        role.Button: tokens.raised,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.bad,
        role.Highlight: tokens.selection,
        role.HighlightedText: tokens.text,
        role.ToolTipBase: tokens.raised,
        role.ToolTipText: tokens.text,
        role.PlaceholderText: tokens.faint,
        role.Link: tokens.accent,
        role.LinkVisited: tokens.accent,
        role.Light: tokens.raised,
        role.Midlight: tokens.hover,
        role.Mid: tokens.border,
        role.Dark: tokens.strong_border,
        role.Shadow: tokens.strong_border,
    }
    result = QPalette()
    for key, color in colors.items():
        result.setColor(key, QColor(color))
    for key in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        result.setColor(group.Disabled, key, QColor(tokens.faint))
    return result
