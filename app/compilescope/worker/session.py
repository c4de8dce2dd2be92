"""One job from its order to its last event: load, eager, compile, check, warm up, measure."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from compilescope.domain.events import Failure, Hello, Stage
from compilescope.domain.workload import MEASURED, Job
from compilescope.worker import environment, errors, first_use
from compilescope.worker.channel import Channel
from compilescope.worker.errors import WorkerError

if TYPE_CHECKING:
    from compilescope.worker.bench import Bench

INTERRUPTED = 130
# what `blame` found out about an error, written to it
HINT, STAGE = "compilescope_hint", "compilescope_stage"


class Session:
    """Runs one job and tells its stages."""

    def __init__(self, job: Job, channel: Channel) -> None:
        self.job = job
        self.channel = channel
        self.stage = "start"
        self._is_interrupted = False

    def run(self) -> int:
        """The process's exit status."""
        try:
            signal.signal(signal.SIGINT, self._interrupt)
            self._work()
        except BaseException as error:  # the process's outermost loop: whatever a script raises is told
            return self._fail(error)
        return 0

    def _fail(self, error: BaseException) -> int:
        if self._is_interrupted:
            return INTERRUPTED
        if isinstance(error, WorkerError) and error.__cause__ is None:
            print(error.message, file=sys.stderr)  # found here, so that no frame says more than the sentence
        else:
            traceback.print_exception(error)
        script = self.job.workload.script if self.job.workload else None
        told = errors.describe(error, getattr(error, STAGE, self.stage), script)
        self.channel.emit(Failure(error=dataclasses.replace(told, hint=getattr(error, HINT, "") or told.hint)))
        return 1

    def _interrupt(self, _number: int, _frame: object) -> None:
        """A real interrupt, which a script may also only raise."""
        self._is_interrupted = True
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def stage_of(self, name: str) -> Iterator[None]:
        """Tell that a stage begins and ends; after a failure its name stays, to be told with the error."""
        self.stage = name
        began = perf_counter()
        self.channel.emit(Stage(name=name, state="begin"))
        yield
        self.channel.emit(Stage(name=name, state="end", duration_s=perf_counter() - began))

    def _work(self) -> None:
        self._hello()
        with self.stage_of("start"):
            if not self._start():
                return
        if self.job.task == "playoff":
            # torch is imported only now
            from compilescope.worker.playoff import PlayOff

            PlayOff(self.job, self.channel, self.stage_of).run()
        elif self.job.task != "doctor":
            bench = self._bench()
            bench.load(both=self.job.task in MEASURED)
            if self.job.task in MEASURED:
                bench.run()
        with self.stage_of("done"):
            pass

    def _bench(self) -> Bench:
        # torch is imported only now
        from compilescope.worker.bench import Bench

        return Bench(self.job, self.channel, self.stage_of, lambda: self._is_interrupted)

    def _hello(self) -> None:
        version = environment.torch_version()
        self.channel.emit(
            Hello(
                start=self.job.start,
                time=time.time(),
                torch=version,
                python=platform.python_version(),
                capabilities=environment.capabilities(version),
                cache_was_empty=environment.cache_is_empty(),
            )
        )

    def _start(self) -> bool:
        """Import torch and describe the machine; whether there is a torch to go on with."""
        version = environment.torch_version()
        if version is None:
            self.channel.emit(environment.bare())
            if self.job.task == "doctor":
                return False
            raise WorkerError(
                f"torch is not installed for {sys.executable}.",
                hint="Choose the interpreter that has torch, or install it there.",
                type="ModuleNotFoundError",
            )
        if environment.parse_version(version) < environment.OLDEST_TORCH:
            raise WorkerError(f"torch {version} is too old.", hint="CompileScope needs torch 2.6 or later.")
        with first_use.timed("import of torch", self.channel.emit):
            import torch  # noqa: F401
        workload = self.job.workload
        self.channel.emit(
            environment.collect(workload.device if workload else None, choices=self.job.task not in MEASURED)
        )
        return True


def main(order: str, events: int) -> None:
    """Run the job that the order describes, and leave at once: torch's compile pools can hold a normal exit."""
    channel = Channel(events)
    status = 1
    try:
        status = Session(Job.decode(order), channel).run()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)
