"""What all tests share: data, settings and caches in a folder of their own, and no screen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# each fresh compiler cache would else cost 7 s for the same test of the C++ compiler, a third of a small cold start
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that compile for real come first: a long one at the end would leave the other processes idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
