"""Device memory of one side, by an allocator that is played: what it tells is as on a card."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compilescope.worker.memory import Watch

CARD = torch.device("cuda", 0)
SEGMENTS = [
    {"device": 0, "total_size": 900, "allocated_size": 400, "segment_pool_id": (0, 0)},
    {"device": 0, "total_size": 3000, "allocated_size": 100, "segment_pool_id": (0, 1)},
    {"device": 1, "total_size": 7000, "allocated_size": 0, "segment_pool_id": (0, 2)},
]


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (
        ("synchronize", None),
        ("reset_peak_memory_stats", None),
        ("max_memory_allocated", 500),
        ("max_memory_reserved", 3900),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda *_, found=found: found)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: SEGMENTS)


def peak(name: str, when: str) -> int | None:
    side: Any = SimpleNamespace(name=name, recipe=SimpleNamespace(device=CARD), synchronize=lambda: None)
    return Watch(side=side, when=when, foreign_bytes=50).over(lambda: None)[1].allocated_peak_bytes


def test_that_what_cuda_graphs_keep_for_their_replays_counts_for_the_compiled_side():
    assert peak("compiled", "steady") == 500 + 2900 - 50


def test_that_it_counts_for_no_other():
    assert peak("eager", "steady") == peak("compiled", "first_call") == 500 - 50


def test_that_a_torch_that_tells_no_segments_gives_the_plain_peak(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(torch.cuda, "memory_snapshot")

    assert peak("compiled", "steady") == 500 - 50
