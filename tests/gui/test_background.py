"""Work beside the window: what goes wrong in it is told, whatever it is."""

from __future__ import annotations

from typing import Any

from compilescope.ui.background import Background


def test_that_a_fault_of_ours_is_told_and_the_next_job_done(qtbot: Any) -> None:
    background = Background("test")
    done: list[int] = []

    def fail() -> None:
        raise KeyError("a fault of ours")

    with qtbot.waitSignal(background.failed) as told:
        background.do(fail)
    background.do(lambda: 7, done.append)
    qtbot.waitUntil(lambda: done == [7])
    background.close()

    assert told.args == ["That did not work: CompileScope failed (KeyError: 'a fault of ours').", "Please report it."]
