"""What a report is made of: plain values that say what stands on the pages, and nothing of how it looks there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compilescope.domain import words

Tone = words.Tone | Literal["strong"]
Align = Literal["left", "right"]
Style = Literal["lead", "body", "small", "label"]


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """Running text. `lead` is the sentence that a hurried reader takes away, `label` names what follows it."""

    text: str
    style: Style = "body"
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Bullets:
    """Short statements, one below the other."""

    items: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Code:
    """Lines of code. With `first_line` they are numbered; `marked` is the line that matters."""

    text: str
    first_line: int | None = None
    marked: int | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Names and values, side by side."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell; `link` is the anchor of the section that it leads to."""

    text: str
    tone: Tone = ""
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column's head. Only columns with a `share` break their lines, and get that share of the free width."""

    title: str
    unit: str = ""
    align: Align = "right"
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under one head, which is repeated on every page."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The answer: what to do, the line of code, what it costs and what to know before relying on it."""

    title: str
    text: str
    code: str = ""
    points: Sequence[str] = ()
    tone: Tone = "good"


@dataclass(frozen=True, kw_only=True)
class SpeedupBar:
    """One configuration's speedup. `kind` is its verdict; without an interval, `note` says why."""

    label: str
    kind: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class SpeedupChart:
    """Speedups with their intervals, beside eager's 1."""

    bars: Sequence[SpeedupBar]


@dataclass(frozen=True, kw_only=True)
class DistributionChart:
    """Times per call of both sides, in seconds."""

    eager: Sequence[float]
    compiled: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class PhaseBar:
    """One first call: its seconds by group of phases, outermost phases only."""

    label: str
    total_s: float
    parts: Sequence[tuple[str, float]]


@dataclass(frozen=True, kw_only=True)
class PhaseChart:
    """First calls, stacked by group."""

    bars: Sequence[PhaseBar]


@dataclass(frozen=True, kw_only=True)
class CostLine:
    """Time spent after so many calls: each takes `per_call_s`, and the first one `ahead_s` more."""

    label: str
    ahead_s: float
    per_call_s: float
    is_eager: bool = False


@dataclass(frozen=True, kw_only=True)
class CostChart:
    """Cumulative time over calls; where a line crosses eager's, compiling has paid for itself."""

    lines: Sequence[CostLine]
    calls: float


@dataclass(frozen=True, kw_only=True)
class SweepChart:
    """Seconds per call of both sides at each size of a sweep; None where a side was not timed."""

    sizes: Sequence[str]
    eager: Sequence[float | None]
    compiled: Sequence[float | None]


@dataclass(frozen=True, kw_only=True)
class MemoryChart:
    """Peak bytes of eager and of compiled by configuration; None where unknown."""

    rows: Sequence[tuple[str, int | None, int | None]]


Chart = SpeedupChart | DistributionChart | PhaseChart | CostChart | SweepChart | MemoryChart


@dataclass(frozen=True, kw_only=True)
class ChartBlock:
    """A chart and the sentence below it."""

    chart: Chart
    caption: str


Block = Paragraph | Bullets | Code | Facts | Table | Card | ChartBlock


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and what stands under it. `level` 1 is a chapter; `badge` a word beside the heading, with its tone."""

    title: str
    blocks: Sequence[Block]
    level: int = 1
    anchor: str = ""
    starts_page: bool = False
    badge: str = ""
    badge_tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The whole report. The first section is the first page: it has the title instead of a heading."""

    title: str
    subtitle: str
    created: str
    made_with: str
    sections: Sequence[Section]
