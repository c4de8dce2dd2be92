"""From the engine's feed to signals of the GUI thread: drained by a timer, folded into runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from compilescope.domain.events import Ended
from compilescope.domain.run import Run
from compilescope.engine.feed import Feed, FeedItem, LogLines, RunEvents, RunStarted

DRAIN_MS = 50
SLICE_S = 0.02


class Bridge(QObject):
    """Folds what arrives into the runs that `watch` named. One signal a run and tick, however much arrived."""

    run_started = Signal(str)  # run id
    run_changed = Signal(str)
    run_ended = Signal(str)
    log_arrived = Signal(str, float, object)  # run id, seconds since the run began, tuple[bytes, ...]

    def __init__(self, feed: Feed, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._feed = feed
        self._runs: dict[str, Run] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self.drain)

    def start(self) -> None:
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def watch(self, run: Run) -> None:
        """Fold this run's events from now on, until it has ended."""
        self._runs[run.id] = run

    def drain(self) -> None:
        """Take what has arrived, within the time that a tick may take."""
        changed: dict[str, bool] = {}
        for item in self._arrived():
            match item:
                case RunStarted(run_id=run_id) if run_id in self._runs:
                    # a device's last run ends before its next one begins
                    self._tell(changed)
                    changed = {}
                    self.run_started.emit(run_id)
                case RunEvents(run_id=run_id) if run_id in self._runs:
                    changed[run_id] = self._fold(item) or changed.get(run_id, False)
                case LogLines():
                    self.log_arrived.emit(item.run_id, item.at, item.lines)
        self._tell(changed)

    def _tell(self, changed: Mapping[str, bool]) -> None:
        """Runs that have grown, and whether they are over."""
        for run_id, is_over in changed.items():
            self.run_changed.emit(run_id)
            if is_over:
                del self._runs[run_id]
                self.run_ended.emit(run_id)

    def _arrived(self) -> Iterator[FeedItem]:
        """Items for about as long as a tick may take; in a flood one item alone can be thousands of lines."""
        deadline = time.perf_counter() + SLICE_S
        while items := self._feed.drain(1):
            yield from items
            if time.perf_counter() >= deadline:
                return

    def _fold(self, item: RunEvents) -> bool:
        run = self._runs[item.run_id]
        for event in item.events:
            run.apply(event)
        return any(isinstance(event, Ended) for event in item.events)
