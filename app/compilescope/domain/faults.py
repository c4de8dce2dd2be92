"""Faults of this program in what is said of a measurement: each becomes a sentence, and the measurement stays.

The traceback goes to the program's log: to the crash log of the window, to stderr without one.
"""

from __future__ import annotations

import logging

HINT = "Please report it."
LONGEST = 200

LOG = logging.getLogger("compilescope")


def fault(what: str, error: Exception) -> str:
    """The sentence: "The verdict is missing: CompileScope failed (KeyError: 'x').". `what` is lost by the error."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    sentence = f"{what}: CompileScope failed ({reason[:LONGEST]})."
    LOG.error("%s", sentence, exc_info=error)
    return sentence
