"""Window, terminal, JSON, CSV, Markdown and PDF say the same of a run: the word, the counts, the figures."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pypdf
import pytest
from fakes.played import played

from compilescope.domain.comparison import Comparison, recommend
from compilescope.domain.difference import difference
from compilescope.domain.figures import FIGURES, Figure, Shown, at, figure, result, shown_in
from compilescope.domain.measures import measure
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.verdict import judge_with_fault
from compilescope.domain.words import UNKNOWN
from compilescope.report import blocks
from compilescope.report.document import build_document
from compilescope.report.markdown import escape, markdown
from compilescope.report.pdf import write_pdf
from compilescope.report.tables import COUNTS, csv_text, text_table
from compilescope.ui.answer import answer
from compilescope.ui.findings import Finding
from compilescope.ui.models.comparison import COLUMNS, TableRow, comparison_rows

PLAYED = played()
FACTORS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "": 1.0}


class Found:
    """Findings of runs that were judged already."""

    def __init__(self, comparison: Comparison) -> None:
        self.floor = comparison.noise_floor
        self.recommendation = recommend(comparison)

    def of(self, run: Run) -> Finding:
        verdict, problem = judge_with_fault(run, self.floor)
        return Finding(measures=measure(run), verdict=verdict, problem=problem)


@pytest.fixture(params=list(PLAYED))
def comparison(request: pytest.FixtureRequest) -> Comparison:
    return PLAYED[request.param]


@pytest.fixture
def value(comparison: Comparison) -> dict[str, Any]:
    """The comparison as its JSON file has it."""
    return dict(json.loads(json.dumps(comparison_json(comparison), allow_nan=False)))


def texts(run: Mapping[str, Any], place: Shown) -> dict[str, str]:
    """What a run's JSON comes to in words, by the head of the column."""
    return {one.head: one.text_in(run) for one in shown_in(place)}


def window_rows(comparison: Comparison) -> list[TableRow]:
    rows = comparison_rows(comparison.runs, Found(comparison))  # type: ignore[arg-type]
    return [row for row in rows if row.run is not None]


def test_that_enough_kinds_of_comparisons_are_held_together() -> None:
    words = {run["verdict_word"] for found in PLAYED.values() for run in comparison_json(found)["runs"]}

    assert len(PLAYED) >= 25
    assert words >= {"faster", "slower", "no difference", "too noisy", "no speedup", "wrong results", "not compiled"}
    assert words >= {"failed", "crashed", "timed out", "stopped", "not run", "saved trace", "running", "waiting"}


def test_that_a_run_and_its_json_tell_the_same_figures(comparison: Comparison, value: dict[str, Any]) -> None:
    for run, told in zip(comparison.runs, value["runs"], strict=True):
        found = result(run, comparison.noise_floor)
        assert {one.path: one.text(found) for one in FIGURES} == {one.path: one.text_in(told) for one in FIGURES}


def test_that_the_windows_table_says_what_the_json_says(comparison: Comparison, value: dict[str, Any]) -> None:
    for row, run in zip(window_rows(comparison), value["runs"], strict=True):
        shown = {column.title: column.text(row) for column in COLUMNS}
        expected = texts(run, Shown.TABLE | Shown.OFFERED)
        word, standing = expected.pop("Verdict"), shown["Verdict"]
        assert {name: shown[name] for name in expected} == expected
        if run["outcome"] is not None:
            # for who watches, with when it failed
            assert standing == word or standing.startswith(f"{word} ")
        for column in COLUMNS:
            assert column.text(row) != UNKNOWN or column.value(row) is None


def test_that_the_terminal_says_what_the_json_says(value: dict[str, Any]) -> None:
    lines = text_table(value, width=200).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Configuration"))
    heads, rows = cells(lines[start]), [cells(line) for line in lines[start + 2 :]][: len(value["runs"])]
    for row, run in zip(rows, value["runs"], strict=True):
        expected = texts(run, Shown.LINE)
        for path in COUNTS:
            del expected[figure(path).head]
        shown = dict(zip(heads[1:], row[1:], strict=True))
        assert shown.pop("Gr/Br/Rc") == "/".join(figure(path).text_in(run) for path in COUNTS)
        assert shown == expected


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_that_markdown_says_what_the_json_says(value: dict[str, Any]) -> None:
    table = [line.strip("|").split("|") for line in markdown(value).splitlines() if line.startswith("|")]
    (heads, _, *rows) = [[cell.strip() for cell in row] for row in table]
    for row, run in zip(rows, value["runs"], strict=True):
        expected = {name: escape(text) for name, text in texts(run, Shown.MARKDOWN).items()}
        assert dict(zip(heads[1:], row[1:], strict=True)) == expected


def test_that_csv_says_what_the_json_says(value: dict[str, Any]) -> None:
    for row, run in zip(csv.DictReader(io.StringIO(csv_text(value))), value["runs"], strict=True):
        for one in shown_in(Shown.CSV):
            for path in one.csv_paths:
                known, text = at(run, path), row[one.column or path]
                assert text == ("" if known is None else str(known).lower() if isinstance(known, bool) else str(known))
        assert row["verdict.kind"] == ((run["verdict"] or {}).get("kind") or "")


def test_that_the_report_says_what_the_json_says(comparison: Comparison, value: dict[str, Any]) -> None:
    document = build_document(comparison)
    tables = [block for part in document.sections for block in part.blocks if isinstance(block, blocks.Table)]
    heads = {one.head: one for one in FIGURES}
    checked = 0
    for table in tables:
        if table.columns[0].title != "Configuration" or len(table.rows) != len(value["runs"]):
            continue
        for row, run in zip(table.rows, value["runs"], strict=True):
            for column, cell in list(zip(table.columns, row, strict=True))[1:]:
                if column.title in heads:
                    check_cell(heads[column.title], column, cell.text, run)
                    checked += 1
    assert checked >= 15 * len(value["runs"])


def check_cell(one: Figure, column: blocks.Column, text: str, run: Mapping[str, Any]) -> None:
    """A cell of a column with a unit of its own holds the figure to the last digit that it shows."""
    known = one.read(run)
    if known is None or column.unit == "":
        assert text == one.kind.shown(known), one.path
        return
    factor = FACTORS.get(column.unit, 1.0)
    number = text.replace("\u202f", "").replace("−", "-")
    digits = len(number.partition(".")[2])
    assert abs(float(number) * factor - one.kind.key(known)) <= 0.5001 * 10**-digits * factor, one.path


def test_that_a_configurations_section_says_what_the_json_says(comparison: Comparison, value: dict[str, Any]) -> None:
    sections = {part.anchor: part for part in build_document(comparison).sections if part.anchor}
    for run in value["runs"]:
        part = sections[f"run-{run['id']}"]
        assert part.badge == run["verdict_word"]
        facts = dict(labelled(part))
        for one in shown_in(Shown.FACTS):
            if one.title in facts:
                assert facts[one.title] == one.kind.at_length(one.read(run)), one.path
            elif one.section == "Memory" or (one.section == "Timing" and run["timing"]["compiled_ms"]):
                assert one.read(run) is None, one.path


def labelled(part: blocks.Section) -> Iterator[tuple[str, str]]:
    for block in part.blocks:
        if isinstance(block, blocks.Facts):
            yield from block.rows


def test_that_a_difference_says_what_the_json_says(comparison: Comparison, value: dict[str, Any]) -> None:
    for run, told in zip(comparison.runs, value["runs"], strict=True):
        rows = {row.name: row for row in difference(run, run, noise_floor=comparison.noise_floor).rows}
        for one in shown_in(Shown.DIFFERENCE):
            assert rows[one.title].before == rows[one.title].after == one.text_in(told)


def test_that_every_output_answers_the_same(comparison: Comparison, value: dict[str, Any]) -> None:
    recommendation = value["recommendation"]
    card = window_card(comparison)
    report = build_document(comparison).sections[0]
    said = one_line(text_table(value))
    if recommendation is None:
        return
    summary = recommendation["summary"]
    assert one_line(summary) in said and escape(summary) in markdown(value)
    (answered,) = [block for block in report.blocks if isinstance(block, blocks.Card)]
    assert answered.code == (recommendation["snippet"] or "")
    assert summary.startswith(re.split(r" for | \(", answered.title)[0])
    finished = [run for run in value["runs"] if run["outcome"] == "finished"]
    if finished and not any(run["verdict_word"] == "not compiled" for run in finished):
        assert card.startswith(summary.partition(". ")[0])
    errors = [run["error"]["message"].partition("\n")[0] for run in value["runs"] if run["error"]]
    assert all(one_line(message) in said for message in errors)
    assert finished or not errors or card.startswith(errors[0])


def one_line(text: str) -> str:
    return " ".join(text.split())


def window_card(comparison: Comparison) -> str:
    """What the answer card says once all is over."""
    state = SimpleNamespace(
        trace=Path("a.log") if any(run.is_trace for run in comparison.runs) else None,
        script=Path("model.py"),
        is_busy=False,
        is_calibrating=False,
        is_inspecting=False,
        runs=comparison.runs,
        scan=None,
        earlier=(),
        selection=SimpleNamespace(missing="", plan=lambda *_: "1 configuration"),
    )
    found = answer(state, Found(comparison))  # type: ignore[arg-type]
    return f"{found.title}. {found.text}"


@pytest.mark.parametrize(
    "name", ["faster, with breaks", "incorrect", "failed, compile", "nothing timed", "on a GPU", "eight configurations"]
)
def test_that_the_text_of_the_pdf_is_that_of_the_report(name: str, tmp_path: Path) -> None:
    comparison = PLAYED[name]
    write_pdf(comparison, tmp_path / "report.pdf")

    text = "".join("".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "report.pdf").pages).split())

    for part in build_document(comparison).sections:
        for block in part.blocks:
            if isinstance(block, blocks.Facts):
                assert all("".join(said.split()) in text for row in block.rows for said in row)
            elif isinstance(block, blocks.Table) and block.columns[0].title == "Configuration":
                assert all("".join(cell.text.split()) in text for row in block.rows for cell in row)
        assert "".join(part.badge.split()) in text
