"""`compilescope history` and `compilescope report`: what is stored, as a list and as files."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from compilescope.cli.files import Files
from compilescope.domain import units
from compilescope.domain.errors import UsageError
from compilescope.domain.keyhistory import with_keys
from compilescope.domain.results import comparison_json
from compilescope.recording import key_sources
from compilescope.report import tables
from compilescope.store.exchange import HistoryError
from compilescope.store.history import History
from compilescope.store.records import ComparisonRow

MOST = 10_000
ID_SHOWN = 8


@contextmanager
def opened_history(*, to_write: bool = False) -> Iterator[History]:
    """The user's history; what is wrong with it is told on stderr. `to_write`: so is what could not be written."""
    history = History()
    if history.path is None and not to_write:
        # what is in it cannot be told, and "empty" would be wrong
        reason = re.split(r"[.;] [Ww]hat runs now", history.notice)[0]
        history.close()
        raise HistoryError(f"{reason}.", hint="Close other programs that use it, or see to its disk, then try again.")
    if history.notice:
        print(f"compilescope: {history.notice}", file=sys.stderr)
    try:
        yield history
    finally:
        history.close()
        if to_write and history.problem:
            print(f"compilescope: {history.problem}", file=sys.stderr)


def history(arguments: argparse.Namespace) -> int:
    """List the comparisons; returns 0."""
    with opened_history() as stored:
        rows = stored.comparisons(arguments.search, limit=MOST)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    if arguments.json:
        print(json.dumps([_row_json(row) for row in rows], indent=1, ensure_ascii=False), flush=True)
    elif rows:
        print("\n".join(_lines(rows)), flush=True)
    else:
        print("No stored comparison fits." if arguments.search else "The history is empty.", flush=True)
    return 0


def report(arguments: argparse.Namespace) -> int:
    """Write a stored comparison as files, and its table; returns 0."""
    files = Files.wanted(arguments)
    with opened_history() as stored:
        found = stored.find(arguments.comparison)
        comparison, source, measurement = stored.load(found), stored.source(found), stored.measurement(found)
        result = with_keys(comparison_json(comparison), comparison, key_sources(stored))
    if not comparison.runs:
        raise UsageError(f"Comparison {found} has no run that told anything.", hint="`compilescope history` lists all.")
    problems = files.write(comparison, result, source=source, measurement=measurement)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    print(tables.text_table(result), end="", flush=True)
    if problems:
        raise problems[0]
    return 0


def _lines(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    cells = [("Id", "Date", "Script", "Runs", "Best", "torch", "Device", "Tags")]
    cells += [
        (
            row.id[:ID_SHOWN],
            datetime.fromtimestamp(row.created).astimezone().strftime("%Y-%m-%d %H:%M"),
            row.title,
            _runs(row),
            f"{row.best_label} {units.ratio(row.best_speedup)}" if row.best_speedup else "–",
            row.torch or "–",
            row.device or "–",
            ", ".join(row.tags),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _runs(row: ComparisonRow) -> str:
    notes = [f"{row.failed} failed"] if row.failed else []
    notes += [f"{row.unfinished} unfinished"] if row.unfinished else []
    return f"{row.runs} ({', '.join(notes)})" if notes else str(row.runs)


def _row_json(row: ComparisonRow) -> dict[str, Any]:
    names = ("id", "title", "script", "notes", "runs", "finished", "failed", "unfinished", "torch", "device")
    return {name: getattr(row, name) for name in names} | {
        "created": datetime.fromtimestamp(row.created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tags": list(row.tags),
        "best": {"label": row.best_label, "speedup": row.best_speedup} if row.best_speedup else None,
    }
