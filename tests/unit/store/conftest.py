"""A history in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compilescope.store.history import History


@pytest.fixture
def open_history(tmp_path: Path) -> Iterator[Callable[[], History]]:
    """Opens the same file, as often as wanted; all are closed at the end."""
    opened: list[History] = []

    def open_it() -> History:
        opened.append(History(tmp_path / "history.sqlite3"))
        return opened[-1]

    yield open_it
    for history in opened:
        history.close()
