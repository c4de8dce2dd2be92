"""What all tests share: data, settings and caches in a folder of their own, and no screen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's folders, for this session of tests."""
    folder = tmp_path_factory.mktemp("home")
    before = os.environ.get("COMPILESCOPE_HOME")
    os.environ["COMPILESCOPE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["COMPILESCOPE_HOME"]
    else:
        os.environ["COMPILESCOPE_HOME"] = before
