"""Timed regions as they open and close, and what their ends tell: autotuning, CUDA graph recordings."""

from __future__ import annotations

import json

from compilescope.domain import events as e
from compilescope.domain.trace.phases import Tick, autotuned_operation, group, parse_tick
from compilescope.domain.trace.records import TraceRecord

_RECORDING = "CUDAGraphNode.record"


class Timeline:
    """`autotune_told`: somebody else reports autotuning in full, so the trace's short form is left out."""

    def __init__(self) -> None:
        self.autotune_told = False
        self._open: dict[int | None, list[Tick]] = {}
        self._origin: float | None = None
        self._autotunes: list[float] = []
        self._recordings = {"phase": 0, "callback": 0, "told": 0}

    def tell(self, record: TraceRecord) -> list[e.Event]:
        """The events of one timed region's begin or end."""
        tick = parse_tick(record)
        if tick is None or tick.state not in ("B", "E"):
            return []
        if self._origin is None:
            self._origin = tick.seconds - record.at
        # torch's own stamp is finer than a header's, and never before the process began
        at = max(tick.seconds - self._origin, 0.0)
        opened = self._open.setdefault(record.thread, [])
        began = None
        if tick.state == "B":
            opened.append(tick)
        else:
            began = _pop(opened, tick.name)
        duration = tick.seconds - began.seconds if began else None
        phase = e.Phase(
            name=tick.name,
            group=group(tick.name),
            state="begin" if tick.state == "B" else "end",
            duration_s=duration,
            at=at,
            compile_id=record.compile_id,
            thread=record.thread,
            rank=record.rank,
        )
        if tick.state == "E":
            return [phase, *self._autotuned(record, tick.name, duration)]
        return [phase, *(self.recorded("phase") if tick.name == _RECORDING else ())]

    def recorded(self, source: str) -> list[e.Event]:
        """A CUDA graph is being recorded: the phase and the callback both say so, and it counts once."""
        self._recordings[source] += 1
        if self._recordings[source] <= self._recordings["told"]:
            return []
        self._recordings["told"] += 1
        return [e.CudaGraph(state="recorded")]

    def take_autotune_duration(self) -> float | None:
        """What the last autotuning took, once."""
        return self._autotunes.pop() if self._autotunes else None

    def _autotuned(self, record: TraceRecord, name: str, duration: float | None) -> list[e.Event]:
        operation = autotuned_operation(name)
        if operation is None:
            return []
        if self.autotune_told:
            self._autotunes.append(duration or 0.0)
            return []
        arguments = json.loads(record.payload).get("args", {})
        stats = json.loads(arguments.get("autotune_choices_stats") or "{}")
        winner, best = stats.get("best_kernel"), stats.get("best_time")
        choice = {
            "name": winner,
            "seconds": best / 1e3 if best else None,
            "detail": stats.get("best_kernel_desc") or "",
        }
        shapes = str(arguments.get("autotune_shape") or "")
        return [
            e.Autotune(
                operation=operation,
                inputs=tuple(shapes.split(", ")) if shapes else (),
                choices=(choice,) if winner else (),
                winner=winner,
                duration_s=duration,
            )
        ]


def _pop(opened: list[Tick], name: str) -> Tick | None:
    """Close a region by name: those of other threads overlap, and one that raised is never closed."""
    for index in range(len(opened) - 1, -1, -1):
        if opened[index].name == name:
            return opened.pop(index)
    return None
