"""What each run is called in a report: its configuration, and what else tells it from the others."""

from __future__ import annotations

import re
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
        values = [str(value) for part in varying if (value := getattr(run.workload, part))]
        # a comparison of several precisions has them in its labels
        own = ", ".join(value for value in values if not re.search(rf"\b{re.escape(value)}\b", run.label))
        name = f"{run.label} ({own})" if own else run.label
        used[name] += 1
        found[run.id] = f"{name} #{used[name]}" if used[name] > 1 else name
    return found
