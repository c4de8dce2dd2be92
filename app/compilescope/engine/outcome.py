"""How a run ended, from what its process told and how it left."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from compilescope.domain import events as e
from compilescope.domain.units import duration
from compilescope.domain.workload import MEASURED, Task

LAST_LINES = 50

SIGNAL_TEXTS = {
    "SIGSEGV": (
        "a segmentation fault",
        "Native code failed: an extension, a driver or generated code. "
        "Try backend eager or aot_eager to see whether generated code is the cause.",
    ),
    "SIGBUS": ("a bus error", "Often a full /dev/shm or a file that shrank while it was mapped."),
    "SIGABRT": ("an abort", "The last log lines usually say which library gave up, and why."),
    "SIGILL": ("an illegal instruction", "A library was built for another processor than this one."),
    "SIGFPE": ("a floating-point exception", "Native code divided an integer by zero."),
    "SIGKILL": ("a kill from outside", "Most often the machine ran out of memory: try a smaller batch or model."),
    "SIGTERM": ("a request from outside", "Something else on this machine asked the process to end."),
}

# what the worker leaves with where it cannot tell any more
ODD_STATUSES = {
    74: (
        "The script closed the file descriptor that CompileScope's events go through,",
        "It closes every descriptor that it finds, as daemons do; let it keep those that it did not open.",
    ),
    130: ("The script's process was interrupted from outside (SIGINT)", "Something else sent it the signal."),
}


class Halt(Enum):
    """Why the engine itself ended a process."""

    NONE = "none"
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    LINGERED = "lingered"  # it had told its end, and did not leave


@dataclass
class Told:
    """What of a process's story decides its outcome. Filled by reader threads, read after they ended."""

    hello: bool = False
    stage: str = "start"
    done: bool = False
    failure: e.RunError | None = None
    last_at: float = 0.0
    last_lines: deque[bytes] = field(default_factory=lambda: deque(maxlen=LAST_LINES))

    def note(self, events: Sequence[e.Event]) -> None:
        for event in events:
            self.last_at = max(self.last_at, event.at)
            match event:
                case e.Hello():
                    self.hello = True
                case e.Stage(name="done"):
                    self.done = True
                case e.Stage(name=name, state="begin"):
                    self.stage = name
                case e.Failure(error=error):
                    self.failure = error or e.RunError(stage=self.stage, type="Failure", message="The worker failed.")

    @property
    def is_final(self) -> bool:
        """The process has nothing more to tell."""
        return self.done or self.failure is not None


def judge(told: Told, status: int, *, task: Task, halt: Halt, timeout_s: float) -> e.Ended | None:
    """The end that a process puts to its run; None where it did all that it was to do."""
    is_done = told.done or (task not in MEASURED and told.hello)
    if is_done and told.failure is None and (status == 0 or halt is Halt.LINGERED):
        return None
    # these come before the failure, since an interrupted worker may report the interrupt as one
    if halt is Halt.STOPPED:
        return _ended(told, "stopped", None, status)
    if halt is Halt.TIMED_OUT:
        return _ended(told, "timed_out", _time_is_over(told, timeout_s), status)
    if told.failure is not None:
        return _ended(told, "failed", told.failure, status)
    return _ended(told, "crashed", _crash(told, status), status)


def failed_to_start(message: str, hint: str, traceback: str = "") -> e.Ended:
    """The end of a run whose process never came to be."""
    kind = "InternalError" if traceback else "SetupError"
    error = e.RunError(stage="start", type=kind, message=message, hint=hint, traceback=traceback)
    return e.Ended(outcome="failed", error=error)


def _ended(told: Told, outcome: str, error: e.RunError | None, status: int) -> e.Ended:
    name = signal_name(status)
    return e.Ended(
        at=told.last_at,
        outcome=outcome,
        error=error,
        exit_code=None if name else status,
        signal=name,
        last_lines=tuple(line.decode(errors="replace") for line in told.last_lines) if outcome != "stopped" else (),
    )


def signal_name(status: int) -> str | None:
    """The name of the signal that ended a process, where one did."""
    if status >= 0:
        return None
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _time_is_over(told: Told, timeout_s: float) -> e.RunError:
    return e.RunError(
        stage=told.stage,
        type="Timeout",
        message=f"The run was still in stage {told.stage} after {duration(timeout_s)}, and was stopped.",
        hint="Give it more time (--timeout SECONDS), or look at the last log lines for what it waits for.",
    )


def _crash(told: Told, status: int) -> e.RunError:
    name = signal_name(status)
    if name is not None:
        what, hint = SIGNAL_TEXTS.get(name, ("a signal", "The last log lines may say more."))
        return e.RunError(
            stage=told.stage,
            type=name,
            message=f"The script's process was ended by {what} ({name}) in stage {told.stage}.",
            hint=hint,
        )
    if status in ODD_STATUSES:
        message, hint = ODD_STATUSES[status]
        return e.RunError(stage=told.stage, type="EarlyExit", message=f"{message} in stage {told.stage}.", hint=hint)
    if not told.hello:
        return e.RunError(
            stage="start",
            type="NoStart",
            message=f"The worker ended with status {status} before it could begin.",
            hint="The last log lines say why; the interpreter needs to be Python 3.10 or newer.",
        )
    return e.RunError(
        stage=told.stage,
        type="EarlyExit",
        message=f"The script's process left with status {status} in stage {told.stage}, before it was done.",
        hint="Something called os._exit, or ended the process from native code.",
    )
