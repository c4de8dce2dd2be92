"""Where the time goes, as JSON values."""

from __future__ import annotations

from typing import Any

from compilescope.domain.hotspot_sentences import sentences
from compilescope.domain.hotspots import Hotspot, SideTime, hotspots
from compilescope.domain.run import Run

_FIGURES = ("launches", "idle_share", "flops_per_s", "flops_share", "bound")
_ROW = ("name", "kind", "operator", "share", "launches", "flops_per_s", "flops_share", "bytes_per_s", "bytes_share")


def hotspots_json(run: Run) -> dict[str, Any] | None:
    """Both sides' kernels or operators, heaviest first; None where no call was profiled."""
    found = hotspots(run)
    if found is None:
        return None
    sides = {"eager": found.eager, "compiled": found.compiled}
    return {"findings": list(sentences(found))} | {name: _side(side) for name, side in sides.items()}


def _side(side: SideTime | None) -> dict[str, Any] | None:
    if side is None:
        return None
    head = {"clock": side.clock, "names": side.names, "total_ms": side.seconds * 1e3, "call_ms": _ms(side.whole_s)}
    return head | {name: getattr(side, name) for name in _FIGURES} | {"kernels": [_row(row) for row in side.rows]}


def _row(row: Hotspot) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _ROW} | {"ms": row.seconds * 1e3, "bound": row.bound}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
