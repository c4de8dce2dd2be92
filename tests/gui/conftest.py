"""The whole window around a fake worker, and around the real one."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from compilescope.engine import tree
from compilescope.main import WindowApp
from compilescope.settings import Settings
from compilescope.store.history import History

FAKE_WORKER = Path(__file__).resolve().parents[1] / "fakes" / "fake_worker.py"
Kind = TypeVar("Kind", bound=QWidget)


class Desk:
    """A window in use: the words that tests are written in."""

    def __init__(self, qtbot: Any, folder: Path, program: Path | None) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.qtbot = qtbot
        self.folder = folder
        self.parts = WindowApp(app, Settings(scheme="light", budget_s=1.0), program)
        self.window = self.parts.window
        self.state = self.parts.state
        self.run_ids: list[str] = []
        self.state.comparison_changed.connect(self._note_runs)
        self.window.resize(1280, 800)
        self.window.show()
        qtbot.waitUntil(self.knows_environment, timeout=120_000)

    def knows_environment(self) -> bool:
        return self.state.environment is not None or bool(self.state.environment_problem)

    @property
    def store(self) -> History:
        """The history behind the window."""
        return self.parts.history.history

    def child(self, kind: type[Kind], name: str) -> Kind:
        found = self.window.findChild(kind, name)
        assert found is not None, f"there is no {kind.__name__} {name!r}"
        return found

    def script(self, mode: str, **options: Any) -> Path:
        """A script that tells the fake worker what to do; as Python it offers nothing."""
        path = self.folder / "script.py"
        path.write_text(json.dumps({"mode": mode, **options}))
        return path

    def run_fake(self, mode: str, **options: Any) -> None:
        self.window.open_script(self.script(mode, **options))
        self.window.run()

    def drop(self, path: Path) -> None:
        """Drag a file onto the window and let it go."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        action, button, key = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        QApplication.sendEvent(self.window, QDragEnterEvent(QPoint(500, 400), action, data, button, key))
        QApplication.sendEvent(self.window, QDropEvent(QPointF(500, 400), action, data, button, key))

    def wait(self, condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
        self.qtbot.waitUntil(condition, timeout=round(timeout_s * 1000))

    def is_over(self) -> bool:
        """Every run has ended and been judged, and the recommendation stands."""
        runs = self.state.runs
        return (
            bool(runs)
            and all(run.is_over for run in runs)
            and not self.state.is_busy
            and all(self.parts.findings.of(run).verdict for run in runs)
            and self.parts.findings.recommendation is not None
        )

    def cells(self, table: str) -> list[list[str]]:
        """What a table shows, row by row."""
        from compilescope.ui.panels.table import DataTable

        model = self.child(DataTable, table).model()
        rows, columns = range(model.rowCount()), range(model.columnCount())
        return [[str(model.index(row, column).data()) for column in columns] for row in rows]

    def left(self) -> list[int]:
        """Processes of any run that are still there."""
        return [pid for run_id in self.run_ids for pid in tree.marked(run_id)]

    def close(self) -> None:
        self.window.close()
        self.parts.close()

    def _note_runs(self) -> None:
        self.run_ids += [run.id for run in self.state.runs]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of its own for each test: what one leaves unfinished must not be offered to the next."""
    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def qtbot(qtbot: Any) -> Iterator[Any]:
    """pytest-qt's, which knows its widgets weakly: one that a test alone held could be collected after the test and
    before it is closed, in the middle of painting one of its children."""
    held, add = [], qtbot.addWidget

    def add_and_hold(widget: QWidget, **options: Any) -> None:
        held.append(widget)
        add(widget, **options)

    qtbot.addWidget = add_and_hold
    yield qtbot
    held.clear()


@pytest.fixture
def desk(qtbot: Any, tmp_path: Path) -> Iterator[Desk]:
    """A window whose worker is the fake one."""
    yield from _desk(qtbot, tmp_path, FAKE_WORKER)


@pytest.fixture
def open_desk(qtbot: Any, tmp_path: Path) -> Iterator[Callable[[], Desk]]:
    """Opens windows one after the other, or at once, over one history; all are closed at the end."""
    before = set(QApplication.topLevelWidgets())
    opened: list[Desk] = []

    def open_it() -> Desk:
        opened.append(Desk(qtbot, tmp_path, FAKE_WORKER))
        return opened[-1]

    yield open_it
    # all of them before any is looked for: charts come late, and those of one window are nothing that another left
    while opened:
        _take_away(opened.pop())
    _await_gone(qtbot, before)


@pytest.fixture
def real_desk(qtbot: Any, tmp_path: Path) -> Iterator[Desk]:
    """A window as it is shipped."""
    yield from _desk(qtbot, tmp_path, None)


def _desk(qtbot: Any, folder: Path, program: Path | None) -> Iterator[Desk]:
    before = set(QApplication.topLevelWidgets())
    opened = [Desk(qtbot, folder, program)]
    yield opened[0]
    _take_away(opened.pop())
    _await_gone(qtbot, before)


def _take_away(desk: Desk) -> None:
    desk.close()
    assert desk.left() == []
    desk.window.deleteLater()
    desk.parts.deleteLater()


def _await_gone(qtbot: Any, before: set[QWidget]) -> None:
    """Wait until no window is left but those that were there before."""
    left: set[QWidget] = set()
    for _ in range(20):
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        # menus of the plotting library hold each other, and go when Python next collects its garbage
        left = {widget for widget in QApplication.topLevelWidgets() if not isinstance(widget, QMenu)} - before
        if not left:
            break
        gc.collect()
        qtbot.wait(10)
    assert not left, [f"{type(widget).__name__} {widget.objectName()} {widget.parent()}" for widget in left]
    names = {thread.name for thread in threading.enumerate()}
    assert "supervisor" not in names
