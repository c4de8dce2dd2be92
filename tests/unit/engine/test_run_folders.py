"""What runs leave on the disk: packed while it is wanted, and gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.domain.trace import read_text
from compilescope.engine.run_folders import RunFolders, sweep

KILLED = """
import os, sys
from pathlib import Path
from compilescope.engine.run_folders import RunFolders

folders = RunFolders(Path(sys.argv[1]))
for name in sys.argv[2:]:
    (folders.make(name) / "trace.log").touch()
os.kill(os.getpid(), 9)
"""


def leave(root: Path, *runs: str) -> None:
    """Another instance that made these folders and was killed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED, str(root), *runs], check=False, env=environment)


def age(root: Path) -> None:
    for item in root.iterdir():
        os.utime(item, (1, 1))


def left(root: Path) -> set[str]:
    return {item.name for item in root.iterdir() if item.is_dir()}


def test_that_folders_of_a_killed_instance_go_unless_the_history_has_their_run(tmp_path: Path) -> None:
    leave(tmp_path, "stored", "unknown")
    age(tmp_path)

    sweep({"stored"}, tmp_path)

    assert {item.name for item in tmp_path.iterdir()} == {"stored"}


def test_that_folders_of_an_instance_that_lives_stay(tmp_path: Path) -> None:
    living = RunFolders(tmp_path)
    living.make("unknown")
    age(tmp_path)

    sweep(set(), tmp_path)
    assert left(tmp_path) == {"unknown"}

    living.close()
    age(tmp_path)
    sweep(set(), tmp_path)
    assert left(tmp_path) == set()


def test_that_a_folder_that_was_just_made_is_left_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()

    sweep(set(), tmp_path)
    sweep(set(), tmp_path / "not made yet")

    assert left(tmp_path) == {"young"}


def test_that_a_packed_trace_takes_less_and_reads_the_same(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    file = folders.make("run") / "trace.log"
    file.write_text("V1129 a] {}\n\tthe payload\n" * 1000)
    size = file.stat().st_size

    folders.pack("run")
    folders.pack("run")

    assert file.stat().st_size < size / 10
    assert read_text(file, 12, 12) == "the payload"
    assert [item.name for item in file.parent.iterdir() if item.suffix == ".part"] == []
    folders.close()


def test_that_a_run_whose_folder_could_not_be_made_leaves_nothing_to_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path / "file" / "home"))

    RunFolders().pack("run")  # an error would end the thread on which the next run is to begin
