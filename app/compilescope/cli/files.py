"""The files that a comparison is written to."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.cli.arguments import FILES
from compilescope.domain.comparison import Comparison
from compilescope.domain.errors import AppError, UsageError
from compilescope.domain.faults import HINT, fault
from compilescope.domain.workload import Measurement
from compilescope.report import tables

WRITERS: Mapping[str, Callable[[dict[str, Any], str], None]] = {
    "json": tables.write_json,
    "csv": tables.write_csv,
    "markdown": tables.write_markdown,
}
READ = ("script", "path", "baseline")


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where a comparison goes, by kind. Checked before anything runs."""

    paths: Mapping[str, str]
    page: str = "A4"

    @classmethod
    def wanted(cls, arguments: argparse.Namespace) -> Files:
        paths = {kind: path for kind in FILES if (path := getattr(arguments, kind))}
        for path in paths.values():
            check_writable(Path(path))
        check_apart(arguments)
        if "pdf" in paths:
            _check_pdf()
        return cls(paths=paths, page=arguments.page)

    def write(
        self,
        comparison: Comparison,
        result: dict[str, Any],
        *,
        source: str | None = None,
        measurement: Measurement | None = None,
    ) -> list[AppError]:
        """Write them all; what went wrong with some does not stop the others."""
        return list(self._write(comparison, result, source, measurement))

    def _write(
        self, comparison: Comparison, result: dict[str, Any], source: str | None, measurement: Measurement | None
    ) -> Iterator[AppError]:
        for kind, path in self.paths.items():
            try:
                if kind == "pdf":
                    from compilescope.report.pdf import write_pdf

                    write_pdf(comparison, path, self.page, source=source, measurement=measurement)
                else:
                    WRITERS[kind](result, path)
            except AppError as error:
                yield error
            except Exception as error:  # a fault of ours: the other files, and the table, are still to come
                yield AppError(fault(f"{path} was not written", error), hint=HINT)


def check_writable(path: Path) -> None:
    """Say so now, and not after an hour of measuring."""
    if path.name == "-":
        raise UsageError("- is no file.", hint="Give a file name, such as report.md.")
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{path} cannot be written.", hint="Choose a file in a folder that you can write to.")


def check_apart(arguments: argparse.Namespace) -> None:
    """No two results in one file, and none over what is read: one of both would be lost."""
    taken: dict[Path, str] = {}
    for name in (*READ, *FILES, "log"):
        given = getattr(arguments, name, None)
        # a device such as /dev/null may be given twice, and a folder holds nothing that is written here
        if not given or (Path(given).exists() and not Path(given).is_file()):
            continue
        first = taken.setdefault(Path(given).resolve(), name)
        if first != name and first in READ:
            raise UsageError(f"--{name} would write over {given}, which is read.", hint="Choose another file.")
        if first != name:
            raise UsageError(f"--{first} and --{name} are the same file, {given}.", hint="Give each its own.")


def _check_pdf() -> None:
    try:
        import compilescope.report.pdf  # noqa: F401
    except ImportError as error:
        raise AppError(
            f"The PDF cannot be made, since a part of Qt cannot be loaded: {error}.",
            hint="`compilescope doctor` says what is missing; JSON, CSV and Markdown need no Qt.",
        ) from error
