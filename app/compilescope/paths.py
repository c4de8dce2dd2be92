"""Where things lie: resources, the user's data, caches for runs."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

APP = "compilescope"
RUNS = "runs"


@cache
def resources() -> Path:
    """The folder of icons, examples and themes: inside the package when installed or bundled, else the checkout's."""
    package = Path(__file__).resolve().parent
    inside = package / "resources"
    return inside if inside.is_dir() else package.parents[1] / "resources"


def data() -> Path:
    """The user's data folder (history, traces); `COMPILESCOPE_HOME` moves it, and the caches and settings with it."""
    home = os.environ.get("COMPILESCOPE_HOME")
    return _made(Path(home) / "data" if home else Path(platformdirs.user_data_dir(APP, appauthor=False)))


def runs() -> Path:
    """The folder under which each run keeps its files. Not made yet."""
    return data() / RUNS


def settings() -> Path:
    home = os.environ.get("COMPILESCOPE_HOME")
    return _made(Path(home) / "settings" if home else Path(platformdirs.user_config_dir(APP, appauthor=False)))


def inductor_caches() -> Path:
    """The folder under which each run gets its own compiler cache.

    Never with white space in it: the C++ build that Inductor starts splits its command line there.
    """
    home = os.environ.get("COMPILESCOPE_HOME")
    chosen = Path(home) / "cache" if home else Path(platformdirs.user_cache_dir(APP, appauthor=False))
    if any(character.isspace() for character in str(chosen)):
        chosen = Path(tempfile.gettempdir()) / f"{APP}-{_user()}"
    return _made(chosen / "inductor")


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
