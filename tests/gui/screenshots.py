"""Pictures of the window, from a real comparison: `python tests/gui/screenshots.py FOLDER [SCRIPT]`.

The script is copied to ~/models of a home of its own, so that no picture shows where it was taken.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("COMPILESCOPE_HOME", tempfile.mkdtemp(prefix="compilescope-pictures-"))
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "app"))

from PySide6.QtCore import QEventLoop, QTimer  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from compilescope.main import WindowApp  # noqa: E402
from compilescope.settings import Settings  # noqa: E402
from compilescope.ui.theme import Scheme  # noqa: E402

SIZES = ((1280, 800), (1920, 1080))
README_SIZE = (1440, 900)


class Photographer:
    """Takes each state in both themes and both sizes."""

    def __init__(self, folder: Path, budget_s: float) -> None:
        self.folder = folder
        self.parts = WindowApp(QApplication(sys.argv[:1]), Settings(scheme="light", budget_s=budget_s))
        self.window = self.parts.window
        self.window.show()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        for _ in range(round(seconds * 20)):
            if until():
                return
            loop = QEventLoop()
            QTimer.singleShot(50, loop.quit)
            loop.exec()

    def take(self, name: str) -> None:
        for scheme in (Scheme.LIGHT, Scheme.DARK):
            self.parts.theme.set_scheme(scheme)
            for width, height in SIZES:
                self._take(f"{name}_{scheme.value}_{width}.png", width, height)

    def _take(self, name: str, width: int, height: int) -> None:
        self.window.resize(width, height)
        self.wait(0.3)
        self.window.grab().save(str(self.folder / name))

    def is_over(self) -> bool:
        state = self.parts.state
        return bool(state.runs) and not state.is_busy and self.parts.findings.recommendation is not None

    def tour(self, script: Path, modes: tuple[str, ...]) -> None:
        """Welcome, script, running, finished with every pane; the README's picture last."""
        state = self.parts.state
        self.wait(120, lambda: state.environment is not None)
        self.take("welcome")
        self.window.open_script(script)
        self.window.options.choose_modes(modes)
        self.take("script")
        self.window.run()
        self.wait(120, lambda: bool(state.runs[0].story and state.runs[0].story.phases))
        self.take("running")
        self.wait(900, self.is_over)
        self.wait(1)
        tabs = self.window.workspace.tabs
        for index in range(tabs.count()):
            if tabs.isTabVisible(index):
                tabs.setCurrentIndex(index)
                self.take(f"finished_{tabs.tabText(index).split('  ')[0].replace(' ', '_').lower()}")
        self.window.show_history()
        self.take("history")
        self.window.show_history()
        tabs.setCurrentIndex(0)
        self.parts.theme.set_scheme(Scheme.DARK)
        self._take("readme.png", *README_SIZE)

    def close(self) -> None:
        self.window.close()
        self.parts.close()


def neutral(script: Path) -> Path:
    """A copy in a folder that says nothing of this machine."""
    home = Path(tempfile.mkdtemp(prefix="compilescope-home-"))
    os.environ["HOME"] = os.environ["USERPROFILE"] = str(home)
    (home / "models").mkdir()
    return Path(shutil.copy(script, home / "models"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("script", type=Path, nargs="?", default=ROOT / "resources" / "examples" / "pointwise_fusion.py")
    parser.add_argument("--mode", action="append", default=[])
    parser.add_argument("--budget", type=float, default=4.0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    script = neutral(options.script)
    photographer = Photographer(options.folder, options.budget)
    try:
        photographer.tour(script, tuple(options.mode) or ("default", "reduce-overhead"))
    finally:
        photographer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
