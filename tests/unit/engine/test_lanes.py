"""The queue of each device: who is next, and what may go on at once."""

from __future__ import annotations

import pytest

from compilescope.domain.config import Config
from compilescope.domain.workload import Workload
from compilescope.engine.lanes import Lanes
from compilescope.engine.request import RunRequest

CARDS = ("cuda:0", "cuda:1")


def request(name: str, device: str | None = "cpu", devices: tuple[str, ...] = ()) -> RunRequest:
    return RunRequest(id=name, config=Config(), workload=Workload(script="m.py", device=device), devices=devices)


def lanes(*requests: RunRequest) -> Lanes:
    result = Lanes()
    for one in requests:
        result.add(one)
    return result


def taken(of: Lanes) -> list[tuple[str, str | None]]:
    """Everything that may begin now."""
    found = []
    while (one := of.take()) is not None:
        found.append((one.id, one.workload.device if one.workload else None))
    return found


def test_that_a_device_carries_one_run_at_a_time_in_order() -> None:
    queue = lanes(request("a"), request("b"), request("c"))

    assert taken(queue) == [("a", "cpu")]
    queue.release("a")
    assert taken(queue) == [("b", "cpu")]


def test_that_several_cards_share_the_runs_each_alone_on_its_own() -> None:
    queue = lanes(*(request(name, "cuda", CARDS) for name in "abc"))

    assert taken(queue) == [("a", "cuda:0"), ("b", "cuda:1")]
    queue.release("b")
    assert taken(queue) == [("c", "cuda:1")]


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_that_the_first_card_has_two_names(device: str) -> None:
    queue = lanes(request("a", "cuda:0"), request("b", device), request("c", "cpu"))

    assert taken(queue) == [("a", "cuda:0"), ("c", "cpu")]


def test_that_a_run_whose_device_is_not_known_has_the_machine_alone() -> None:
    queue = lanes(request("a"), request("b", None), request("c", "cuda:1"))

    # c would be free to go, but then b could wait for ever
    assert taken(queue) == [("a", "cpu")]
    queue.release("a")
    assert taken(queue) == [("b", None)]
    queue.release("b")
    assert taken(queue) == [("c", "cuda:1")]


def test_that_what_waits_can_be_put_in_another_order_and_left_out() -> None:
    queue = lanes(*(request(name) for name in "abcd"))

    queue.arrange(["c", "a"])
    assert [one.id for one in queue.drop("a")] == ["a"]

    order = []
    while queue.is_busy:
        ((name, _),) = taken(queue)
        order.append(name)
        queue.release(name)
    assert order == ["c", "b", "d"]
