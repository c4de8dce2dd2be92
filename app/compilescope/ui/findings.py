"""Figures and verdicts for the panes, without making the GUI thread wait for a bootstrap."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from compilescope.domain.comparison import Comparison, Recommendation, Verdict, recommend
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.verdict import judge_with_fault

LIVE_S = 0.5
# of the GUI thread's time, what the figures of a run that goes on may take: long runs are measured more seldom
LIVE_SHARE = 0.03


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A run's figures; `verdict` once it is over, or `problem`: why there is none."""

    measures: Measures = field(default_factory=Measures)
    verdict: Verdict | None = None
    problem: str = ""


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
        self._measure_next: dict[str, float] = {}
        self._concluded: set[str] = set()
        self._unjudged: set[str] = set()
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
        self._measure_next.clear()
        self._concluded.clear()
        self._unjudged.clear()

    def of(self, run: Run | None) -> Finding:
        """What is known of a run now."""
        if run is None or not run.processes:
            return self._found.get(run.id, Finding()) if run else Finding()
        began = time.monotonic()
        if not run.is_over and began >= self._measure_next.get(run.id, 0.0):
            self._found[run.id] = Finding(measures=measure(run))
            took = time.monotonic() - began
            self._measure_next[run.id] = began + max(LIVE_S, took / LIVE_SHARE)
        return self._found.get(run.id, Finding())

    def conclude(self, run: Run) -> None:
        """Judge a run that has ended, and what the comparison comes to with it."""
        if run.is_over and run.id not in self._concluded and self._comparison is not None:
            self._concluded.add(run.id)
            self._unjudged.add(run.id)
            # what was recommended so far did not know this run
            self._recommendation = None
            self._pool.submit(self._judge, self._comparison, run)

    def reconsider(self) -> None:
        """The comparison knows more than its runs tell."""
        self._recommendation = None
        if not self._unjudged and self._comparison is not None:
            self._pool.submit(self._advise, self._comparison)

    def close(self) -> None:
        """Wait for the judging that is under way: what it tells must not arrive after its receivers are gone."""
        self._unjudged.clear()
        self._comparison = None
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _judge(self, comparison: Comparison, run: Run) -> None:
        """In the pool's thread."""
        verdict, problem = judge_with_fault(run, comparison.noise_floor)
        self._judged.emit(run.id, Finding(measures=measure(run), verdict=verdict, problem=problem))
        self.judged.emit(run)

    def _advise(self, comparison: Comparison) -> None:
        """In the pool's thread."""
        self._advised.emit(comparison, recommend(comparison))

    def _take_finding(self, run_id: str, finding: Finding) -> None:
        if run_id not in self._unjudged:
            return
        self._unjudged.discard(run_id)
        self._found[run_id] = finding
        self.changed.emit(run_id)
        if not self._unjudged and self._comparison is not None:
            self._pool.submit(self._advise, self._comparison)

    def _take_recommendation(self, comparison: Comparison, recommendation: Recommendation | None) -> None:
        # another run may have ended meanwhile, and a recommendation that knows it is on its way
        if comparison is self._comparison and not self._unjudged:
            self._recommendation = recommendation
            self.recommended.emit()
