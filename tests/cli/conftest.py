"""Starts the command line as a user does, and looks for what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


class CommandLine:
    """Runs `compilescope` in a child process whose whole tree carries a tag."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tag = f"TEST_TAG={uuid.uuid4().hex}"

    def script(self, text: str, name: str = "model.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        name, _, value = self._tag.partition("=")
        return subprocess.Popen(
            [sys.executable, "-m", "compilescope", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ | {name: value, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def run(self, *words: str | Path, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def processes(self) -> list[int]:
        """What of the tree is alive."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self._tag.encode() in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def await_processes(self, wanted: Callable[[int], bool], timeout: float) -> float:
        """Seconds until the number of processes is as wanted."""
        began = time.monotonic()
        while not wanted(len(self.processes())):
            assert time.monotonic() - began < timeout, self.processes()
            time.sleep(0.02)
        return time.monotonic() - began


@pytest.fixture
def command_line(tmp_path: Path) -> Iterator[CommandLine]:
    result = CommandLine(tmp_path)
    yield result
    assert result.processes() == []
