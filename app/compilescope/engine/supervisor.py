"""The thread that runs what is asked for, one run after the other."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import traceback
from collections import deque
from pathlib import Path

from compilescope.domain import events as e
from compilescope.domain.errors import AppError
from compilescope.domain.workload import MEASURED, Start
from compilescope.engine.caches import FreshCaches
from compilescope.engine.command import command, run_folder, worker_program
from compilescope.engine.feed import Feed, LogLines, RunEvents, RunStarted
from compilescope.engine.outcome import Halt, Told, failed_to_start, judge
from compilescope.engine.process import WorkerProcess
from compilescope.engine.request import RunRequest

__all__ = ["RunRequest", "Supervisor"]

LINGER_S = 10.0  # a worker that has told its end leaves at once, unless something holds it


class Supervisor:
    """Owns the worker processes. Its methods may be called from any thread and do not wait, except `close`.

    Every submitted run ends in exactly one `Ended` in the feed. `program`: the worker, unless it is ours.
    """

    def __init__(self, feed: Feed, *, caches: FreshCaches | None = None, program: Path | None = None) -> None:
        self._feed = feed
        self._program = program or worker_program()
        self._caches = caches or FreshCaches()
        self._lock = threading.Condition()
        self._queue: deque[RunRequest] = deque()
        self._current: RunInProgress | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="supervisor", daemon=True)
        self._thread.start()

    def submit(self, request: RunRequest) -> None:
        """Queue a run."""
        with self._lock:
            if self._closing:
                raise RuntimeError("the supervisor is closed")
            self._queue.append(request)
            self._lock.notify_all()

    def stop(self, run_id: str | None = None, *, now: bool = False) -> None:
        """Stop one run, or the running one and the queue. `now`: without asking the process first."""
        with self._lock:
            dropped = [request for request in self._queue if run_id in (None, request.id)]
            for request in dropped:
                self._queue.remove(request)
            current = self._current if self._current and run_id in (None, self._current.id) else None
        for request in dropped:
            self._feed.put(RunEvents(run_id=request.id, events=(e.Ended(outcome="stopped"),)))
        if current:
            current.stop(now=now)

    def hurry(self, run_id: str) -> None:
        """Put a run that waits before the others."""
        with self._lock:
            for request in [request for request in self._queue if request.id == run_id]:
                self._queue.remove(request)
                self._queue.appendleft(request)

    def close(self, timeout: float = 5.0) -> None:
        """Stop everything and wait until no process is left."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.stop(now=True)
            self._thread.join(1.0)

    @property
    def is_busy(self) -> bool:
        with self._lock:
            return self._current is not None or bool(self._queue)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        self._caches.clean()
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    break
                run = self._current = RunInProgress(self._queue.popleft(), self._feed, self._caches, self._program)
            ended = run.carry_out()
            with self._lock:
                # before the word is out, so that who hears it may submit and close
                self._current = None
            self._feed.put(RunEvents(run_id=run.id, events=(ended,)))
            run.clean()
        self._caches.close()


class RunInProgress:
    """One run: its processes one after the other, its cache folder, its time."""

    def __init__(self, request: RunRequest, feed: Feed, caches: FreshCaches, program: Path) -> None:
        self._program = program
        self.id = request.id
        self._request = request
        self._feed = feed
        self._caches = caches
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
        if self._cache is not None:
            self._caches.remove(self._cache)

    def _prepare(self) -> None:
        workload = self._request.workload
        if workload is not None and not Path(workload.script).is_file():
            raise AppError(f"There is no file {workload.script}.", hint="Choose the script again.")
        if self._request.cache == "fresh":
            self._cache = self._caches.make(self.id)
        if self._request.task == "run":
            run_folder(self.id).mkdir(parents=True, exist_ok=True)

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
