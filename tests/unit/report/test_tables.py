"""JSON, CSV, Markdown and the terminal's table: the same figures in each."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.errors import AppError
from compilescope.domain.figures import at
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.report.markdown import markdown
from compilescope.report.tables import csv_text, text_table, write_csv, write_json, write_markdown

RunMaker = Callable[..., Run]

AWKWARD = e.RunError(
    stage="compile", type="Unsupported", message="=HYPERLINK(1) | a `tick` <script>\nsecond", hint="Try *this* _way_."
)


@pytest.fixture
def value(make_run: RunMaker) -> dict[str, Any]:
    runs = [
        make_run("a", speedup=1.5, extra=[e.GraphBreak(kind="item", reason="a | b", file="/x/m.py", line=3)]),
        make_run("b", speedup=0.9, config=Config(mode="max-autotune-no-cudagraphs", dynamic=True, fullgraph=True)),
        make_run("c", ended=e.Ended(outcome="failed", error=AWKWARD), config=Config(mode="reduce-overhead")),
        make_run("d", ended=None, config=Config(mode="max-autotune")),
    ]
    return comparison_json(Comparison(id="c", created=1_795_953_600.0, runs=runs))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_that_the_json_file_is_the_value(value: dict[str, Any], tmp_path: Path):
    write_json(value, tmp_path / "out.json")

    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == value


def test_that_the_csv_has_a_row_a_run_and_the_same_numbers(value: dict[str, Any], tmp_path: Path):
    write_csv(value, tmp_path / "out.csv")

    found = rows((tmp_path / "out.csv").read_text(encoding="utf-8"))

    assert [row["id"] for row in found] == ["a", "b", "c", "d"]
    numbers = 0
    for row, run in zip(found, value["runs"], strict=True):
        for path, text in row.items():
            known = at(run, path)
            if isinstance(known, (int, float)) and not isinstance(known, bool):
                # to the last digit, with a point whatever the locale
                assert float(text) == known
                numbers += 1
            elif known is None and not path.startswith(("workload.", "environment.", "created")):
                assert text == ""
    assert numbers > 80
    assert found[0]["graph_breaks"] == "1" and found[1]["graph_breaks"] == "0"
    assert found[1]["config.dynamic"] == "true" and found[0]["config.dynamic"] == ""
    assert found[0]["workload.script"] == "model.py" and found[0]["environment.torch"] == "2.13.0"


def test_that_the_csv_of_any_comparison_has_the_same_columns(value: dict[str, Any]):
    empty = comparison_json(Comparison(id="c", created=0.0))

    assert csv_text(empty).splitlines()[0] == csv_text(value).splitlines()[0]


def test_that_a_spreadsheet_takes_no_foreign_text_for_a_formula(value: dict[str, Any]):
    found = rows(csv_text(value))

    assert found[2]["error.message"].startswith("'=HYPERLINK")


def test_that_markdown_tables_survive_awkward_text(value: dict[str, Any], tmp_path: Path):
    write_markdown(value, tmp_path / "out.md")

    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")]

    assert len(table) == 6
    assert {line.replace("\\|", "").count("|") for line in table} == {12}
    assert "<script>" not in text
    assert "a \\| b" in text and "m.py:3" in text and "/x/m.py" not in text
    assert "2.13.0" in text and "torch.compile(model)" in text


@pytest.mark.parametrize("width", [100, 140])
def test_that_the_terminal_table_fits_its_width(value: dict[str, Any], width: int):
    value["runs"][1]["label"] = "a name that somebody made very long indeed " * 3

    lines = text_table(value, width=width).splitlines()

    assert max(len(line) for line in lines) <= width


def test_that_the_terminal_table_says_what_failed_and_what_to_use(value: dict[str, Any]):
    text = text_table(value)

    assert "failed" in text and "running" in text and "slower" in text
    assert "Unsupported: =HYPERLINK" in text and "Try *this* _way_." in text
    assert "model = torch.compile(model)" in text


def test_that_the_terminal_table_says_where_in_the_script_a_run_failed(value: dict[str, Any]):
    failed = next(run for run in value["runs"] if run["error"])
    failed["error"] |= {"file": "/x/model.py", "line": 12}

    assert "(model.py:12)" in " ".join(text_table(value).split())


def test_that_what_is_too_noisy_to_tell_is_not_shown_as_no_difference(make_run: RunMaker):
    runs = [make_run("a", noise=0.8, blocks=20, speedup=1.0), make_run("b", speedup=1.0), make_run("c", blocks=0)]

    rows = text_table(comparison_json(Comparison(id="c", created=0.0, runs=runs))).splitlines()[4:7]

    assert rows[0].endswith("too noisy") and rows[1].endswith("no difference") and rows[2].endswith("no speedup")


def test_that_a_gain_which_is_not_excluded_is_not_shown_as_no_difference(make_run: RunMaker):
    value = comparison_json(Comparison(id="c", created=0.0, runs=[make_run(interval=(1.09, 0.995, 1.19))]))

    assert text_table(value).splitlines()[4].endswith("too noisy")


def test_that_too_noisy_is_a_kind_of_its_own_and_older_files_still_show_it(make_run: RunMaker):
    runs = [make_run("a", noise=0.8, blocks=20, speedup=1.0), make_run("b", speedup=1.0), make_run("c", blocks=0)]
    value = comparison_json(Comparison(id="c", created=0.0, runs=runs))
    words = ["too noisy", "no difference", "no speedup"]
    kinds = ["too_noisy", "no_difference", "too_noisy"]

    assert [run["verdict"]["kind"] for run in value["runs"]] == kinds
    for run in value["runs"]:
        # as version 1 wrote them
        run["verdict"]["kind"] = "no_difference"

    assert [line.rsplit("  ", 1)[1] for line in text_table(value).splitlines()[4:7]] == words
    assert [line.split(" | ")[-1].strip(" |") for line in markdown(value).splitlines()[6:9]] == words
    assert [row["verdict.kind"] for row in rows(csv_text(value))] == kinds


def test_that_first_calls_with_the_users_own_cache_are_said_to_be_such(make_run: RunMaker, value: dict[str, Any]):
    own = comparison_json(Comparison(id="c", created=0.0, runs=[make_run(cache_was_empty=None)]))

    for text in (text_table(own), markdown(own)):
        assert "8.00 s" in text and "First call" in text and "Cold" not in text
        assert "began with your own compiler cache" in text
    assert rows(csv_text(own))[0]["compile.own_cache_first_call_s"] == "8.0"
    assert "own compiler cache" not in text_table(value)


def test_that_the_terminal_table_says_what_was_measured(value: dict[str, Any]):
    value["workload"] |= {"entry": "Model", "device": "cpu"}

    assert text_table(value).splitlines()[0] == "model.py: Model, inference, fp32, cpu"


def test_that_the_terminal_table_tells_each_warning_once(value: dict[str, Any]):
    warning = {"code": "busy_machine", "message": "The machine was busy.", "hint": ""}
    for run in value["runs"]:
        run["warnings"] = [warning, warning]

    assert text_table(value).count("Note: The machine was busy.") == 1


def test_that_a_path_that_is_no_text_is_written_and_read_back(value: dict[str, Any], tmp_path: Path):
    value["workload"]["script"] = "/x/\udcff.py"

    for write in (write_csv, write_markdown, write_json):
        write(value, tmp_path / "out")

    assert json.loads((tmp_path / "out").read_text(encoding="utf-8"))["workload"]["script"] == "/x/\udcff.py"


def test_that_a_comparison_without_runs_is_still_a_table():
    value = comparison_json(Comparison(id="c", created=0.0))

    assert text_table(value).startswith("Configuration")


def test_that_a_folder_that_is_not_there_is_said_in_a_sentence(value: dict[str, Any], tmp_path: Path):
    with pytest.raises(AppError) as caught:
        write_json(value, tmp_path / "none" / "out.json")

    assert "could not be written" in str(caught.value) and caught.value.hint


def test_that_rows_that_ran_on_several_cards_say_on_which_and_whole_names_are_there(value: dict[str, Any]):
    value["workload"] |= {"device": "cuda:0"}
    first, second = value["runs"][:2]
    value["runs"] = [first, {**second, "label": "reduce-overhead · dynamic", "workload": {**value["workload"]}}]
    value["runs"][1]["workload"]["device"] = "cuda:1"

    names = " ".join(" ".join(line[:18] for line in text_table(value).splitlines()[3:7]).split())

    assert f"{first['label']} (cuda:0)" in names
    assert "reduce-overhead · dynamic (cuda:1)" in names
    assert "| reduce-overhead · dynamic (cuda:1) |" in markdown(value)
