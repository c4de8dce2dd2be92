"""The threads that run what is asked for: on each device one run after the other, devices beside each other."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.domain import events as e
from compilescope.domain.errors import AppError
from compilescope.domain.workload import MEASURED, Start
from compilescope.engine.caches import FreshCaches
from compilescope.engine.command import command, run_folder, worker_program
from compilescope.engine.feed import Feed, LogLines, RunEvents, RunStarted
from compilescope.engine.lanes import Lanes
from compilescope.engine.outcome import Halt, Told, failed_to_start, judge
from compilescope.engine.process import WorkerProcess
from compilescope.engine.request import RunRequest
from compilescope.engine.run_folders import RunFolders

__all__ = ["RunRequest", "Supervisor"]

LINGER_S = 10.0  # a worker that has told its end leaves at once, unless something holds it


class Supervisor:
    """Owns the worker processes. Its methods may be called from any thread and do not wait, except `close`.

    Every submitted run ends in exactly one `Ended` in the feed. `program`: the worker, unless it is ours.
    """

    def __init__(self, feed: Feed, *, caches: FreshCaches | None = None, program: Path | None = None) -> None:
        self._feed = feed
        self._program = program or worker_program()
        self._places = _Places(caches=caches or FreshCaches(), folders=RunFolders())
        self._lock = threading.Condition()
        self._lanes = Lanes()
        self._running: dict[str, RunInProgress] = {}
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._thread_ends = 0
        self._add_thread()

    def submit(self, request: RunRequest) -> None:
        """Queue a run."""
        with self._lock:
            if self._closing:
                raise RuntimeError("the supervisor is closed")
            self._lanes.add(request)
            for _ in range(self._lanes.width - len(self._threads)):
                self._add_thread()
            self._lock.notify_all()

    def stop(self, run_id: str | None = None, *, now: bool = False) -> None:
        """Stop one run, or those that go on and the queue. `now`: without asking the process first."""
        with self._lock:
            dropped = self._lanes.drop(run_id)
            stopped = [run for run in self._running.values() if run_id in (None, run.id)]
            self._lock.notify_all()
        for request in dropped:
            self._feed.put(RunEvents(run_id=request.id, events=(e.Ended(outcome="stopped"),)))
        for run in stopped:
            run.stop(now=now)

    def arrange(self, run_ids: Sequence[str]) -> None:
        """Let these runs wait in this order, before the others; those that go on already are not touched."""
        with self._lock:
            self._lanes.arrange(run_ids)

    def close(self, timeout: float = 5.0) -> None:
        """Stop everything and wait until no process is left."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self.stop()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        if any(thread.is_alive() for thread in self._threads):
            self.stop(now=True)
            deadline = time.monotonic() + 1.0
            for thread in self._threads:
                thread.join(max(deadline - time.monotonic(), 0.0))

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._lanes.is_busy

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add_thread(self) -> None:
        """One more run at once."""
        thread = threading.Thread(target=self._work, name="supervisor", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        if threading.current_thread() is self._threads[0]:
            self._places.caches.clean()
        while (run := self._next()) is not None:
            ended = run.carry_out()
            with self._lock:
                # together: who hears the word may submit and close, and hears it before the next run begins there
                del self._running[run.id]
                self._lanes.release(run.id)
                self._feed.put(RunEvents(run_id=run.id, events=(ended,)))
                self._lock.notify_all()
            run.clean()
        with self._lock:
            self._thread_ends += 1
            is_last = self._thread_ends == len(self._threads)
        if is_last:
            self._places.caches.close()
            self._places.folders.close()

    def _next(self) -> RunInProgress | None:
        """Wait for a run that has a device; None when all is over."""
        with self._lock:
            while not (request := self._lanes.take()):
                if self._closing and self._lanes.is_empty:
                    return None
                self._lock.wait()
            run = RunInProgress(request, self._feed, self._places, self._program)
            self._running[run.id] = run
            return run


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Where this app process's runs keep what they make."""

    caches: FreshCaches
    folders: RunFolders
    # several runs may begin at once, and share what is made first
    guard: threading.Lock = field(default_factory=threading.Lock)


class RunInProgress:
    """One run: its processes one after the other, its cache folder, its time."""

    def __init__(self, request: RunRequest, feed: Feed, places: _Places, program: Path) -> None:
        self._program = program
        self.id = request.id
        self._request = request
        self._feed = feed
        self._places = places
        self._cache: Path | None = None
        self._changed = threading.Event()
        self._stop_wanted = False
        self._kill_wanted = False
        self._began = time.monotonic()

    def stop(self, *, now: bool = False) -> None:
        """Safe from any thread."""
        self._stop_wanted = True
        self._kill_wanted = self._kill_wanted or now
        self._changed.set()

    def carry_out(self) -> e.Ended:
        """Run to the end, whatever it is."""
        self._began = time.monotonic()
        self._feed.put(RunStarted(run_id=self.id, request=self._request))
        try:
            self._prepare()
            starts: tuple[Start, ...] = ("cold", "warm") if self._request.task in MEASURED else ("cold",)
            for start in starts:
                ended = self._carry_out_process(start)
                if ended is not None:
                    return ended
        except AppError as error:
            return failed_to_start(error.message, error.hint)
        except OSError as error:
            reason = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
            return failed_to_start(f"The run could not be set up: {reason}.", "Check free space and permissions there.")
        except Exception:  # the queue goes on, and the run gets its end
            return failed_to_start(
                "CompileScope failed while it supervised this run.", "Please report it.", traceback.format_exc()
            )
        return e.Ended(outcome="finished", exit_code=0)

    def clean(self) -> None:
        """Remove the run's cache, and compress its traces."""
        if self._cache is not None:
            self._places.caches.remove(self._cache)
        if self._request.task == "run":
            self._places.folders.pack(self.id)

    def _prepare(self) -> None:
        workload = self._request.workload
        if workload is not None and not Path(workload.script).is_file():
            raise AppError(f"There is no file {workload.script}.", hint="Choose the script again.")
        with self._places.guard:
            if self._request.cache == "fresh":
                self._cache = self._places.caches.make(self.id)
            if self._request.task == "run":
                self._places.folders.make(self.id)

    def _carry_out_process(self, start: Start) -> e.Ended | None:
        if self._stop_wanted:
            return e.Ended(outcome="stopped")
        told = Told()
        process = WorkerProcess(
            command(self._request, start, cache=self._cache, program=self._program),
            on_events=lambda events: self._take_events(told, events),
            on_lines=lambda lines: self._take_lines(told, lines, start),
            has_room=self._feed.wait_for_room,
            changed=self._changed,
        )
        process.start()
        halt = Halt.NONE
        try:
            halt = self._await_end(process, told)
        finally:
            status = process.finish()
        return judge(told, status, task=self._request.task, halt=halt, timeout_s=self._request.timeout_s)

    def _await_end(self, process: WorkerProcess, told: Told) -> Halt:
        halt = Halt.NONE
        deadline = self._began + self._request.timeout_s
        while not process.has_ended:
            now = time.monotonic()
            if self._stop_wanted:
                halt = Halt.STOPPED
            elif now >= deadline and halt is Halt.NONE:
                halt = Halt.LINGERED if told.is_final else Halt.TIMED_OUT
            elif told.is_final:
                deadline = min(deadline, now + LINGER_S)
            if self._kill_wanted or halt is Halt.LINGERED:
                process.kill()
            elif halt is not Halt.NONE:
                process.stop()
            wait_s = deadline - now if halt is Halt.NONE else process.press_on()
            self._changed.wait(max(0.0, wait_s))
            self._changed.clear()
        return halt

    def _take_events(self, told: Told, events: list[e.Event]) -> None:
        told.note(events)
        self._feed.put(RunEvents(run_id=self.id, events=tuple(events)))
        if told.is_final:
            self._changed.set()

    def _take_lines(self, told: Told, lines: list[bytes], start: Start) -> None:
        told.last_lines.extend(lines)
        at = time.monotonic() - self._began
        self._feed.put(LogLines(run_id=self.id, at=at, lines=tuple(lines), start=start))


def forget(run_id: str) -> None:
    """Remove a run's files."""
    with contextlib.suppress(OSError):
        shutil.rmtree(run_folder(run_id), ignore_errors=True)
