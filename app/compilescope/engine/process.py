"""One worker process and everything it starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum

from compilescope.domain.errors import AppError
from compilescope.domain.events import Event
from compilescope.engine import tree
from compilescope.engine.command import Command
from compilescope.engine.lines import EVENT_LINE_LIMIT, LOG_LINE_LIMIT, cut, decode_lines
from compilescope.engine.reader import PipeReader

INTERRUPT_S = 3.0
TERMINATE_S = 1.0
READERS_S = 1.0
HELD_S = 0.1
PIPE_BYTES = 1 << 20


class StopStep(Enum):
    """How hard a process is being stopped."""

    NONE = 0
    INTERRUPT = 1
    TERMINATE = 2
    KILL = 3


class WorkerProcess:
    """A worker in a session of its own. `on_events` and `on_lines` are called from reader threads.

    Owned by one thread; only the callbacks run in others.
    """

    def __init__(
        self,
        command: Command,
        *,
        on_events: Callable[[list[Event]], None],
        on_lines: Callable[[list[bytes]], None],
        has_room: Callable[[float], bool],
        changed: threading.Event,
    ) -> None:
        self._command = command
        self._on_events = on_events
        self._on_lines = on_lines
        self._has_room = has_room
        self._changed = changed
        self._process: subprocess.Popen[bytes] | None = None
        self._has_ended = threading.Event()
        self._readers: list[PipeReader] = []
        self._step = StopStep.NONE
        self._step_ends = float("inf")

    def start(self) -> None:
        """Start the process and give it its job. Raises AppError where that cannot be."""
        command = self._command
        try:
            self._process = subprocess.Popen(
                command.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=command.folder,
                env=command.environment,
                start_new_session=True,
                creationflags=_creation_flags(),
            )
        except (OSError, ValueError) as error:
            raise _cannot_start(command, error) from error
        self._read_pipes(self._process)
        threading.Thread(target=self._await_end, args=(self._process,), name="worker-end", daemon=True).start()
        self._send_job(self._process)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def has_ended(self) -> bool:
        """The process itself is gone; what it started may not be."""
        return self._has_ended.is_set()

    def stop(self) -> None:
        """Begin to stop: SIGINT now, harder signals as `press_on` is called."""
        if self._step is StopStep.NONE:
            self._take_step(StopStep.INTERRUPT)

    def kill(self) -> None:
        """End the process and all that it started, now."""
        self._take_step(StopStep.KILL)

    def press_on(self) -> float:
        """Take the next step of a stop where it is due. Returns after how many seconds to call again."""
        while time.monotonic() >= self._step_ends:
            self._take_step(StopStep(self._step.value + 1))
        return min(self._step_ends - time.monotonic(), TERMINATE_S)

    def finish(self) -> int:
        """Leave nothing behind, read what is left, and return the exit status. Call when the process has ended."""
        process = self._started()
        if not self.has_ended:
            self.kill()
        # the process is not reaped yet, so its id still names its own group and no stranger's
        tree.kill(process.pid)
        tree.kill_marked(self._command.job.run)
        status = process.wait()
        self._end_holders(process)
        deadline = time.monotonic() + (READERS_S if self._step is StopStep.NONE else READERS_S / 2)
        for reader in self._readers:
            reader.finish(max(0.0, deadline - time.monotonic()))
        for pipe in (process.stdin, process.stdout, process.stderr):
            # a reader that is stuck where reads cannot be polled still uses its pipe
            if pipe and not any(reader.is_alive() for reader in self._readers):
                with contextlib.suppress(OSError):
                    pipe.close()
        return status

    def _end_holders(self, process: subprocess.Popen[bytes]) -> None:
        """What shed both group and mark: pipes that are still open have a holder."""
        for reader in self._readers:
            reader.join(HELD_S)
        if any(reader.is_alive() for reader in self._readers):
            tree.kill_holders(pipe.fileno() for pipe in (process.stdout, process.stderr) if pipe)

    def _take_step(self, step: StopStep) -> None:
        pid = self._started().pid
        self._step = step
        match step:
            case StopStep.INTERRUPT:
                tree.interrupt(pid)
                self._step_ends = time.monotonic() + INTERRUPT_S
            case StopStep.TERMINATE:
                tree.terminate(pid)
                self._step_ends = time.monotonic() + TERMINATE_S
            case _:
                tree.kill(pid)
                self._step_ends = float("inf")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the process was not started")
        return self._process

    def _read_pipes(self, process: subprocess.Popen[bytes]) -> None:
        streams = (
            (process.stdout, "worker-events", EVENT_LINE_LIMIT, self._take_stdout),
            (process.stderr, "worker-log", LOG_LINE_LIMIT, self._on_lines),
        )
        for pipe, name, limit, deliver in streams:
            if pipe is None:
                continue
            _widen(pipe.fileno())
            reader = PipeReader(pipe.fileno(), name=name, limit=limit, deliver=deliver, has_room=self._has_room)
            reader.start()
            self._readers.append(reader)

    def _take_stdout(self, lines: list[bytes]) -> None:
        events, others = decode_lines(lines)
        if others:
            self._on_lines([cut(line) for line in others])
        if events:
            self._on_events(events)

    def _send_job(self, process: subprocess.Popen[bytes]) -> None:
        # stdin stays open: its end tells the worker's guardian that the app is gone
        if process.stdin is not None:
            with contextlib.suppress(OSError):  # it ended at once; its exit status tells
                process.stdin.write(self._command.job.encode().encode() + b"\n")

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                # look without reaping: see finish()
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:
            process.wait()
        self._has_ended.set()
        self._changed.set()


def _creation_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _widen(descriptor: int) -> None:
    """A larger pipe, so that a script that prints in bursts does not wait for us while it is timed."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # the user's share of pipe memory may be spent
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ if hasattr(fcntl, "F_SETPIPE_SZ") else 1031, PIPE_BYTES)


def _cannot_start(command: Command, error: Exception) -> AppError:
    python = command.arguments[0]
    if not os.path.isdir(command.folder):  # noqa: PTH112
        return AppError(f"The folder {command.folder} is not there.", hint="Choose the script again.")
    reason = getattr(error, "strerror", None) or str(error)
    return AppError(
        f"The Python interpreter {python} could not be started: {reason}.",
        hint="Choose an interpreter that has torch (--python PATH, or Settings in the window).",
    )
