"""`history`, `report` and `bench --baseline`, through `main`, on comparisons that are stored."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes import comparisons

from compilescope.cli import main
from compilescope.cli.baseline import is_held
from compilescope.domain.baseline import baseline_json
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.engine.request import RunRequest
from compilescope.report import tables
from compilescope.store.history import History


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path / "home"))
    return tmp_path


def keep(identity: str, configs: list[Config], script: str = "encoder.py") -> Comparison:
    """A comparison as bench leaves it in the history."""
    history = History()
    made = comparisons.comparison(configs, script=script)
    requests = [RunRequest(id=f"{identity}-{run.id}", config=run.config, workload=run.workload) for run in made.runs]
    kept = Comparison(id=identity, created=made.created)
    history.start_comparison(kept, requests)
    for number, request in enumerate(requests):
        assert request.config and request.workload
        run = Run(request.id, config=request.config, workload=request.workload)
        events = list(comparisons.run_events(request.config, 1.5, seed=number, script=script))
        run.apply_all(events)
        kept.runs.append(run)
        history.start_run(run.id)
        history.append(run.id, events)
        history.finish_run(run)
    history.close()
    return kept


@pytest.fixture
def stored() -> Iterator[Comparison]:
    yield keep("c0ffee0123456789", [Config(mode="default"), Config(backend="aot_eager")])


@pytest.mark.usefixtures("stored")
def test_that_history_lists_what_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0

    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["Id", "Date", "Script", "Runs"]
    assert line.startswith("c0ffee01") and "encoder.py" in line and "default 1.5" in line and "NVIDIA H200" in line


@pytest.mark.usefixtures("stored")
def test_that_history_as_json_can_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    keep("beef", [Config()], script="decoder.py")

    assert main(["history", "--json", "--search", "deco h200"]) == 0

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["title"], row["runs"], row["finished"]) == ("beef", "decoder.py", 1, 1)
    assert row["best"]["speedup"] == pytest.approx(1.5, abs=0.05)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_that_output_that_cannot_be_written_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "compilescope", "history"], stdout=full, stderr=subprocess.PIPE, text=True
        )

    assert (found.returncode, found.stderr) == (
        1,
        "compilescope: The output could not be written: No space left on device.\n",
    )


def test_that_an_empty_history_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    assert capsys.readouterr().out == "The history is empty.\n"


# the window's tests run in this process too, and need that kind of application
@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("name", ["last", "c0ff"])
def test_that_report_writes_every_kind_of_file(
    name: str, stored: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for kind in ("json", "csv", "markdown", "pdf") for word in (f"--{kind}", str(tmp_path / f"r.{kind}"))]

    assert main(["report", name, *words, "--page", "Letter"]) == 0

    result = json.loads((tmp_path / "r.json").read_text())
    assert [run.pop("cache_keys")[0]["cache"] for run in result["runs"]] == ["fx_graph", "fx_graph"]
    assert result == json.loads(json.dumps(comparison_json(stored)))
    rows = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert [row["config.backend"] for row in rows] == ["inductor", "aot_eager"]
    assert "encoder.py" in (tmp_path / "r.markdown").read_text()
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
    assert "default" in capsys.readouterr().out


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["report", "nothing"], "The history has no comparison 'nothing'."),
        (["report", "last", "--pdf", "/no/such/folder/a.pdf"], "/no/such/folder/a.pdf cannot be written."),
    ],
)
def test_that_what_cannot_be_reported_is_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) in (1, 2)
    assert sentence in capsys.readouterr().err


def test_that_a_damaged_history_is_set_aside_and_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "home" / "data").mkdir(parents=True)
    (home / "home" / "data" / "history.sqlite3").write_bytes(b"no database at all" * 1000)

    assert main(["history"]) == 0

    out, err = capsys.readouterr()
    assert out == "The history is empty.\n"
    assert "was damaged" in err and "-damaged-" in err


def test_that_only_what_became_worse_breaks_a_baseline(stored: Comparison, capsys: pytest.CaptureFixture[str]) -> None:
    now: dict[str, Any] = comparison_json(stored)
    before = json.loads(json.dumps(now))

    def holds(results: dict[str, Any]) -> bool:
        return is_held(baseline_json(results, before, "main.json"))

    assert not holds(now)  # aot_eager's results differ from eager's, then as now
    assert holds(now | {"runs": now["runs"][:1]})
    before["runs"][0]["graph_breaks"] = []
    assert not holds(now)

    lines = capsys.readouterr().err.splitlines()
    assert "compilescope: worse than main.json: aot_eager: results differ from eager by up to 0.31." in lines
    assert any("default: new graph break at encoder.py:17" in line for line in lines)


def test_that_a_baseline_with_none_of_these_runs_is_not_held(
    stored: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    now = comparison_json(stored)

    assert not is_held(baseline_json(now, now | {"runs": []}, "main.json"))

    err = capsys.readouterr().err
    assert "nothing could be compared with main.json" in err
    assert "nothing has become worse" not in err


def test_that_what_is_inconclusive_is_said_loudly_and_fails_only_where_strict(
    stored: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    before = comparison_json(stored)
    now: dict[str, Any] = json.loads(json.dumps(before)) | {"runs": json.loads(json.dumps(before["runs"][:1]))}
    now["runs"][0]["timing"]["speedup"] |= {"low": 0.3, "high": 9.0}
    now["baseline"] = baseline_json(now, before, "main.json")

    assert is_held(now["baseline"]) and not is_held(now["baseline"], strict=True)
    told = (capsys.readouterr().err, tables.text_table(now), tables.markdown(now))
    assert all("INCONCLUSIVE" in text and "too uncertain to exclude a loss" in text for text in told)
    schema = Path(__file__).parents[2] / "resources" / "schema" / "comparison.schema.json"
    jsonschema.validate(now, json.loads(schema.read_text()))


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2, "runs": []}'])
def test_that_a_file_that_is_no_baseline_is_refused_before_anything_runs(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "model.py"
    script.write_text("from torch import nn\nclass Model(nn.Module): pass\ndef get_inputs(): return []\n")
    (tmp_path / "base.json").write_text(text)

    assert main(["bench", str(script), "--baseline", str(tmp_path / "base.json")]) == 2
    assert "base.json is no" in capsys.readouterr().err


def test_that_results_are_not_written_over_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, base = tmp_path / "model.py", tmp_path / "base.json"
    script.write_text("from torch import nn\nclass Model(nn.Module): pass\ndef get_inputs(): return []\n")
    base.write_text('{"schema": 1, "runs": []}')

    assert main(["bench", str(script), "--baseline", str(base), "--json", str(base)]) == 2
    assert "--json would write over" in capsys.readouterr().err
    assert base.read_text() == '{"schema": 1, "runs": []}'


def test_that_a_comparison_that_is_not_there_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "zzz"]) == 2
    assert "no comparison 'zzz'" in capsys.readouterr().err


@pytest.mark.usefixtures("stored")
def test_that_a_history_that_cannot_be_read_is_not_said_to_be_empty(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(home / "home" / "data" / "history.sqlite3", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")

        assert main(["history"]) == 1

    told = capsys.readouterr()
    assert told.out == ""
    assert "cannot be used (database is locked)." in told.err
    assert "What runs now" not in told.err
