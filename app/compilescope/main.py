"""The window's composition root: builds everything once and hands it over."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6 import __version__ as qt_version
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from compilescope import crash, paths, settings
from compilescope.domain.errors import UsageError
from compilescope.domain.keyhistory import Sources
from compilescope.engine.supervisor import Supervisor
from compilescope.recording import RecordedFeed, key_sources
from compilescope.ui import charts
from compilescope.ui.bridge import Bridge
from compilescope.ui.findings import Findings
from compilescope.ui.keeping import HistoryCommands
from compilescope.ui.main_window import MainWindow, Parts
from compilescope.ui.selection import Selection
from compilescope.ui.session import Session
from compilescope.ui.state import AppState
from compilescope.ui.theme import Scheme, Theme

if TYPE_CHECKING:
    from compilescope.store.history import History

JOIN_S = 3.0


def run_window(script: Path | None = None) -> int:
    """Show the window, with `script` opened in it, until it is closed. The exit status."""
    refuse_broken_qt(qt_version, sys.version_info[:2])
    app = QApplication(sys.argv[:1])
    app.setApplicationName("CompileScope")
    app.setDesktopFileName("compilescope")
    app.setWindowIcon(_window_icon())
    path = paths.settings() / "settings.json"
    known, problem = settings.load(path)
    window_app = WindowApp(app, known)
    crash_log = crash.with_crash_log(paths.data() / "crash.log", app, window_app.window.messages.show_details)
    if problem:
        window_app.window.messages.show_info(problem)
    if script is not None:
        window_app.window.open_script(script)
    window_app.settled.connect(spare_full_collections)
    window_app.window.show()
    status = app.exec()
    window_app.close()
    _remember(window_app.kept, path)
    crash_log.uninstall()
    return status


def refuse_broken_qt(version: str, python: tuple[int, ...]) -> None:
    """PySide6 6.12.0 loses references to None and True on Python before 3.12, and aborts within seconds."""
    if version == "6.12.0" and python < (3, 12):
        raise UsageError(
            f"PySide6 6.12.0 aborts on Python {python[0]}.{python[1]}.",
            hint="Install another PySide6 (pip install 'PySide6-Essentials!=6.12.0'), or use Python 3.12.",
        )


def spare_full_collections() -> None:
    """Leave what is loaded by now, and the rows of runs, to reference counts.

    A full garbage collection looks at all of them, finds no cycle, and stops the window for a tenth of a second.
    """
    gc.freeze()
    gc.set_threshold(2_000, 5, 1_000)


class WindowApp(QObject):
    """Owns the window and what works behind it. `program`: the worker, unless it is ours.

    `settled` comes when everything has been loaded.
    """

    settled = Signal()

    def __init__(self, app: QApplication, known: settings.Settings, program: Path | None = None) -> None:
        super().__init__()
        self.feed = RecordedFeed(_open_history)
        self.engine = Supervisor(self.feed, program=program)
        self.theme = Theme(_scheme(known.scheme), self)
        self.state = AppState(Selection(python=known.python, budget_s=known.budget_s), self)
        self.bridge = Bridge(self.feed, self)
        self.findings = Findings(self)
        self.session = Session(self.state, self.bridge, self.engine, self.feed)
        self.session.play_offs.decided.connect(self.findings.reconsider)
        self.history = HistoryCommands(self.feed, self.state, self.findings, self.session)
        self.window = MainWindow(
            Parts(
                state=self.state,
                session=self.session,
                findings=self.findings,
                history=self.history,
                theme=self.theme,
                settings=known,
            )
        )
        self.window.workspace.compiler.key_sources = self.window.exports.key_sources = self._key_sources
        # only now: with a style sheet in force, each widget that is put into a layout styles all that it holds anew
        self.theme.apply(app)
        self.kept = known
        self._charts = ChartLoader(self)
        self._charts.loaded.connect(self._install_charts)
        self._charts.failed.connect(self.window.messages.show_error)
        self.bridge.log_arrived.connect(self.window.append_log)
        self.window.painted.connect(self._begin_soon)
        self.window.closing.connect(self._keep_settings)

    def close(self) -> None:
        """End every process; five seconds at most."""
        self.history.close()
        self.session.close()
        self.findings.close()
        self.window.exports.close()
        self.window.traces.close()
        self.window.workspace.compiler.close()
        self._charts.join()
        if self.feed.is_history_open:
            self.history.history.close()

    def _key_sources(self) -> Sources:
        return key_sources(self.feed.history)

    def _begin_soon(self) -> None:
        QTimer.singleShot(0, self._begin)

    def _begin(self) -> None:
        """What the first paint did not have to wait for."""
        gc.enable()
        self.bridge.start()
        self.session.ask_environment()
        self._charts.start()
        self.history.start()

    def _install_charts(self) -> None:
        from compilescope.ui.charts.comparison import ComparisonChart
        from compilescope.ui.charts.latency import LatencyChart
        from compilescope.ui.charts.timeline import Timeline

        workspace = self.window.workspace
        workspace.timing.chart.install(LatencyChart(self.theme))
        workspace.timeline.install(Timeline(self.theme))
        workspace.comparison.install_chart(ComparisonChart(self.theme))
        self.settled.emit()

    def _keep_settings(self) -> None:
        self.kept = self.window.settings


class ChartLoader(QObject):
    """Imports the plotting library in a thread: it takes half a second, and creates no Qt objects."""

    loaded = Signal()
    failed = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._thread = threading.Thread(target=self._load, name="charts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Wait for an import in progress: what it tells must not arrive after its receiver is gone."""
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _load(self) -> None:
        try:
            charts.load()
        except ImportError as error:
            self.failed.emit(f"Charts are missing: {error}.")
        else:
            self.loaded.emit()


def _open_history() -> History:
    # imported here: the first paint does not wait for the database
    from compilescope.store.history import History

    return History()


def _scheme(name: str) -> Scheme:
    return Scheme(name) if name in {scheme.value for scheme in Scheme} else Scheme.SYSTEM


def _remember(kept: settings.Settings, path: Path) -> None:
    try:
        settings.save(kept, path)
    except OSError as error:
        print(f"The settings could not be saved: {error}", file=sys.stderr)


def _window_icon() -> QIcon:
    return QIcon(str(paths.resources() / "icons" / "compilescope.svg"))
