"""Whose a graph break or a recompile is: the script's, or that of the training step around the model.

Where a whole step is compiled, the program that compiles it brings the step along, and the step calls torch's
optimizer. Nothing of these stands in the script, so nothing in the script can mend it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from compilescope.domain import events as e
from compilescope.domain.trace.breaks import Break
from compilescope.domain.trace.frames import Entrance, Frame
from compilescope.domain.trace.places import Places, resolve
from compilescope.domain.trace.recompiles import parse_reason, plain_source

WORKER, TORCH = "worker", "torch"
# what a step calls of torch besides the model
_STEP = re.compile(r"[/\\]torch[/\\](?:optim|amp)[/\\]")
# how the step's own functions call their inputs, and the one of them that calls the model
_INPUT = re.compile(r"(?:args|kwargs)\b")
_CALLS_MODEL = "forward"


def told(found: Break, frame: Frame, entrance: Entrance | None, places: Places) -> tuple[Break, str]:
    """A break at the place to tell, and its origin: empty for the script's."""
    if found.place and _STEP.search(found.place.file):
        return found, TORCH
    caller = _caller(found, frame, places)
    if caller is None:
        return found, ""
    if caller.function == _CALLS_MODEL and found.library is not None:
        # a model that is torch's own, with no line of the script on the way
        return replace(found, place=(entrance and entrance.place) or found.place), ""
    return replace(found, place=caller), WORKER


def _caller(found: Break, frame: Frame, places: Places) -> e.Place | None:
    """The line of the compiled step that the break comes from; None where that is the script's, or torch's alone."""
    caller = found.caller
    if caller is None or caller in (frame.above or ()) or not places.is_hidden(caller.file):
        return None
    return caller


def owned(recompile: e.Recompile, before: Frame | None, entrance: Entrance | None, places: Places) -> e.Recompile:
    """A recompile with its origin. `before`: the compile that did not fit any more.

    What the model or its inputs change is the script's in the step's functions too, unless these hold none of the
    model: where it breaks, it is compiled by itself, and recompiled too.
    """
    if recompile.file is None or not places.has_hidden:
        return recompile
    if _STEP.search(recompile.file):
        return replace(recompile, origin=TORCH)
    if not places.is_hidden(recompile.file):
        return recompile
    guarded = parse_reason(recompile.reason).place
    of_script = guarded and not places.is_torch(resolve(guarded.file, [recompile.file]))
    is_empty = before is not None and not before.captured
    if is_empty or not (of_script or _INPUT.match(recompile.source or "")):
        return replace(recompile, origin=WORKER)
    if entrance is None:
        return recompile
    source = recompile.source and plain_source(recompile.source, entrance.arguments)
    return replace(recompile, source=source, file=entrance.file, line=entrance.line, function=entrance.function)
