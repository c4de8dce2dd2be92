"""Everything that the user can command, as a table; menus, shortcuts and tests read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenuBar

from compilescope.ui.icons import icon
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """One command. `id` is the QAction's object name."""

    id: str
    text: str
    menu: str
    short: str = ""
    shortcut: str = ""
    tip: str = ""
    icon: str = ""
    is_checkable: bool = False
    begins_group: bool = False

    @property
    def explanation(self) -> str:
        """The tooltip: what it does, and its keys."""
        words = self.tip or self.text.replace("&", "")
        return f"{words} ({self.shortcut})" if self.shortcut else words


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec(
        id="open",
        text="&Open script…",
        short="Open",
        menu="&File",
        shortcut="Ctrl+O",
        icon="open",
        tip="Open a model script",
    ),
    ActionSpec(
        id="open_trace",
        text="Open &trace…",
        menu="&File",
        shortcut="Ctrl+Shift+O",
        tip="Open a TORCH_TRACE log from anywhere",
    ),
    ActionSpec(
        id="open_trace_folder",
        text="Open trace f&older…",
        menu="&File",
        tip="Open all TORCH_TRACE logs in a folder, as of the ranks of one job",
    ),
    ActionSpec(id="welcome", text="&Examples and recent scripts", menu="&File", shortcut="Ctrl+Shift+E"),
    ActionSpec(
        id="export_pdf",
        text="Export &PDF report…",
        menu="&File",
        shortcut="Ctrl+E",
        icon="export",
        tip="The comparison as a document for a colleague",
        begins_group=True,
    ),
    ActionSpec(id="export_json", text="Export &JSON…", menu="&File", shortcut="Ctrl+Shift+J"),
    ActionSpec(id="export_csv", text="Export &CSV…", menu="&File", shortcut="Ctrl+Shift+S"),
    ActionSpec(id="export_markdown", text="Export &Markdown…", menu="&File", shortcut="Ctrl+Shift+M"),
    ActionSpec(
        id="export_timeline",
        text="Export t&imeline…",
        menu="&File",
        tip="The shown run's compile timeline, for Perfetto",
        begins_group=True,
    ),
    ActionSpec(
        id="save_trace",
        text="Save tr&ace…",
        menu="&File",
        tip="The shown run's trace as a folder that tlparse reads; it holds source code",
    ),
    ActionSpec(id="quit", text="&Quit", menu="&File", shortcut="Ctrl+Q", begins_group=True),
    ActionSpec(
        id="copy_markdown",
        text="Copy comparison as &Markdown",
        menu="&Edit",
        shortcut="Ctrl+Shift+C",
        icon="copy",
        tip="Put the comparison on the clipboard, ready for a pull request",
    ),
    ActionSpec(id="find", text="&Find in log", menu="&Edit", shortcut="Ctrl+F", icon="inspect", begins_group=True),
    ActionSpec(
        id="run",
        text="&Run comparison",
        short="Run",
        menu="&Run",
        shortcut="Ctrl+R",
        icon="run",
        tip="Compile and measure what is ticked",
    ),
    ActionSpec(
        id="stop",
        text="&Stop",
        menu="&Run",
        shortcut="Esc",
        icon="stop",
        tip="End the run in progress and what waits behind it",
    ),
    ActionSpec(
        id="inspect",
        text="&Inspect script",
        menu="&Run",
        shortcut="Ctrl+I",
        icon="inspect",
        tip="Run the script to see its entries and inputs; nothing is compiled",
        begins_group=True,
    ),
    ActionSpec(
        id="calibrate",
        text="&Calibrate this machine",
        menu="&Run",
        tip="Measure eager beside eager, to know how small a difference means something here; about two minutes",
    ),
    ActionSpec(
        id="difference",
        text="&Difference of two configurations",
        menu="&Run",
        shortcut="Ctrl+D",
        tip="Select two rows of the comparison (Ctrl+click) to set them side by side",
        begins_group=True,
    ),
    ActionSpec(
        id="history",
        text="&History",
        menu="&View",
        shortcut="Ctrl+H",
        is_checkable=True,
        tip="Every comparison so far: find, open, tag, export, compare",
    ),
    ActionSpec(id="show_log", text="&Log", menu="&View", shortcut="Ctrl+L", is_checkable=True),
    ActionSpec(id="next_tab", text="&Next pane", menu="&View", shortcut="Ctrl+Tab"),
    ActionSpec(id="reset_layout", text="&Reset layout", menu="&View"),
    ActionSpec(
        id="theme", text="Switch &theme", menu="&View", shortcut="Ctrl+T", tip="Light or dark", begins_group=True
    ),
    ActionSpec(id="system_theme", text="Theme of the s&ystem", menu="&View"),
)


class Actions(QObject):
    """The QActions of a window, by id."""

    def __init__(self, handlers: Mapping[str, Callable[[], None]], theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._actions: dict[str, QAction] = {}
        for spec in ACTIONS:
            action = QAction(spec.text, self)
            action.setObjectName(spec.id)
            action.setShortcut(QKeySequence(spec.shortcut))
            action.setToolTip(spec.explanation)
            if spec.short:
                action.setIconText(spec.short)
            action.setCheckable(spec.is_checkable)
            action.triggered.connect(handlers[spec.id])
            self._actions[spec.id] = action
        theme.changed.connect(self._restyle)
        self._restyle()

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def fill(self, bar: QMenuBar) -> None:
        """Build the menus, in the table's order."""
        menus = {title: bar.addMenu(title) for title in dict.fromkeys(spec.menu for spec in ACTIONS)}
        for spec in ACTIONS:
            if spec.begins_group:
                menus[spec.menu].addSeparator()
            menus[spec.menu].addAction(self._actions[spec.id])

    def follow(self, state: AppState) -> None:
        """Enable what can be done now."""
        is_idle = state.is_idle
        has_entries = state.scan is not None and bool(state.scan.entries)
        has_trace = bool(state.runs) and state.runs[0].is_trace
        is_done = bool(state.runs) and all(run.is_over for run in state.runs)
        possible = {
            "run": is_idle and has_entries and not state.selection.missing,
            "inspect": is_idle and has_entries,
            "calibrate": is_idle,
            "stop": not is_idle and not state.is_stopping,
            "find": bool(state.runs),
            "difference": len(state.runs) > 1 and not has_trace,
            **dict.fromkeys(("open", "open_trace", "open_trace_folder", "welcome"), not state.is_busy),
            **dict.fromkeys(("export_timeline", "save_trace"), bool(state.runs)),
            **dict.fromkeys(("export_pdf", "export_json", "export_csv", "export_markdown", "copy_markdown"), is_done),
        }
        for name, is_possible in possible.items():
            self._actions[name].setEnabled(is_possible)

    def _restyle(self) -> None:
        tokens = self._theme.tokens
        colors = {"run": tokens.good, "stop": tokens.bad}
        for spec in ACTIONS:
            if spec.icon:
                self._actions[spec.id].setIcon(icon(spec.icon, colors.get(spec.id, tokens.muted), tokens.border))
