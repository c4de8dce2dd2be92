"""What each run is called in a report: its configuration, and what else tells it from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compilescope.domain.run import Run


def names(runs: Sequence[Run]) -> dict[str, str]:
    """A name for each run id; phase, precision and device are in it where the runs differ in them."""
    varying = [
        part for part in ("phase", "precision", "device") if len({getattr(run.workload, part) for run in runs}) > 1
    ]
    found, used = {}, Counter[str]()
    for run in runs:
        own = ", ".join(str(getattr(run.workload, part)) for part in varying if getattr(run.workload, part))
        name = f"{run.label} ({own})" if own and own not in run.label else run.label
        used[name] += 1
        found[run.id] = f"{name} #{used[name]}" if used[name] > 1 else name
    return found
