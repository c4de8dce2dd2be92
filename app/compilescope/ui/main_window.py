"""The main window: puts the panels together and lets commands reach them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeySequence,
    QPaintEvent,
)
from PySide6.QtWidgets import (
    QFileDialog,
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from compilescope.domain.errors import AppError
from compilescope.domain.logtext import log_portions
from compilescope.settings import Settings
from compilescope.ui.actions import Actions
from compilescope.ui.calibration import CalibrationWatch
from compilescope.ui.exports import ExportCommands
from compilescope.ui.findings import Findings
from compilescope.ui.history.columns import date_text
from compilescope.ui.keeping import HistoryCommands, Stored
from compilescope.ui.panels.message_bar import MessageBar
from compilescope.ui.panels.options_panel import OptionsPanel
from compilescope.ui.panels.script_panel import ScriptPanel
from compilescope.ui.panels.side import WIDTH, Side
from compilescope.ui.panels.status import StatusBar
from compilescope.ui.panels.top_bar import TopBar
from compilescope.ui.panels.welcome import Welcome
from compilescope.ui.panels.workspace import Workspace
from compilescope.ui.remembering import remembered, restore
from compilescope.ui.session import Session
from compilescope.ui.state import BUSY, AppState
from compilescope.ui.theme import Scheme, Theme
from compilescope.ui.traces import WANTED, TraceCommands, is_trace_path, refusal

if TYPE_CHECKING:
    from compilescope.ui.history.page import HistoryPage

LAYOUT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the window is handed by the composition root."""

    state: AppState
    session: Session
    findings: Findings
    history: HistoryCommands
    theme: Theme
    settings: Settings


class MainWindow(QMainWindow):
    """`painted` comes once, after the first paint: what is slow to load waits for it."""

    painted = Signal()
    closing = Signal()

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts
        self._state = parts.state
        self._settings = parts.settings
        self._is_painted = False
        self.setWindowTitle("CompileScope")
        self.setAcceptDrops(True)
        self.setMinimumSize(1000, 640)
        self.traces = TraceCommands(parts.state, self)
        self.exports = ExportCommands(parts.state, self)
        self.calibration = CalibrationWatch(parts.session, self)
        self.actions_by_id = Actions(self._handlers(), parts.theme, self)
        self._build()
        self._connect()
        self.actions_by_id["show_log"].setChecked(parts.settings.shows_log)
        self._show_log()
        self.resize(1280, 800)
        self.reset_layout()
        if parts.settings.layout_version == LAYOUT_VERSION and parts.settings.geometry:
            restore(parts.settings.geometry, self)
            restore(parts.settings.layout, self._body, self.workspace.split)
        self._follow_activity()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def settings(self) -> Settings:
        """The settings as the window stands now."""
        return dataclasses.replace(
            self._settings,
            scheme=self._parts.theme.scheme.value,
            python=self._state.selection.python,
            budget_s=self._state.selection.budget_s,
            shows_log=self.actions_by_id["show_log"].isChecked(),
            geometry=remembered(self),
            layout=remembered(self._body, self.workspace.split),
            layout_version=LAYOUT_VERSION,
        )

    def open_script(self, path: Path) -> None:
        """Show a script. Nothing of it runs."""
        if self._state.is_busy:
            self.messages.show_error(BUSY, "Stop it first (Esc), then open another script.")
            return
        if not path.is_file():
            self.messages.show_error(f"There is no file {path}.")
            return
        self.messages.hide()
        self._settings = self._settings.with_recent(path.resolve())
        self._state.set_script(path.resolve())

    def show_welcome(self) -> None:
        if not self._state.is_busy:
            self._show_page(self.welcome)

    def ask_for_script(self) -> None:
        folder = str(self._state.script.parent) if self._state.script else str(Path.home())
        name, _ = QFileDialog.getOpenFileName(self, "Open a model script", folder, "Python (*.py);;All files (*)")
        if name:
            self.open_script(Path(name))

    def run(self) -> None:
        # a button that has the keyboard and is then disabled would hand it to a neighbour
        self.workspace.comparison.setFocus(Qt.FocusReason.OtherFocusReason)
        self._attempt(self._parts.session.compare)

    def inspect(self) -> None:
        self._attempt(self._parts.session.inspect)

    def calibrate(self) -> None:
        self._attempt(self._parts.session.calibrate)

    def stop(self) -> None:
        self._parts.session.stop()

    def append_log(self, run_id: str, at: float, lines: tuple[bytes, ...]) -> None:
        name = self._parts.session.name(run_id)
        if name:
            self.workspace.log.append(name, at, lines)

    def _attempt(self, do: Callable[[], None]) -> None:
        try:
            do()
        except AppError as error:
            self.messages.show_error(error.message, error.hint)
        else:
            self.messages.hide()

    @cached_property
    def history(self) -> HistoryPage:
        """Made when it is first wanted: the window opens without it."""
        from compilescope.ui.history.page import HistoryPage

        page = HistoryPage(self._parts.history, self._parts.theme)
        page.back_wanted.connect(self.show_history)
        self._pages.addWidget(page)
        return page

    def show_history(self) -> None:
        """The list of stored comparisons; a second time, back to what was there before."""
        is_wanted = self._pages.currentWidget() is not self.history
        self._show_page(self.history if is_wanted else self._home)
        if is_wanted:
            self.history.refresh()
            self.history.focus_search()

    def _show_origin(self, stored: Stored) -> None:
        """A stored comparison is shown: say when it ran, and what it wrote."""
        script = self._state.script
        name = script.name if script else "comparison"
        self.setWindowTitle(f"{name}, {date_text(stored.comparison.created)} – CompileScope")
        for run in stored.comparison.runs:
            for at, lines in log_portions(stored.log_tails.get(run.id, "")):
                self.workspace.log.append(run.label, at, [line.encode() for line in lines])

    def _show_difference(self) -> None:
        from compilescope.ui.difference import show_difference

        if self._state.comparison is not None:
            show_difference(self._state.comparison, self.workspace.comparison.chosen, self._parts.theme, self)

    def _compare_stored(self, found: tuple[Stored, Stored]) -> None:
        from compilescope.ui.difference import compare_stored

        if not compare_stored(found, self._parts.theme, self):
            self.messages.show_error("One of the comparisons has no run that told anything.")

    @property
    def _home(self) -> QWidget:
        return self.workspace if self._state.script or self._state.runs else self.welcome

    def _show_page(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.actions_by_id["history"].setChecked(page not in (self.workspace, self.welcome))

    def find_in_log(self) -> None:
        self.actions_by_id["show_log"].setChecked(True)
        self._show_log()
        self.workspace.focus_log_search()

    def _show_log(self) -> None:
        self.workspace.set_log_shown(self.actions_by_id["show_log"].isChecked())

    def reset_layout(self) -> None:
        self._body.setSizes([WIDTH, max(self.width() - WIDTH, 600)])
        self.workspace.reset_layout()

    def follow_system_theme(self) -> None:
        self._parts.theme.set_scheme(Scheme.SYSTEM)

    def _show_script(self) -> None:
        script = self._state.script
        opened = script or self._state.trace
        self.setWindowTitle(f"{opened.name} – CompileScope" if opened else "CompileScope")
        self._show_page(self.workspace if script else self.welcome)
        self.workspace.log.clear()
        self._follow_activity()

    def _begin_comparison(self) -> None:
        self._parts.findings.begin(self._state.comparison)
        if self._state.runs:
            self._show_page(self.workspace)
            self.workspace.log.clear()
        self._follow_activity()

    def _follow_activity(self) -> None:
        state = self._state
        is_idle = state.is_idle
        self.actions_by_id.follow(state)
        self.options.setEnabled(not state.is_busy)
        if is_idle and self.messages.text == BUSY:
            self.messages.hide()
        # in the log Escape leaves a filter; while something runs it has to stop that
        for action in self.workspace.log.findChildren(QAction):
            if action.shortcut() == QKeySequence(Qt.Key.Key_Escape):
                action.setEnabled(is_idle)

    def _judge(self, run_id: str) -> None:
        run = self._state.run(run_id)
        if run and run.is_over:
            self._parts.findings.conclude(run)

    def _show_recommended(self) -> None:
        """Once all is measured, the panes turn to the configuration that won."""
        found = self._parts.findings.recommendation
        if found and found.run_id and not self._state.is_busy:
            self._state.suggest_run(found.run_id)

    def _handlers(self) -> dict[str, Callable[[], None]]:
        return {
            "open": self.ask_for_script,
            "open_trace": self.traces.ask_and_open,
            "open_trace_folder": self.traces.ask_and_open_folder,
            "export_timeline": self.traces.export_timeline,
            "save_trace": self.traces.save_trace,
            "welcome": self.show_welcome,
            "export_pdf": self.exports.export_pdf,
            "export_json": self.exports.export_json,
            "export_csv": self.exports.export_csv,
            "export_markdown": self.exports.export_markdown,
            "difference": self._show_difference,
            "history": self.show_history,
            "quit": self._quit,
            "copy_markdown": self.exports.copy_markdown,
            "find": self.find_in_log,
            "run": self.run,
            "stop": self.stop,
            "inspect": self.inspect,
            "calibrate": self.calibrate,
            "show_log": self._show_log,
            "next_tab": self._next_tab,
            "reset_layout": self.reset_layout,
            "theme": self._parts.theme.toggle,
            "system_theme": self.follow_system_theme,
        }

    def _quit(self) -> None:
        self.close()

    def _next_tab(self) -> None:
        self.workspace.next_tab()

    def _connect(self) -> None:
        state = self._state
        state.script_changed.connect(self._show_script)
        state.comparison_changed.connect(self._begin_comparison)
        state.activity_changed.connect(self._follow_activity)
        state.selection_changed.connect(self._follow_activity)
        state.run_changed.connect(self._judge)
        self._parts.findings.recommended.connect(self._show_recommended)
        self._parts.session.failed.connect(self.messages.show_error)
        self.calibration.informed.connect(self.messages.show_info)
        self.calibration.failed.connect(self.messages.show_error)
        self.welcome.script_chosen.connect(self._open_named)
        self.welcome.open_wanted.connect(self.ask_for_script)
        self.script_panel.open_wanted.connect(self.ask_for_script)
        self.script_panel.inspect_wanted.connect(self.inspect)
        self.options.python_chosen.connect(self._ask_environment)
        self.workspace.answer.run_wanted.connect(self.run)
        self.workspace.answer.stop_wanted.connect(self.stop)
        self.workspace.answer.copied.connect(self.status.say)
        self._connect_keeping()
        self.traces.began.connect(self.messages.hide)
        self.traces.said.connect(self.status.say)
        self.traces.failed.connect(self.messages.show_error)
        self.traces.informed.connect(self.messages.show_info)
        self.workspace.compiler.question_asked.connect(self.messages.ask)
        self.workspace.compiler.said.connect(self.status.say)
        self.workspace.compiler.failed.connect(self.messages.show_error)

    def _connect_keeping(self) -> None:
        history, exports, table = self._parts.history, self.exports, self.workspace.comparison
        for commands in (history, exports):
            commands.said.connect(self.status.say)
            commands.failed.connect(self.messages.show_error)
        history.informed.connect(self.messages.show_info)
        history.asked.connect(self.messages.offer)
        history.compared.connect(self._compare_stored)
        history.opened.connect(self._show_origin)
        exports.written.connect(self._offer_to_open)
        table.repeat_wanted.connect(self._repeat)
        table.skip_wanted.connect(self._parts.session.skip)
        table.hurry_wanted.connect(self._parts.session.hurry)
        table.move_wanted.connect(self._parts.session.move)
        table.difference_wanted.connect(self._show_difference)

    def _repeat(self, run_id: str) -> None:
        self._attempt(lambda: self._parts.session.repeat(run_id))

    def _offer_to_open(self, message: str, answer: str, act: Callable[[], None]) -> None:
        self.messages.offer(message, ((answer, act),))

    def _open_named(self, name: str) -> None:
        self.open_script(Path(name))

    def _ask_environment(self) -> None:
        self._state.set_environment(None)
        self._parts.session.ask_environment()

    def _build(self) -> None:
        state, theme = self._state, self._parts.theme
        # connected before the panels are, so that findings are fresh when panels ask for them
        state.comparison_changed.connect(self._forget_findings)
        self.actions_by_id.fill(self.menuBar())
        self.messages = MessageBar(theme)
        self.script_panel = ScriptPanel(state)
        self.options = OptionsPanel(state)
        self.welcome = Welcome(self._settings.recent)
        self.workspace = Workspace(state, self._parts.findings, theme)
        self.status = StatusBar(state)
        self.setStatusBar(self.status)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.welcome)
        self._pages.addWidget(self.workspace)
        self._body = QSplitter(Qt.Orientation.Horizontal)
        self._body.addWidget(Side(self.script_panel, self.options))
        self._body.addWidget(self._pages)
        self._body.setStretchFactor(1, 1)
        self._body.setChildrenCollapsible(False)
        central = QWidget()
        layout = QVBoxLayout(central)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(TopBar(state, self.actions_by_id, theme))
        layout.addWidget(self.messages)
        layout.addWidget(self._body, 1)
        self.setCentralWidget(central)
        self._share_find()

    def _forget_findings(self) -> None:
        self._parts.findings.begin(self._state.comparison)

    def _share_find(self) -> None:
        """The window's own Ctrl+F finds in the log from everywhere; two of them would be ambiguous to Qt."""
        for action in self.workspace.log.actions():
            if action.shortcut() == QKeySequence(QKeySequence.StandardKey.Find):
                self.workspace.log.removeAction(action)

    # Qt overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            self.painted.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped(event.mimeData()):
            event.acceptProposedAction()
            self.script_panel.set_dragged(True)

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.script_panel.set_dragged(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self.script_panel.set_dragged(False)
        path = _dropped(event.mimeData())
        if path:
            event.acceptProposedAction()
            why_not = refusal(path)
            if why_not:
                self.messages.show_error(why_not, WANTED)
            elif is_trace_path(path):
                self.traces.open(path)
            else:
                self.open_script(path)


def _dropped(data: QMimeData) -> Path | None:
    """The one local file that is being dropped."""
    local = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return local[0] if len(local) == 1 else None
