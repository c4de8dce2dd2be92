"""Who runs next, and on which device: one queue, and no device with two runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compilescope.engine.request import RunRequest

# a run whose device is not known before torch has been asked needs the machine alone
ALONE = ""


def places(request: RunRequest) -> tuple[str, ...]:
    """The devices of which one has to carry the run."""
    if request.devices:
        return request.devices
    device = request.workload.device if request.workload else None
    return (f"{device}:0" if device == "cuda" else device or ALONE,)


class Lanes:
    """What waits and what goes on. Not safe from several threads: its owner holds a lock."""

    def __init__(self) -> None:
        self._waiting: list[RunRequest] = []
        self._taken: dict[str, str] = {}  # run id → device

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting or self._taken)

    @property
    def width(self) -> int:
        """How many runs could go on at once, of those that wait and those that go on."""
        return max(
            1, len({place for request in self._waiting for place in places(request)} | set(self._taken.values()))
        )

    def add(self, request: RunRequest) -> None:
        self._waiting.append(request)

    def drop(self, run_id: str | None) -> list[RunRequest]:
        """Take one run, or all, out of what waits."""
        dropped = [request for request in self._waiting if run_id in (None, request.id)]
        self._waiting = [request for request in self._waiting if request not in dropped]
        return dropped

    def arrange(self, run_ids: Sequence[str]) -> None:
        """Let these wait in this order, before all others."""
        order = {run_id: number for number, run_id in enumerate(run_ids)}
        self._waiting.sort(key=lambda request: order.get(request.id, len(order)))

    def take(self) -> RunRequest | None:
        """The first that waits and has a free device, which is then its own until `release`."""
        for request in self._waiting:
            device = self._free(request)
            if device is not None:
                self._waiting.remove(request)
                self._taken[request.id] = device
                return _on(request, device)
            if places(request) == (ALONE,):
                # what comes behind it must not keep it waiting for ever
                return None
        return None

    def release(self, run_id: str) -> None:
        self._taken.pop(run_id, None)

    def _free(self, request: RunRequest) -> str | None:
        taken = self._taken.values()
        if ALONE in taken:
            return None
        wanted = places(request)
        if wanted == (ALONE,):
            return None if self._taken else ALONE
        return next((device for device in wanted if device not in taken), None)


def _on(request: RunRequest, device: str) -> RunRequest:
    """The request for this one device, where it left a choice."""
    if request.workload is None or not request.devices:
        return request
    return replace(request, workload=replace(request.workload, device=device))
