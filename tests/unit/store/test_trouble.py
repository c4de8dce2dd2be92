"""The history survives what happens to files: kills, damage, locks, a full disk, a second instance."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.workload import Workload
from compilescope.store.history import History
from compilescope.store.records import StoredRequest

Opener = Callable[[], History]

LIVE_INSTANCE = """
import sys, time
from pathlib import Path
from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.workload import Workload
from compilescope.store.history import History
from compilescope.store.records import StoredRequest

history = History(Path(sys.argv[1]))
requests = [StoredRequest(id=f"run{i}", config=Config(mode=mode), workload=Workload(script="a.py"), timeout_s=77.0)
            for i, mode in enumerate(("default", "reduce-overhead"))]
history.start_comparison(Comparison(id="live", created=5.0), requests)
history.start_run("run0")
history.append("run0", [e.Hello(torch="2.13.0"), e.Stage(name="compile", at=1.5)])
history.flush()
print("ready", flush=True)
time.sleep(60)
"""


def start_instance(path: Path) -> subprocess.Popen[str]:
    """Another instance of the application in the middle of a run."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", LIVE_INSTANCE, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def requests(count: int = 1) -> list[StoredRequest]:
    return [StoredRequest(id=f"r{i}", config=Config(), workload=Workload(script="a.py")) for i in range(count)]


def test_that_a_killed_instance_leaves_its_comparison_to_be_resumed(open_history: Opener, tmp_path: Path) -> None:
    process = start_instance(tmp_path / "history.sqlite3")
    process.send_signal(signal.SIGKILL)
    process.communicate()

    history = open_history()

    (left,) = history.unfinished()
    assert left.comparison_id == "live"
    assert [request.id for request in left.requests] == ["run0", "run1"]
    assert left.requests[1].config.mode == "reduce-overhead"
    assert left.requests[1].timeout_s == 77.0
    (run,) = history.load("live").runs
    assert run.current_stage is not None
    assert (run.current_stage.name, run.outcome) == ("compile", "stopped")
    assert run.error is not None
    assert "ended while this run was going on" in run.error.message


def test_that_a_resumed_run_starts_from_nothing(open_history: Opener, tmp_path: Path) -> None:
    process = start_instance(tmp_path / "history.sqlite3")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    history = open_history()

    history.start_run("run0")
    history.append("run0", [e.Hello(torch="2.14.0")])
    history.flush()

    (run,) = history.load("live").runs
    assert [process.hello.torch for process in run.processes] == ["2.14.0"]
    assert run.outcome is None
    assert [request.id for left in history.unfinished() for request in left.requests] == ["run1"]


def test_that_a_second_instance_leaves_the_runs_of_the_first_alone(open_history: Opener, tmp_path: Path) -> None:
    process = start_instance(tmp_path / "history.sqlite3")
    try:
        history = open_history()
        history.start_comparison(Comparison(id="mine", created=6.0), requests())
        history.flush()

        assert history.notice == ""
        assert history.unfinished() == []
        assert {row.id for row in history.comparisons()} == {"live", "mine"}
    finally:
        process.kill()
        process.communicate()


def test_that_a_damaged_file_is_set_aside_and_named(open_history: Opener, tmp_path: Path) -> None:
    (tmp_path / "history.sqlite3").write_bytes(b"this was a database once" * 100)

    history = open_history()

    (aside,) = tmp_path.glob("history-damaged-*.sqlite3")
    assert aside.read_bytes().startswith(b"this was a database once")
    assert str(aside) in history.notice
    history.start_comparison(Comparison(id="new", created=1.0), requests())
    history.flush()
    assert [row.id for row in history.comparisons()] == ["new"]


def test_that_a_file_with_a_torn_page_is_set_aside(open_history: Opener, tmp_path: Path) -> None:
    first = open_history()
    for number in range(60):
        (request,) = requests()
        request = StoredRequest(id=f"x{number}", config=request.config, workload=request.workload)
        first.start_comparison(Comparison(id=f"c{number}", created=1.0), [request], title="x" * 500)
    first.close()
    path = tmp_path / "history.sqlite3"
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)

    history = open_history()

    assert "damaged" in history.notice
    assert list(tmp_path.glob("history-damaged-*.sqlite3"))
    assert history.comparisons() == []


def test_that_a_locked_file_is_named_and_the_application_goes_on(open_history: Opener, tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("CREATE TABLE other (x)")
    blocker.execute("PRAGMA locking_mode = EXCLUSIVE")
    blocker.execute("BEGIN EXCLUSIVE")

    history = open_history()
    history.start_comparison(Comparison(id="c", created=1.0), requests())
    history.flush()

    assert "locked" in history.notice
    assert history.path is None
    assert [row.id for row in history.comparisons()] == ["c"]
    blocker.close()


def test_that_a_lock_in_the_middle_delays_the_record_and_loses_nothing(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    history.start_comparison(Comparison(id="c", created=1.0), requests())
    history.flush()
    blocker = sqlite3.connect(tmp_path / "history.sqlite3", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")

    history.start_run("r0")
    history.append("r0", [e.Hello(torch="2.13.0")])
    assert not history.flush(timeout=0.5)
    blocker.execute("ROLLBACK")
    blocker.close()

    assert history.flush(timeout=15.0)
    assert history.load("c").runs[0].processes[0].hello.torch == "2.13.0"


def test_that_a_full_disk_is_said_and_what_waits_is_written_once_there_is_room(open_history: Opener) -> None:
    history = open_history()
    history.start_comparison(Comparison(id="c", created=1.0), requests())
    history.start_run("r0")
    history.flush()
    with history._database.writing() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    history._database._writer.execute(f"PRAGMA max_page_count = {pages}")

    history.append("r0", [e.Hello(), *(e.Warning(code="w", message="x" * 500) for _ in range(2000))])
    assert not history.flush(timeout=1.0)
    assert "full" in history.problem

    history._database._writer.execute("PRAGMA max_page_count = 1000000")
    assert history.flush(timeout=10.0)
    assert history.problem == ""
    assert len(history.load("c").runs[0].processes[0].warnings) == 2000


def test_that_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")

    history = History(in_the_way / "history.sqlite3")

    assert str(in_the_way) in history.notice
    assert history.comparisons() == []
    history.close()


def test_that_a_file_of_a_newer_version_is_left_untouched(open_history: Opener, tmp_path: Path) -> None:
    open_history().close()
    path = tmp_path / "history.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")

    history = open_history()

    assert "newer" in history.notice
    assert history.path is None
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 99


def test_that_events_are_in_the_file_a_moment_after_they_came(open_history: Opener) -> None:
    history = open_history()
    history.start_comparison(Comparison(id="c", created=1.0), requests())
    history.start_run("r0")

    history.append("r0", [e.Hello(torch="2.13.0")])

    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        if (history.comparisons() and history.load("c").runs) and history.load("c").runs[0].processes:
            break
        time.sleep(0.02)
    assert history.load("c").runs[0].processes[0].hello.torch == "2.13.0"
