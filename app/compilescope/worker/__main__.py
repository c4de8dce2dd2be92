"""Start of a worker process, by file path.

Spawned children of the script import this too; there it only helps to find a script by a name that is not its file's.
"""

import os
import signal
import sys

HIGH_FD = 600
INTERRUPTED = 130


def _take_channels() -> tuple[int, int]:
    """Private copies of stdin and stdout; the script prints to stderr and reads nothing."""
    lifeline = os.dup(0)
    events = _high(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lifeline, events


def _high(fd: int) -> int:
    """A copy with a high number, out of the way of scripts that close what low descriptors they find."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except (ImportError, OSError):  # Windows, or fewer descriptors than that
        return os.dup(fd)


def _read_line(fd: int) -> bytes:
    """The first line, byte by byte: what follows belongs to the guardian."""
    line = bytearray()
    while (byte := os.read(fd, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def _register_package() -> None:
    """Make `compilescope` importable without a path entry that could hide modules of the script."""
    import importlib.util

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (before any import)
    spec = importlib.util.spec_from_file_location(
        "compilescope",
        os.path.join(root, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[root],
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{root} is no package")
    package = importlib.util.module_from_spec(spec)
    sys.modules["compilescope"] = package
    spec.loader.exec_module(package)


def _drop_own_folder() -> None:
    own = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 (before any import)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != own]


def _main() -> None:
    # a shell that starts the app in the background has it ignore SIGINT, which is how a stop arrives
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _serve()
    except KeyboardInterrupt:
        # a stop while this program itself is still being imported: nothing to tell
        os._exit(INTERRUPTED)


def _serve() -> None:
    lifeline, events = _take_channels()
    _drop_own_folder()
    line = _read_line(lifeline)
    _register_package()
    from compilescope.worker import lifeline as guard

    guard.start(lifeline)
    from compilescope.worker import session

    session.main(line.decode("utf-8"), events)


class _Alias:
    """Finds the script by the name that the worker gave it, since a library owns that of its file."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> object:
        import importlib.util

        alias, _, path = os.environ["COMPILESCOPE_ALIAS"].partition("=")
        return importlib.util.spec_from_file_location(name, path) if name == alias else None


if __name__ == "__main__":
    _main()
elif __name__ == "__mp_main__" and "COMPILESCOPE_ALIAS" in os.environ:
    sys.meta_path.append(_Alias)  # type: ignore[arg-type]
