"""Where compiler caches lie, how big they are, and how they are emptied."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from compilescope import paths
from compilescope.domain.errors import AppError
from compilescope.engine.caches import LOCK, is_in_use


@dataclass(frozen=True, kw_only=True)
class CacheFolder:
    """A folder of compiler caches. `is_ours`: made by CompileScope, for its own runs alone."""

    path: Path
    is_ours: bool
    size: int

    @property
    def exists(self) -> bool:
        return self.path.is_dir()


def measure_folders() -> list[CacheFolder]:
    """Ours and the user's. Walks through all their files: for a thread."""
    ours, users = paths.inductor_caches(), user_cache()
    return [
        CacheFolder(path=ours, is_ours=True, size=_size(ours)),
        CacheFolder(path=users, is_ours=False, size=_size(users)),
    ]


def user_cache() -> Path:
    """Where torch keeps the user's caches, by its own rule."""
    chosen = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if chosen:
        return Path(chosen)
    name = re.sub(r'[\\/:*?"<>|]', "_", _user())
    return Path(tempfile.gettempdir()) / f"torchinductor_{name}"


def in_user_cache(cache: str, key: str) -> bool | None:
    """Whether the user's cache holds an entry under a key; None for a cache whose layout is not known.

    Source: `_get_tmp_dir_for_key` of torch's FxGraphCache and AOTAutogradCache, the same in 2.9, 2.13 and 2.14.
    """
    if not re.fullmatch(r"\w+", key):
        return None
    folders = {"fx_graph": Path("fxgraph", key[1:3], key), "aot_autograd": Path("aotautograd", key)}
    if cache not in folders:
        return None
    try:
        return any((user_cache() / folders[cache]).iterdir())
    except OSError:
        return False


def clear(folder: CacheFolder) -> int:
    """Remove what the folder holds. The bytes that went. Of ours, what a run is using now stays."""
    if not folder.exists:
        return 0
    if not folder.is_ours and folder.path.resolve() in (Path.home().resolve(), Path(folder.path.anchor).resolve()):
        raise AppError(f"{folder.path} is no cache folder.", hint="Check TORCHINDUCTOR_CACHE_DIR.")
    before = _size(folder.path)
    for item in list(folder.path.iterdir()):
        if folder.is_ours and item.is_dir() and (item / LOCK).is_file() and is_in_use(item):
            continue
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                item.unlink()
    return max(before - _size(folder.path), 0)


def _size(folder: Path) -> int:
    total = 0
    for root, _folders, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += (Path(root) / name).lstat().st_size
    return total


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
