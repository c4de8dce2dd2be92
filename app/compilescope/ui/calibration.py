"""What the window says of a calibration, and keeps of it."""

from __future__ import annotations

import platform
import time

from PySide6.QtCore import QObject, Signal

from compilescope.domain.run import Run
from compilescope.ui.session import Session


class CalibrationWatch(QObject):
    """Follows the runs that the session makes, and stores what they come to."""

    informed = Signal(str)
    failed = Signal(str, str)  # sentence, hint

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        session.calibration_changed.connect(self._follow)

    def _follow(self, runs: list[Run]) -> None:
        over = [run for run in runs if run.is_over]
        if len(over) == len(runs):
            self._conclude(runs)
        elif all(run.outcome == "finished" for run in over):
            self.informed.emit(f"Calibrating this machine: comparison {len(over) + 1} of {len(runs)} (Esc stops it).")

    def _conclude(self, runs: list[Run]) -> None:
        # imported here: the window opens without them
        from compilescope.domain.calibration import QUIET, calibration_of
        from compilescope.domain.verdict import noise_floor_text
        from compilescope.store import calibrations

        found = calibration_of(runs, platform.node(), time.time())
        if found is None:
            self._tell_failure(runs)
        elif found.problem:
            self.failed.emit(found.problem, QUIET)
        else:
            try:
                calibrations.keep(found)
            except OSError as error:
                self.failed.emit(f"The calibration could not be stored: {error}.", "Free some space, and repeat it.")
            else:
                self.informed.emit(f"Calibrated. {noise_floor_text(found.noise_floor)}")

    def _tell_failure(self, runs: list[Run]) -> None:
        error = next((run.error for run in runs if run.error), None)
        if error:
            self.failed.emit(f"The calibration failed: {error.message}", error.hint)
        else:
            self.informed.emit("The calibration was stopped; nothing was stored.")
