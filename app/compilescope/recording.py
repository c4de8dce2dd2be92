"""What the engine tells, kept in the history on its way to the one who shows it."""

from __future__ import annotations

import platform
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from compilescope.domain.comparison import Comparison
from compilescope.domain.keyhistory import Sources
from compilescope.domain.logtext import timed_log
from compilescope.domain.run import Run
from compilescope.engine.cache_folders import in_user_cache
from compilescope.engine.feed import Feed, FeedItem, LogLines, RunEvents, RunStarted
from compilescope.engine.request import RunRequest
from compilescope.engine.run_folders import sweep

if TYPE_CHECKING:
    from compilescope.store.history import History

TAIL_BYTES = 64 * 1024


def key_sources(history: History | None) -> Sources:
    """What explains a cache key besides the runs at hand: the history, and what the user's own cache holds."""
    return Sources(history=history, in_own_cache=in_user_cache)


def sweep_runs(history: History) -> None:
    """Remove the files of runs that the history does not know, as those of a killed application."""
    from compilescope.store.database import has_set_aside

    # a history that is kept in memory, or that began anew, does not know the runs of the file
    if history.path is not None and not has_set_aside(history.path):
        sweep(history.run_ids())


class RecordedFeed(Feed):
    """A feed whose events are stored before anyone drains them: in the engine's threads, so that a reader that hangs
    or is slow loses nothing.

    Only the runs that `begin` named are kept. `open_history` is called when the history is first needed, by the thread
    that calls `begin`; where it gives None, nothing is kept.
    """

    def __init__(self, open_history: Callable[[], History | None]) -> None:
        super().__init__()
        self._open_history = open_history
        self._lock = threading.Lock()
        self._tails: dict[str, _Tail] = {}
        # of each run whose machine has been looked up, the comparison that it is judged in
        self._heeded: dict[str, Comparison] = {}

    @cached_property
    def history(self) -> History | None:
        return self._open_history()

    @property
    def is_history_open(self) -> bool:
        return "history" in self.__dict__

    def begin(self, comparison: Comparison, requests: Sequence[RunRequest]) -> None:
        """Keep these runs of a new comparison. Call it before they are submitted."""
        if self.history is not None:
            self.history.start_comparison(comparison, requests)
            self._keep(requests)

    def begin_more(self, comparison_id: str, request: RunRequest, label: str) -> None:
        """Keep one more run of a comparison that is stored already."""
        if self.history is not None:
            self.history.add_run(comparison_id, request, label)
            self._keep([request])

    def arrange(self, comparison_id: str, run_ids: Sequence[str]) -> None:
        """The runs of a comparison that is stored have another order."""
        if self.history is not None:
            self.history.arrange(comparison_id, run_ids)

    def note_play_offs(self, comparison: Comparison) -> None:
        """A comparison that is stored has another play-off."""
        if self.history is not None:
            self.history.set_play_offs(comparison)

    def resume(self, requests: Sequence[RunRequest]) -> None:
        """Keep runs that are stored and have been interrupted."""
        if self.history is not None:
            self._keep(requests)

    def keeps(self, run_id: str) -> bool:
        """Whether this run is being stored."""
        with self._lock:
            return run_id in self._tails

    def heed_calibration(self, comparison: Comparison, run: Run) -> None:
        """Where the run's machine was found to be less steady than is assumed, judge the comparison by that."""
        story = run.story
        if story is None or story.environment is None or run.id in self._heeded:
            return
        self._heeded[run.id] = comparison
        # imported here: the first paint does not wait for what measures
        from compilescope.domain.calibration import Machine
        from compilescope.store.calibrations import calibration_for

        known = calibration_for(Machine.of(platform.node(), story.environment))
        if known is None or known.noise_floor <= comparison.noise_floor:
            return
        comparison.noise_floor = known.noise_floor
        if self.history is not None:
            self.history.set_noise_floor(comparison.id, known.noise_floor)

    def finish(self, run: Run) -> None:
        """The run is over: its figures go into the list. Any thread; takes the time that judging takes."""
        tail = self._take_tail(run.id)
        if self.history is not None and tail is not None:
            heeded = self._heeded.get(run.id)
            floor = heeded.noise_floor if heeded else None
            self.history.finish_run(run, log_tail=tail.text, noise_floor=floor)

    def let_go(self) -> None:
        """Record nothing from now on: what is still going on counts as interrupted, and can be resumed."""
        with self._lock:
            self._tails.clear()

    def put(self, item: FeedItem) -> None:
        with self._lock:
            tail = self._tails.get(item.run_id)
        if tail is not None and self.history is not None:
            match item:
                case RunStarted(run_id=run_id):
                    self.history.start_run(run_id)
                case RunEvents(run_id=run_id, events=events):
                    self.history.append(run_id, events)
                case LogLines(lines=lines, at=at):
                    tail.extend(at, lines)
        super().put(item)

    def _keep(self, requests: Sequence[RunRequest]) -> None:
        with self._lock:
            self._tails |= {request.id: _Tail() for request in requests}

    def _take_tail(self, run_id: str) -> _Tail | None:
        with self._lock:
            return self._tails.pop(run_id, None)


class _Tail:
    """The last lines of a log, as far as the history keeps them. Filled by one thread at a time."""

    def __init__(self) -> None:
        self._lines: deque[tuple[float, bytes]] = deque()
        self._size = 0

    def extend(self, at: float, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._lines.append((at, line))
            self._size += len(line) + 1
        while self._size > TAIL_BYTES and len(self._lines) > 1:
            self._size -= len(self._lines.popleft()[1]) + 1

    @property
    def text(self) -> str:
        return timed_log((at, line.decode("utf-8", "replace")) for at, line in self._lines)
