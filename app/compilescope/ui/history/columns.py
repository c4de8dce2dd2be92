"""What the history shows of each comparison."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from compilescope.domain import units
from compilescope.ui.models.rows import Column

if TYPE_CHECKING:
    from compilescope.store.records import ComparisonRow


def date_text(created: float) -> str:
    return datetime.fromtimestamp(created).astimezone().strftime("%Y-%m-%d  %H:%M")


def runs_text(row: ComparisonRow) -> str:
    return units.plural(row.runs, "configuration")


def result_text(row: ComparisonRow) -> str:
    """What it came to, in a few words."""
    if row.unfinished:
        return f"{row.unfinished} of {row.runs} unfinished"
    if row.failed == row.runs:
        return "failed"
    failed = f", {row.failed} failed" if row.failed else ""
    if row.best_speedup:
        return f"{row.best_label}{failed}"
    if not row.finished:
        return f"stopped{failed}"
    return f"none shown to be faster{failed}"


def _tone(row: ComparisonRow) -> str:
    if row.unfinished:
        return "accent"
    if row.failed == row.runs:
        return "bad"
    return "good" if row.best_speedup else "muted"


COLUMNS: tuple[Column[ComparisonRow], ...] = (
    Column(title="Date", value=lambda row: row.created, text=lambda row: date_text(row.created)),
    Column(title="Script", value=lambda row: row.title, text=lambda row: row.title, tip=lambda row: row.script),
    Column(
        title="Runs",
        value=lambda row: row.runs,
        text=lambda row: str(row.runs),
        is_number=True,
        explanation="Configurations that were compared.",
    ),
    Column(
        title="Best speedup",
        value=lambda row: row.best_speedup,
        text=lambda row: units.ratio(row.best_speedup),
        is_number=True,
        tone=lambda row: "good" if row.best_speedup else "muted",
        explanation="Of the configurations that are faster than eager for certain.",
    ),
    Column(title="Result", value=result_text, text=result_text, tone=_tone, tip=result_text),
    Column(title="torch", value=lambda row: row.torch or "", text=lambda row: row.torch or "–"),
    Column(
        title="Device",
        value=lambda row: row.device or "",
        text=lambda row: row.device or "–",
        tip=lambda row: row.device or "",
    ),
    Column(
        title="Tags",
        value=lambda row: row.tags_json,
        text=lambda row: ", ".join(row.tags),
        tip=lambda row: row.notes,
        tone=lambda _: "accent",
    ),
)
