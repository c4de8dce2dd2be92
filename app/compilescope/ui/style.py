"""The style sheet: what Fusion and the palette leave to say."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from compilescope import paths

if TYPE_CHECKING:
    from compilescope.ui.theme import Tokens


def sheet(tokens: Tokens) -> str:
    """The application's style sheet in the colours of `tokens`."""
    marks = (paths.resources() / "icons" / "marks").as_posix()
    values = {key: value for key, value in vars(tokens).items() if isinstance(value, str)}
    return _SHEET.substitute(values, marks=marks)


_SHEET = Template("""
QMainWindow, QDialog { background: $window; }
QWidget { outline: none; }
QToolTip { background: $raised; color: $text; border: 1px solid $strong_border; padding: 5px 7px; }

QMenuBar { background: $window; padding: 1px 4px; }
QMenuBar::item { padding: 4px 9px; border-radius: 4px; background: transparent; }
QMenuBar::item:selected, QMenuBar::item:pressed { background: $hover; }
QMenu { background: $raised; border: 1px solid $strong_border; padding: 4px; }
QMenu::item { padding: 5px 26px 5px 26px; border-radius: 4px; }
QMenu::item:selected { background: $selection; }
QMenu::item:disabled { color: $faint; }
QMenu::icon { padding-left: 6px; }
QMenu::separator { height: 1px; background: $border; margin: 4px 6px; }
QMenu::indicator { width: 14px; height: 14px; left: 6px; }
QMenu::indicator:non-exclusive:unchecked { border: 1px solid $strong_border; border-radius: 3px; background: $field; }
QMenu::indicator:non-exclusive:checked { border: 1px solid $accent; border-radius: 3px; background: $accent;
    image: url($marks/check-$name.svg); }

QStatusBar { background: $window; border-top: 1px solid $border; color: $muted; }
QStatusBar::item { border: none; }
QStatusBar QLabel { color: $muted; padding: 0 6px; }

QSplitter::handle { background: $border; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }

QPushButton, QToolButton[role="button"] {
    background: $raised; border: 1px solid $border; border-radius: 5px; padding: 4px 12px; min-height: 20px; }
QPushButton:hover, QToolButton[role="button"]:hover { background: $hover; border-color: $strong_border; }
QPushButton:pressed, QToolButton[role="button"]:pressed { background: $selection; }
QPushButton:focus, QToolButton[role="button"]:focus { border-color: $accent; }
QPushButton:disabled, QToolButton[role="button"]:disabled { color: $faint; background: transparent; }
QPushButton[role="primary"] { background: $accent; border-color: $accent; color: $on_accent; font-weight: 600; }
QPushButton[role="primary"]:disabled { background: $hover; border-color: $border; color: $faint; }
QPushButton[role="link"] { background: transparent; border: none; color: $accent; padding: 2px 2px; text-align: left; }
QPushButton[role="link"]:hover { text-decoration: underline; }
QPushButton[role="link"]:focus { text-decoration: underline; }

QToolButton { background: transparent; border: 1px solid transparent; border-radius: 5px; padding: 4px 7px; }
QToolButton:hover { background: $hover; }
QToolButton:pressed { background: $selection; }
QToolButton:focus { border-color: $accent; }
QToolButton:disabled { color: $faint; }
QToolButton::menu-indicator { image: none; }
QToolButton[role="chip"] {
    background: $field; border: 1px solid $strong_border; border-radius: 5px; padding: 2px 9px; color: $muted;
    min-height: 18px; }
QToolButton[role="chip"]:hover { border-color: $accent; }
QToolButton[role="chip"]:checked { background: $accent_fill; border-color: $accent; color: $text; }
QToolButton[role="chip"]:focus { border: 1px solid $accent; }
QToolButton[role="section"] { color: $muted; font-weight: 600; padding: 2px 0; border: none; text-align: left; }
QToolButton[role="section"]:hover, QToolButton[role="section"]:focus { color: $text; background: transparent; }

QLineEdit, QPlainTextEdit, QSpinBox, QDoubleSpinBox, QComboBox {
    background: $field; border: 1px solid $border; border-radius: 5px; selection-background-color: $selection;
    selection-color: $text; }
QLineEdit { padding: 3px 7px; min-height: 20px; }
QLineEdit:hover, QSpinBox:hover, QDoubleSpinBox:hover, QComboBox:hover { border-color: $strong_border; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus { border-color: $accent; }
QLineEdit:disabled, QComboBox:disabled { color: $faint; background: transparent; }
QComboBox { padding: 3px 8px; min-height: 20px; }
QComboBox::drop-down { border: none; width: 20px; }
QComboBox::down-arrow { image: url($marks/chevron-down-$name.svg); width: 10px; height: 10px; }
QComboBox QAbstractItemView { background: $raised; border: 1px solid $strong_border; padding: 3px; }
QSpinBox, QDoubleSpinBox { padding: 3px 4px 3px 7px; min-height: 20px; }
QAbstractSpinBox QLineEdit { background: transparent; border: none; padding: 0 0 0 6px; min-height: 0; }
QSpinBox::up-button, QDoubleSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::down-button {
    border: none; width: 16px; background: transparent; }
QSpinBox::up-arrow, QDoubleSpinBox::up-arrow { image: url($marks/chevron-up-$name.svg); width: 8px; height: 8px; }
QSpinBox::down-arrow, QDoubleSpinBox::down-arrow { image: url($marks/chevron-down-$name.svg); width: 8px; height: 8px; }

QCheckBox { spacing: 8px; padding: 2px 0; }
QCheckBox:disabled { color: $faint; }
QTreeView::indicator, QCheckBox::indicator { width: 14px; height: 14px; border: 1px solid $strong_border;
    border-radius: 3px; background: $field; }
QCheckBox::indicator:hover, QCheckBox::indicator:focus { border-color: $accent; }
QCheckBox:focus { color: $accent; }
QTreeView::indicator:checked, QCheckBox::indicator:checked { background: $accent; border-color: $accent;
    image: url($marks/check-$name.svg); }
QCheckBox::indicator:disabled { border-color: $border; background: transparent; }
QCheckBox::indicator:checked:disabled { border-color: $faint; background: $faint; image: url($marks/check-$name.svg); }
QToolButton[role="chip"]:disabled { color: $faint; border-color: $border; }
QToolButton[role="chip"]:checked:disabled { background: $hover; border-color: $strong_border; color: $muted; }

QTabWidget::pane { border: none; border-top: 1px solid $border; top: -1px; }
QTabBar { qproperty-drawBase: 0; }
QTabBar::tab { background: transparent; color: $muted; padding: 7px 14px 6px 14px; border: none;
    border-bottom: 2px solid transparent; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; }
QTabBar::tab:focus { color: $accent; }

QHeaderView { background: $panel; border: none; }
QHeaderView::section { background: $panel; color: $muted; border: none; border-bottom: 1px solid $border;
    padding: 5px 8px; font-weight: 600; }
QTableView, QTreeView, QListView, QListWidget {
    background: $field; border: none; selection-background-color: $selection;
    selection-color: $text; }
QTableView { gridline-color: transparent; }
QTableView::item, QListView::item { padding: 0 4px; border: none; }
#plan::item { padding: 0 6px; }
QTableView::item:selected, QListView::item:selected { background: $selection; }
QTableCornerButton::section { background: $panel; border: none; }

QScrollBar:vertical { background: transparent; width: 11px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 11px; margin: 0; }
QScrollBar::handle { background: $border; border-radius: 4px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: $strong_border; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QAbstractScrollArea::corner { background: transparent; }
QScrollArea { border: none; background: transparent; }
QScrollArea > QWidget > QWidget { background: transparent; }

QLabel[role="heading"] { font-weight: 600; }
QLabel[role="muted"] { color: $muted; }
QLabel[role="faint"] { color: $faint; }
QLabel[role="note"] { color: $warn; }
QLabel[role="bad"] { color: $bad; }
QLabel[role="section"] { color: $muted; font-weight: 600; }

#panel { background: $panel; border: none; }
#side { background: $panel; border-right: 1px solid $border; }
#top_bar { background: $window; border-bottom: 1px solid $border; }
#drop_target { background: $raised; border: 1px dashed $strong_border; border-radius: 7px; }
#drop_target[dragged="true"] { border-color: $accent; background: $accent_fill; }
#drop_target[filled="true"] { border-style: solid; border-color: $border; }
#card { background: $raised; border: 1px solid $border; border-radius: 7px; }
#card:focus { border-color: $accent; }
#card:hover[clickable="true"] { border-color: $accent; background: $hover; }
#answer { background: $raised; border: 1px solid $border; border-left: 4px solid $strong_border;
    border-top-right-radius: 7px; border-bottom-right-radius: 7px; }
#answer[tone="good"] { border-left-color: $good; }
#answer[tone="warn"] { border-left-color: $warn; }
#answer[tone="bad"] { border-left-color: $bad; background: $bad_fill; }
#answer[tone="busy"] { border-left-color: $accent; }
#snippet { background: $field; border: 1px solid $border; border-radius: 5px; padding: 3px 8px; }
#message_bar[tone="bad"] { background: $bad_fill; border-bottom: 1px solid $border; }
#message_bar[tone="warn"] { background: $warn_fill; border-bottom: 1px solid $border; }
#message_bar[tone="info"] { background: $accent_fill; border-bottom: 1px solid $border; }
#figure { font-size: 17px; font-weight: 600; }
#code { background: $field; border: none; border-radius: 0; }
#explanation { background: $panel; border: none; }
""")
