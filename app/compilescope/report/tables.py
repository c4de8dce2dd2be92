"""A comparison as files and text: JSON, CSV, Markdown, and the table of the command line.

All take the dictionary of `domain.results.comparison_json`.
"""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compilescope.domain import units, words
from compilescope.domain.baseline import baseline_sentences
from compilescope.domain.errors import AppError
from compilescope.domain.figures import Shown, at, figure, shown_in
from compilescope.domain.verdict import stored_kind
from compilescope.report.columns import (
    cache_note,
    has_several_workloads,
    label,
    subject,
    told_apart,
)
from compilescope.report.markdown import markdown

WIDTH = 100
GAP = 2
# they share a column of the terminal
COUNTS = ("compile.graphs", "compile.graph_breaks", "compile.recompiles")

CSV_PATHS = (
    *("id", "label", "outcome", "verdict.kind", "verdict.summary"),
    *(f"config.{name}" for name in ("backend", "mode", "options", "dynamic", "fullgraph", "scope")),
    *(path for one in shown_in(Shown.CSV) for path in one.csv_paths),
    *(f"cache.{cache}.{name}" for cache in ("fx_graph", "aot_autograd") for name in ("hits", "misses", "bypasses")),
    *("recompile_limits", "cudagraphs.skips"),
    *("error.stage", "error.type", "error.message", "error.hint"),
)
# the same in every row, so that rows of several files can be put together
COMMON_PATHS = (
    "created",
    *(f"workload.{name}" for name in ("script", "entry", "phase", "precision", "device")),
    *(f"environment.{name}" for name in ("python", "torch", "triton", "device", "driver", "cuda", "cpu", "os")),
)


def write_json(comparison: Mapping[str, Any], path: str | Path) -> None:
    """Write the comparison as JSON, for other tools and later comparisons."""
    _write(path, json.dumps(comparison, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(comparison: Mapping[str, Any], path: str | Path) -> None:
    """Write a row a configuration, with the JSON's names; a list becomes the number of what it holds."""
    _write(path, csv_text(comparison))


def write_markdown(comparison: Mapping[str, Any], path: str | Path) -> None:
    """Write the comparison as Markdown, ready for a pull request."""
    _write(path, markdown(comparison))


def csv_text(comparison: Mapping[str, Any]) -> str:
    """The text of the CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    renamed = {one.path: one.column for one in shown_in(Shown.CSV) if one.column}
    writer.writerow([*(renamed.get(path, path) for path in CSV_PATHS), *COMMON_PATHS])
    for run in comparison["runs"]:
        workload = run.get("workload") or comparison.get("workload")
        common = {**comparison, "workload": workload}
        writer.writerow([*(_cell(run, path) for path in CSV_PATHS), *(_cell(common, path) for path in COMMON_PATHS)])
    return out.getvalue()


def text_table(comparison: Mapping[str, Any], width: int = WIDTH) -> str:
    """The comparison for a terminal: a table within `width` columns, what failed and why, and what to use."""
    runs = told_apart(comparison)
    lines = [*_heading(comparison, width), *_table(runs, width)]
    for run in runs:
        kind = at(run, "verdict.kind")
        if kind in ("failed", "incorrect", "not_compiled"):
            where = words.where(at(run, "error.file"), at(run, "error.line"))
            lines += ["", *_wrapped(f"{label(run)}: {at(run, 'verdict.summary')}{where}", width)]
            hint = at(run, "error.hint")
            lines += _wrapped(f"  {hint}", width) if hint else []
    told = [row for run in runs for row in run.get("warnings") or ()]
    warnings = {(row["code"], units.without_figures(row["message"])): row["message"] for row in told}
    lines += (
        ["", *(line for text in warnings.values() for line in _wrapped(f"Note: {text}", width))] if warnings else []
    )
    if found := comparison.get("baseline"):
        lines += ["", *(line for text in baseline_sentences(found) for line in _wrapped(text, width))]
    recommendation = comparison.get("recommendation")
    if recommendation:
        lines += ["", *_wrapped(recommendation["summary"], width)]
        lines += [f"  {recommendation['snippet']}"] if recommendation.get("snippet") else []
        lines += [line for caveat in recommendation.get("caveats") or () for line in _wrapped(f"- {caveat}", width)]
    return "\n".join(lines) + "\n"


def _heading(comparison: Mapping[str, Any], width: int) -> list[str]:
    """What all rows are about: "mlp.py: Model, inference, fp32, cpu"."""
    workload = comparison.get("workload")
    if not workload:
        return []
    lines = _wrapped(f"{Path(workload['script']).name}: {', '.join(subject(comparison))}", width)
    if has_several_workloads(comparison):
        lines += _wrapped("Each row stands beside eager of its own phase and precision.", width)
    lines += _wrapped(cache_note(comparison), width)
    return [*lines, ""]


def _table(runs: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    *front, last = (one for one in shown_in(Shown.LINE) if one.path not in COUNTS)
    cells = [["Configuration", *(one.head for one in front), "Gr/Br/Rc", last.head]]
    for run in runs:
        counts = "/".join(figure(path).text_in(run) for path in COUNTS)
        cells.append([label(run), *(one.text_in(run) for one in front), counts, last.text_in(run)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    # names can be long; the figures must not be cut
    widths[0] = max(min(widths[0], width - sum(widths[1:]) - GAP * (len(widths) - 1)), 12)
    head, *rows = [line for row in cells for line in _lines(row, widths)]
    return [head, "─" * min(sum(widths) + GAP * (len(widths) - 1), width), *rows]


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row; a name that is too long goes on below, since configurations that begin alike differ at their ends."""
    name, *more = textwrap.wrap(row[0], widths[0], break_on_hyphens=False) or [""]
    figures = (text.rjust(size) for text, size in zip(row[1:-1], widths[1:-1], strict=True))
    return [(" " * GAP).join([name.ljust(widths[0]), *figures, row[-1]]).rstrip(), *more]


def _wrapped(text: str, width: int) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()) + (2 if text.startswith("- ") else 0))
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _cell(value: Mapping[str, Any], path: str) -> str | int | float:
    found = stored_kind(value) if path == "verdict.kind" else at(value, path)
    if found is None:
        return ""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, (int, float)):
        return found
    if isinstance(found, Mapping):
        return json.dumps(found, ensure_ascii=False)
    if isinstance(found, (list, tuple)):
        return len(found)
    text = str(found)
    # a spreadsheet must not take a foreign text for a formula
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _write(path: str | Path, text: str) -> None:
    try:
        # a path or a message may hold what is no character; JSON has an escape for it, and the others show it
        Path(path).write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise AppError(
            f"{path} could not be written: {error.strerror or error}.", hint="Choose a folder that you can write to."
        ) from error
