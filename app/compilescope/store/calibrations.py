"""What calibrations found, on this user's machines: one JSON file, never trusted and never fatal."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from compilescope import paths
from compilescope.domain.calibration import Calibration, Machine

SCHEMA = 1


def place() -> Path:
    return paths.data() / "calibrations.json"


def calibrations() -> list[Calibration]:
    """All that can be read, the latest last; of a damaged file, nothing."""
    try:
        value = json.loads(place().read_text("utf-8"))
        return [Calibration.from_json(row) for row in value["calibrations"]]
    except (OSError, KeyError, TypeError, ValueError):
        return []


def calibration_for(machine: Machine | None) -> Calibration | None:
    """What the latest calibration of this machine found; None where there was none."""
    return next((row for row in reversed(calibrations()) if row.machine == machine), None)


def keep(calibration: Calibration) -> None:
    """Store it in place of an earlier one of the same machine. Raises OSError where that cannot be written."""
    known = calibrations()
    path = place()
    if path.exists() and not known:
        # a file that cannot be read is another program's word, or a damaged one of ours: it is not written over
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".damaged"))
    rows = [row.to_json() for row in known if row.machine != calibration.machine] + [calibration.to_json()]
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"schema": SCHEMA, "calibrations": rows}, indent=1), "utf-8")
    draft.replace(path)
