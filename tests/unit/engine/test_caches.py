"""Fresh compiler caches, and what a killed app leaves of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from compilescope.engine.caches import FreshCaches


def age(folder: Path) -> None:
    os.utime(folder, (1, 1))


def test_that_caches_are_gone_when_their_owner_closes(tmp_path: Path) -> None:
    caches = FreshCaches(tmp_path)
    cache = caches.make("run")
    (cache / "file").touch()

    caches.close()

    assert list(tmp_path.iterdir()) == []


def test_that_a_killed_owners_caches_are_cleaned_and_a_living_ones_are_not(tmp_path: Path) -> None:
    code = "import sys, os; from compilescope.engine.caches import FreshCaches; from pathlib import Path\n"
    code += "FreshCaches(Path(sys.argv[1])).make('run'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, env=with_package())
    living = FreshCaches(tmp_path)
    kept = living.make("run")
    for folder in tmp_path.iterdir():
        age(folder)
    assert len(list(tmp_path.iterdir())) == 2

    FreshCaches(tmp_path).clean()

    assert list(tmp_path.iterdir()) == [kept.parent]
    living.close()


def test_that_a_folder_that_was_just_made_is_left_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()
    (tmp_path / "old").mkdir()
    age(tmp_path / "old")

    FreshCaches(tmp_path).clean()

    assert [folder.name for folder in tmp_path.iterdir()] == ["young"]


def with_package() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
