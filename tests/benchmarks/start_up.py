"""From the start of the process to the first painted window, against a bare PySide6 and pyqtgraph window.

The two are started in turns, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Figure, median, report

ROOT = Path(__file__).resolve().parents[2]
RATIO = 1.0

BARE = """
import time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import pyqtgraph

def told():
    print(time.monotonic(), flush=True)
    app.quit()

class Plot(pyqtgraph.PlotWidget):
    is_painted = False
    def paintEvent(self, event):
        super().paintEvent(event)
        if not self.is_painted:
            self.is_painted = True
            QTimer.singleShot(0, told)

app = QApplication([])
plot = Plot()
plot.resize(1280, 800)
plot.plot([1, 3, 2])
plot.show()
app.exec()
"""

# the first thing after the window and all in it have been painted, before anything that waits for that
OURS = """
import os, sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

def told():
    print(time.monotonic(), flush=True)
    os._exit(0)

def run_and_watch(app):
    from compilescope.ui.main_window import MainWindow
    paint = MainWindow.paintEvent

    def paint_and_tell(window, event):
        QTimer.singleShot(0, told)
        paint(window, event)

    MainWindow.paintEvent = paint_and_tell
    return run()

run, QApplication.exec = QApplication.exec, run_and_watch
from compilescope.cli import main
sys.exit(main([]))
"""


def start(code: str, home: str) -> float:
    """Seconds from the start of the process until it says that it has painted."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "app"), "COMPILESCOPE_HOME": home}
    # bytecode is kept, as it is for a user
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = home
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")):
        environment["QT_QPA_PLATFORM"] = "offscreen"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True, text=True, timeout=60
    )
    return float(done.stdout.split()[-1]) - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as home:
        start(OURS, home), start(BARE, home)  # files into memory, bytecode onto the disk
        for _ in range(pairs):
            ours.append(start(OURS, home))
            bare.append(start(BARE, home))
    figures = [
        Figure(name="bare PySide6 and pyqtgraph window, median", value=median(bare) * 1e3, unit="ms"),
        Figure(name="CompileScope's window, median", value=median(ours) * 1e3, unit="ms"),
        Figure(name="ratio of the medians", value=median(ours) / median(bare), unit="", most=RATIO),
    ]
    return report(f"Start-up, {pairs} pairs", figures)


if __name__ == "__main__":
    sys.exit(main())
