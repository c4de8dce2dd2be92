"""The real window around a fake worker, for benchmarks: opened, loaded, and run until something holds."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["COMPILESCOPE_HOME"] = tempfile.mkdtemp(prefix="compilescope-benchmark-")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "app"))

from PySide6.QtCore import QElapsedTimer, QEventLoop, QTimer  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from compilescope import main, settings  # noqa: E402

FAKE_WORKER = ROOT / "tests" / "fakes" / "fake_worker.py"


class LiveWindow:
    """The application as `compilescope` makes it; only the worker is another."""

    def __init__(self) -> None:
        self.app = QApplication(sys.argv[:1])
        self.parts = main.WindowApp(self.app, settings.Settings(), program=FAKE_WORKER)
        self.parts.settled.connect(main.spare_full_collections)
        self.window = self.parts.window
        self.window.resize(1280, 800)
        self.window.show()
        self.wait_until(lambda: "pyqtgraph" in sys.modules and self.parts.state.environment is not None)
        self.wait(1.0)

    @property
    def log(self) -> Any:
        return self.window.workspace.log

    def run(self, **options: Any) -> None:
        """Start a comparison of one configuration; `options` are the fake worker's."""
        script = Path(os.environ["COMPILESCOPE_HOME"], "script.py")
        script.write_text(json.dumps(options))
        self.window.open_script(script)
        self.window.run()
        self.wait_until(lambda: bool(self.parts.state.runs) and self.parts.state.is_busy)

    def wait_until(self, condition: Callable[[], bool], timeout: float = 120.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("waited in vain")
            self.wait(0.05)

    def wait(self, seconds: float) -> None:
        loop = QEventLoop()
        QTimer.singleShot(round(seconds * 1000), loop.quit)
        loop.exec()

    def close(self) -> None:
        self.window.close()
        self.parts.close()


class Heartbeat:
    """Beats every 5 ms in the GUI thread; a longer gap means that the event loop stood still."""

    MS = 5

    def __init__(self) -> None:
        self.gaps_ms: list[float] = []
        self._clock = QElapsedTimer()
        self._timer = QTimer()
        self._timer.setTimerType(self._timer.timerType().PreciseTimer)
        self._timer.setInterval(self.MS)
        self._timer.timeout.connect(self._beat)
        self._clock.start()
        self._timer.start()

    def stop(self) -> list[float]:
        """Every gap beyond the beat itself, in milliseconds."""
        self._timer.stop()
        return [max(gap - self.MS, 0.0) for gap in self.gaps_ms]

    def _beat(self) -> None:
        self.gaps_ms.append(self._clock.nsecsElapsed() / 1e6)
        self._clock.start()
