"""What follows the runs of a comparison: play-offs between two that cannot be told apart."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from compilescope.domain.comparison import Comparison
from compilescope.domain.playoff import PlayOff, contest, outcome
from compilescope.domain.rematch import next_pair
from compilescope.domain.run import Run
from compilescope.engine.request import RunRequest, play_off_request
from compilescope.ui.background import Background
from compilescope.ui.state import AppState


class Recording(Protocol):
    """What keeps the play-offs of a comparison."""

    def note_play_offs(self, comparison: Comparison) -> None: ...


class PlayOffs(QObject):
    """Finds what to play and takes what came of it; both need figures, which are worked out in a thread."""

    wanted = Signal(object, object)  # RunRequest, Run
    changed = Signal()  # is_thinking
    decided = Signal()  # the comparison has one more
    failed = Signal(str, str)  # sentence, hint

    def __init__(self, state: AppState, recording: Recording, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._recording = recording
        self._requests: dict[str, RunRequest] = {}
        self._pair: tuple[Run, Run] | None = None
        self._background = Background("play-offs", self)
        self._background.failed.connect(self._give_up)
        self.is_thinking = False

    def close(self) -> None:
        self._background.close()

    def note(self, request: RunRequest) -> None:
        """A run that is made here and now, and so may play."""
        self._requests[request.id] = request

    def look(self) -> None:
        """Where all runs are over, find two that are worth a play-off."""
        comparison = self._state.comparison
        if comparison is not None and len(comparison.runs) > 1 and self._may_begin:
            self._think(True)
            self._background.do(partial(next_pair, comparison, set(self._requests)), self._begin)

    def conclude(self, run: Run) -> None:
        """A play-off is over."""
        self._state.set_play_off(None)
        if self._pair is not None:
            self._think(True)
            self._background.do(partial(outcome, run, *self._pair), self._take)

    def drop(self) -> None:
        """The user has stopped: nothing more is begun."""
        self.is_thinking = False

    @property
    def _may_begin(self) -> bool:
        """A run that was asked for meanwhile comes first, and may change what is worth it."""
        return self._state.play_off is None and all(run.is_over for run in self._state.runs)

    def _begin(self, pair: tuple[Run, Run] | None) -> None:
        if not self.is_thinking:
            return
        if pair is not None and self._may_begin:
            self._pair = pair
            request = play_off_request(*(self._requests[run.id] for run in pair))
            run = contest(request.id, *pair)
            self._state.set_play_off(run)
            self.wanted.emit(request, run)
        self._think(False)

    def _take(self, found: PlayOff | None) -> None:
        comparison, is_wanted = self._state.comparison, self.is_thinking
        if found is not None and comparison is not None:
            comparison.play_offs.append(found)
            self._recording.note_play_offs(comparison)
            self.decided.emit()
            if is_wanted and self._may_begin:
                self.look()
                return
        self._think(False)

    def _give_up(self, message: str, hint: str) -> None:
        self._think(False)
        self.failed.emit(message, hint)

    def _think(self, thinking: bool) -> None:
        self.is_thinking = thinking
        self.changed.emit()
