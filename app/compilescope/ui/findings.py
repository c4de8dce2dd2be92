"""Figures and verdicts for the panes, without making the GUI thread wait for a bootstrap."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from compilescope.domain.comparison import Comparison, Recommendation, Verdict, judge, recommend
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run

LIVE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A run's figures; `verdict` once it is over."""

    measures: Measures = field(default_factory=Measures)
    verdict: Verdict | None = None


class Findings(QObject):
    """The latest finding of each run.

    A run that goes on is measured here in passing, at most twice a second. One that is over no longer changes, so a
    thread may read it, and takes the time that the interval needs.
    """

    changed = Signal(str)  # run id
    judged = Signal(object)  # Run, once it is over and its figures are known
    recommended = Signal()
    _judged = Signal(str, object)  # run id, Finding
    _advised = Signal(object, object)  # Comparison, Recommendation | None

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._found: dict[str, Finding] = {}
        self._measured_at: dict[str, float] = {}
        self._pending: set[str] = set()
        self._comparison: Comparison | None = None
        self._recommendation: Recommendation | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="findings")
        self._judged.connect(self._take_finding)
        self._advised.connect(self._take_recommendation)

    @property
    def recommendation(self) -> Recommendation | None:
        return self._recommendation

    def begin(self, comparison: Comparison | None) -> None:
        """Forget what was found before."""
        self._comparison = comparison
        self._recommendation = None
        self._found.clear()
        self._measured_at.clear()
        self._pending.clear()

    def of(self, run: Run | None) -> Finding:
        """What is known of a run now."""
        if run is None or not run.processes:
            return self._found.get(run.id, Finding()) if run else Finding()
        if not run.is_over and time.monotonic() - self._measured_at.get(run.id, 0.0) > LIVE_S:
            self._measured_at[run.id] = time.monotonic()
            self._found[run.id] = Finding(measures=measure(run))
        return self._found.get(run.id, Finding())

    def conclude(self, run: Run) -> None:
        """Judge a run that has ended, and what the comparison comes to with it."""
        if run.is_over and run.id not in self._pending and self._comparison is not None:
            self._pending.add(run.id)
            self._pool.submit(self._judge, self._comparison, run)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _judge(self, comparison: Comparison, run: Run) -> None:
        """In the pool's thread."""
        self._judged.emit(run.id, Finding(measures=measure(run), verdict=judge(run, comparison.noise_floor)))
        self.judged.emit(run)
        self._advised.emit(comparison, recommend(comparison))

    def _take_finding(self, run_id: str, finding: Finding) -> None:
        if run_id in self._pending:
            self._found[run_id] = finding
            self.changed.emit(run_id)

    def _take_recommendation(self, comparison: Comparison, recommendation: Recommendation | None) -> None:
        if comparison is self._comparison:
            self._recommendation = recommendation
            self.recommended.emit()
