"""The command line: the window by default, subcommands without one."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from compilescope.cli.arguments import parse
from compilescope.cli.display import has_display
from compilescope.domain.errors import AppError, UsageError

FINISHED, FAILED, BAD_USAGE, STOPPED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout:  # there is none in a program without a console
            sys.stdout.flush()
        return status
    except AppError as error:
        print(f"compilescope: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return BAD_USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        return STOPPED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO):
            raise
        # the interpreter must not try to flush at exit what nobody takes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            what = error.filename or "The output"
            print(f"compilescope: {what} could not be written: {error.strerror}.", file=sys.stderr)
        return FAILED


def _run(argv: list[str]) -> int:
    arguments = parse(argv)
    # each is imported only when it is wanted: the window must open fast, and bench must not need Qt
    if arguments.command == "bench":
        from compilescope.cli.bench import bench

        return bench(arguments)
    if arguments.command == "calibrate":
        from compilescope.cli.calibrate import calibrate

        return calibrate(arguments.device, arguments.python)
    if arguments.command == "doctor":
        from compilescope.cli.doctor import doctor

        return doctor(arguments.python)
    if arguments.command == "trace":
        from compilescope.cli.trace import trace

        return trace(arguments)
    if arguments.command == "history":
        from compilescope.cli.stored import history

        return history(arguments)
    if arguments.command == "report":
        from compilescope.cli.stored import report

        return report(arguments)
    return _window(arguments.script)


def _window(script: str | None) -> int:
    chosen = Path(script) if script else None
    if chosen is not None and not chosen.is_file():
        raise UsageError(f"There is no file {script}.", hint="Give the path of a model script, or nothing.")
    if not has_display():
        raise AppError(
            "There is no display here, so the window cannot open.",
            hint="`compilescope bench SCRIPT` runs the same comparison without one.",
        )
    # nothing that is loaded for the window is garbage; collection begins again once the window has been painted
    gc.disable()
    try:
        from compilescope.main import run_window
    except ImportError as error:
        raise AppError(
            f"The window cannot open, since a part of it cannot be loaded: {error}.",
            hint="`compilescope doctor` says what is missing; `compilescope bench SCRIPT` works without a window.",
        ) from error
    return run_window(chosen)
