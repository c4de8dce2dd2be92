"""What a chart of the gallery is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compilescope.domain.measures import Measures
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval
from compilescope.domain.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Charted:
    """A run with its figures, as far as they are known."""

    run: Run
    measures: Measures
    verdict: Verdict | None = None

    @property
    def label(self) -> str:
        return self.run.label

    @property
    def speedup(self) -> Interval | None:
        return self.measures.speedup


class GalleryChart(Protocol):
    """A chart of all runs, or of the one that is shown."""

    def show_runs(self, rows: Sequence[Charted], shown: Charted | None) -> None:
        """Draw what there is; say in a sentence why there is nothing to draw."""
