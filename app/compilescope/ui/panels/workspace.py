"""The centre of the window once there is a script: answer, comparison, details of one run, log."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from compilescope.ui.compiler.panes import CompilerPanes
from compilescope.ui.findings import Findings
from compilescope.ui.log.pane import LogPane
from compilescope.ui.panels.answer_card import AnswerCard
from compilescope.ui.panels.breaks_pane import BreaksPane
from compilescope.ui.panels.chart_slot import ChartSlot
from compilescope.ui.panels.charts_pane import ChartsPane
from compilescope.ui.panels.comparison_panel import ComparisonPanel
from compilescope.ui.panels.log_split import LogSplit
from compilescope.ui.panels.plan_panel import PlanPanel
from compilescope.ui.panels.recompiles_pane import RecompilesPane
from compilescope.ui.panels.source_view import SourceView
from compilescope.ui.panels.timing_pane import TimingPane
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme

REFRESH_MS = 250
NO_SCRIPT = "# A trace holds no script. A click on a line elsewhere opens its file here, if this machine has it.\n"


class Workspace(QWidget):
    """A pane is there when it has something to show: before the first run that is the source alone."""

    def __init__(self, state: AppState, findings: Findings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._shows_log = True
        self._follows = True
        # a tab's new name lays out the whole window: not twenty times a second
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(REFRESH_MS)
        self._soon.timeout.connect(self.refresh)
        self._build(findings, theme)
        self._connect()
        self.refresh()

    def refresh(self) -> None:
        """Which panes there are, and what their tabs say."""
        run = self._state.shown
        story = run.story if run else None
        has_runs = bool(self._state.runs)
        breaks = story.break_count if story else 0
        recompiles = story.recompile_count if story else 0
        # one saved trace has nothing to stand beside
        self.comparison.setVisible(has_runs and not (self._state.trace and len(self._state.runs) == 1))
        has_times = has_runs and not (run and run.is_trace)
        self._show_tab(self.timing, has_times)
        self._show_tab(self.charts, has_times)
        for pane in (self.timeline, self.breaks):
            self._show_tab(pane, has_runs)
        has_recompiles = bool(story and (story.recompiles or story.recompile_limits))
        self._show_tab(self.recompiles, has_recompiles)
        self._name_tab(self.breaks, "Graph breaks", breaks)
        self._name_tab(self.recompiles, "Recompiles", recompiles)
        for tab in self.compiler.tabs:
            self._show_tab(tab.pane, run is not None and tab.is_wanted(run))
            self._name_tab(tab.pane, tab.title, tab.count(run) if run else 0)
        self._show_log()
        self._mark_source()
        self._follow()

    def _refresh_soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def set_log_shown(self, is_shown: bool) -> None:
        self._shows_log = is_shown
        self._show_log()

    def focus_log_search(self) -> None:
        self.log.focus_search()

    def show_line(self, file: str, line: int) -> None:
        """Open a line in the source pane."""
        self._stay()
        self.source.show_file(Path(file), self._state.text_then(Path(file)))
        self._mark_source()
        self.source.go_to(line)
        self.tabs.setCurrentWidget(self.source)
        self.source.setFocus(Qt.FocusReason.OtherFocusReason)

    def next_tab(self) -> None:
        self._stay()
        count = self.tabs.count()
        for step in range(1, count + 1):
            index = (self.tabs.currentIndex() + step) % count
            if self.tabs.isTabVisible(index):
                self.tabs.setCurrentIndex(index)
                return

    def _follow(self) -> None:
        """Until the user has chosen a pane: the timeline while the first configuration compiles, then its timing."""
        run = self._state.shown
        if not self._follows or run is None or not self._state.is_busy:
            return
        stage = run.current_stage
        is_timed = bool(stage and stage.name in ("warm_up", "measure", "profile", "done")) or len(run.processes) > 1
        is_compiling = bool(stage and stage.name in ("compile", "check"))
        if is_timed:
            self.tabs.setCurrentWidget(self.timing)
        elif is_compiling:
            self.tabs.setCurrentWidget(self.timeline)

    def _stay(self) -> None:
        """The user has chosen a pane."""
        self._follows = False

    def _show_log(self) -> None:
        has_log = bool(self._state.runs) and self._state.trace is None
        self.log.setVisible(self._shows_log and (has_log or self._state.inspection_error is not None))

    def _name_tab(self, pane: QWidget, title: str, count: int) -> None:
        index, text = self.tabs.indexOf(pane), f"{title}  {count}" if count else title
        # even the same text again makes Qt lay out and paint the whole window anew
        if self.tabs.tabText(index) != text:
            self.tabs.setTabText(index, text)

    def _show_tab(self, pane: QWidget, is_shown: bool) -> None:
        index = self.tabs.indexOf(pane)
        if self.tabs.isTabVisible(index) != is_shown:
            self.tabs.setTabVisible(index, is_shown)

    def _mark_source(self) -> None:
        run, path = self._state.shown, str(self.source.path or "")
        story = run.story if run else None
        lines: dict[int, str] = {}
        for row in story.graph_breaks.values() if story else ():
            if row.event.line and row.event.file == path:
                lines[row.event.line] = "warn"
        if run and run.error and run.error.line and run.error.file == path:
            lines[run.error.line] = "bad"
        self.source.mark(lines)

    def _show_script(self) -> None:
        script = self._state.script
        self.source.show_file(script, self._state.text_then(script) if script or not self._state.trace else NO_SCRIPT)
        self.tabs.setCurrentWidget(self.source)
        self.refresh()

    def _show_comparison(self) -> None:
        self._follows = True
        self.refresh()
        if self._state.runs and self.tabs.currentWidget() is self.source:
            self.tabs.setCurrentWidget(self.timeline if self._state.trace else self.timing)

    def _connect(self) -> None:
        self._state.script_changed.connect(self._show_script)
        self._state.comparison_changed.connect(self._show_comparison)
        self._state.run_changed.connect(self._refresh_soon)
        self._state.shown_run_changed.connect(self.refresh)
        self._state.inspection_changed.connect(self.refresh)
        self.tabs.tabBarClicked.connect(self._stay)
        self.timing.line_wanted.connect(self.show_line)
        self.breaks.line_wanted.connect(self.show_line)
        self.recompiles.line_wanted.connect(self.show_line)
        self.compiler.line_wanted.connect(self.show_line)

    def _build(self, findings: Findings, theme: Theme) -> None:
        self.answer = AnswerCard(self._state, findings, theme)
        self.plan = PlanPanel(self._state)
        self.comparison = ComparisonPanel(self._state, findings, theme)
        self.timing = TimingPane(self._state, findings, theme)
        self.charts = ChartsPane(self._state, findings, theme)
        self.timeline = ChartSlot(self._state)
        self.breaks = BreaksPane(self._state, theme)
        self.recompiles = RecompilesPane(self._state, theme)
        self.compiler = CompilerPanes(self._state, theme, self)
        self.source = SourceView(theme)
        self.log = LogPane(theme)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setUsesScrollButtons(True)
        self.tabs.tabBar().setAccessibleName("Panes of the run")
        for pane, title in (
            (self.timing, "Timing"),
            (self.charts, "Charts"),
            (self.timeline, "Compile timeline"),
            (self.breaks, "Graph breaks"),
            (self.recompiles, "Recompiles"),
            *((tab.pane, tab.title) for tab in self.compiler.tabs),
            (self.source, "Source"),
        ):
            self.tabs.addTab(pane, title)
        self.split = LogSplit(self.tabs, self.log)
        margin = QVBoxLayout()
        margin.setContentsMargins(10, 10, 10, 8)
        margin.addWidget(self.answer)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(margin)
        layout.addWidget(self.plan)
        layout.addWidget(self.comparison)
        layout.addWidget(self.split, 1)

    def reset_layout(self) -> None:
        self.split.reset()

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.answer.fit_height()
        self.comparison.fit_height()
