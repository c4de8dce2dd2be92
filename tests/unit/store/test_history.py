"""The history keeps what was told, lists it, and gives it back as it was."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.comparisons import eight_configs, run_events

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.playoff import PlayOff
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval
from compilescope.domain.workload import Workload
from compilescope.store.exchange import HistoryError
from compilescope.store.history import History
from compilescope.store.records import StoredRequest

Opener = Callable[[], History]
PLAY_OFF = PlayOff(one="first-1", two="first-0", ratio=Interval(value=1.03, low=1.02, high=1.04))


def record(history: History, name: str = "first", *, script: str = "encoder.py", count: int = 2) -> Comparison:
    """A comparison that ran to its end, told to the history in pieces."""
    comparison = Comparison(id=name, created=1_796_000_000.0 + len(name))
    requests = [
        StoredRequest(id=f"{name}-{i}", config=config, workload=Workload(script=script, device="cuda"))
        for i, config in enumerate(eight_configs()[:count])
    ]
    history.start_comparison(comparison, requests)
    for request in requests:
        comparison.runs.append(run_one(history, request))
    return comparison


def run_one(history: History, request: StoredRequest) -> Run:
    run = Run(request.id, config=request.config, workload=request.workload)
    history.start_run(request.id)
    for event in run_events(request.config, 1.5, samples=40):
        history.append(request.id, [event])
        run.apply(event)
    history.finish_run(run, log_tail="last words")
    return run


def test_that_a_stored_comparison_gives_the_same_results_as_the_live_one(open_history: Opener) -> None:
    history = open_history()

    live = record(history)
    history.flush()

    assert comparison_json(history.load("first")) == comparison_json(live)


def test_that_a_run_that_was_stopped_before_it_began_is_kept(open_history: Opener) -> None:
    history = open_history()
    request = StoredRequest(id="r", config=Config(), workload=Workload(script="a.py"))
    run = Run("r", config=request.config, workload=request.workload).apply_all([e.Ended(outcome="stopped")])
    history.start_comparison(Comparison(id="c", created=1.0), [request])

    history.append("r", [e.Ended(outcome="stopped")])
    history.finish_run(run)
    history.flush()

    assert [stored.outcome for stored in history.load("c").runs] == ["stopped"]


def test_that_a_comparison_is_there_after_a_restart(open_history: Opener) -> None:
    history = open_history()
    live = record(history)
    history.close()

    again = open_history()

    assert [row.id for row in again.comparisons()] == ["first"]
    assert comparison_json(again.load("first")) == comparison_json(live)
    assert again.log_tail("first-0") == "last words"


def test_that_a_row_of_the_list_names_the_fastest_run(open_history: Opener) -> None:
    history = open_history()
    record(history)
    history.flush()

    (row,) = history.comparisons()

    assert (row.runs, row.finished, row.failed, row.unfinished) == (2, 2, 0, 0)
    assert row.best_label in {"default", "reduce-overhead"}
    assert row.best_speedup == pytest.approx(1.5, rel=0.02)
    assert (row.torch, row.device) == ("2.11.0+cu130", "NVIDIA H200")


def test_that_the_search_finds_every_word_wherever_it_stands(open_history: Opener) -> None:
    history = open_history()
    record(history, "first", script="/home/zoë/Größe.py")
    record(history, "second", script="decoder.py", count=1)
    history.set_tags("second", ["baseline", " before the fix "])
    history.set_notes("first", "run on the quiet machine")
    history.flush()

    def found(search: str) -> list[str]:
        return [row.id for row in history.comparisons(search)]

    assert found("größe") == ["first"]
    assert found("QUIET reduce-overhead") == ["first"]
    assert found("fix baseline") == ["second"]
    assert found("h200") == ["second", "first"]
    assert found("quiet baseline") == []
    assert found("100%_'") == []


def test_that_a_deleted_comparison_comes_back_on_undo(open_history: Opener) -> None:
    history = open_history()
    live = record(history)

    history.delete("first")
    history.flush()
    assert history.comparisons() == []

    history.undo_delete("first")
    history.flush()
    assert [row.id for row in history.comparisons()] == ["first"]
    assert comparison_json(history.load("first")) == comparison_json(live)


def test_that_purging_removes_only_what_was_deleted(open_history: Opener) -> None:
    history = open_history()
    record(history, "first")
    record(history, "second")
    history.delete("first")

    history.purge(older_than_s=-1.0)
    history.undo_delete("first")
    history.flush()

    assert [row.id for row in history.comparisons()] == ["second"]
    assert {row.comparison_id for row in history.runs()} == {"second"}


def test_that_a_comparison_is_found_by_the_start_of_its_name(open_history: Opener) -> None:
    history = open_history()
    record(history, "abc1")
    record(history, "abd2")
    history.flush()

    assert history.find("abd") == "abd2"
    assert history.find("abc1") == "abc1"
    assert history.find("last") in {"abc1", "abd2"}
    with pytest.raises(HistoryError, match="Several"):
        history.find("ab")
    with pytest.raises(HistoryError, match="no comparison"):
        history.find("a%")


def test_that_an_exported_file_opens_elsewhere_with_the_same_results(open_history: Opener, tmp_path: Path) -> None:
    script = tmp_path / "encoder.py"
    script.write_text("# größer\n", encoding="utf-8")
    history = open_history()
    live = record(history, script=str(script))
    live.play_offs.append(PLAY_OFF)
    history.set_play_offs(live)
    history.set_tags("first", ["größer"])
    history.flush()
    history.export("first", tmp_path / "first.compilescope")

    with_other = History(tmp_path / "other" / "history.sqlite3")
    name = with_other.import_(tmp_path / "first.compilescope")

    assert comparison_json(with_other.load(name)) == comparison_json(live)
    assert with_other.comparisons()[0].tags == ("größer",)
    assert with_other.source(name) == history.source("first") is not None
    with_other.close()


def test_that_importing_what_is_there_already_adds_a_second_one(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    live = record(history)
    live.play_offs.append(PLAY_OFF)
    history.set_play_offs(live)
    history.flush()
    history.export("first", tmp_path / "first.compilescope")

    name = history.import_(tmp_path / "first.compilescope")

    assert name != "first"
    assert len(history.comparisons()) == 2
    second = history.load(name)
    assert len(second.runs) == len(live.runs)
    assert [(row.one, row.two) for row in second.play_offs] == [(second.runs[1].id, second.runs[0].id)]


def test_that_play_offs_are_kept(open_history: Opener) -> None:
    history = open_history()
    live = record(history)
    live.play_offs += [PLAY_OFF, PlayOff(one="first-0", two="first-1", problem="it crashed")]
    history.set_play_offs(live)
    history.flush()

    assert history.load("first").play_offs == live.play_offs
    assert [row.runs for row in history.comparisons()] == [2]


@pytest.mark.parametrize("value", [7, "text", [[]], [{"one": "a"}], [{"one": "a", "two": "b", "ratio": {"value": -1}}]])
def test_that_an_export_with_odd_play_offs_is_refused(open_history: Opener, tmp_path: Path, value: object) -> None:
    history = open_history()
    record(history)
    history.flush()
    history.export("first", tmp_path / "first.compilescope")
    with zipfile.ZipFile(tmp_path / "first.compilescope") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["comparison.json"] = json.dumps(json.loads(members["comparison.json"]) | {"play_offs": value}).encode()
    with zipfile.ZipFile(tmp_path / "odd.compilescope", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)

    with pytest.raises(HistoryError, match="no comparison that CompileScope exported"):
        history.import_(tmp_path / "odd.compilescope")


def test_that_a_file_that_is_no_export_is_refused_with_a_sentence(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    not_a_zip = tmp_path / "notes.txt"
    not_a_zip.write_text("hello")
    hostile = tmp_path / "hostile.zip"
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("../../evil.py", "print('hello')")
        index = '{"format": "compilescope-comparison", "version": 1, "runs": [{"lines": "../../evil.py"}]}'
        archive.writestr("comparison.json", index)

    for file in (not_a_zip, hostile, tmp_path / "missing"):
        with pytest.raises(HistoryError) as refused:
            history.import_(file)
        assert refused.value.hint
    assert history.comparisons() == []
    assert not (tmp_path.parent / "evil.py").exists()


def test_that_a_bomb_is_refused_before_it_fills_the_memory(open_history: Opener, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("comparison.json", b" " * (64 * 2**20))

    with pytest.raises(HistoryError, match="larger than"):
        open_history().import_(bomb)


def test_that_events_of_an_unknown_kind_survive_without_harm(open_history: Opener) -> None:
    history = open_history()
    request = StoredRequest(id="r", config=Config(), workload=Workload(script="a.py"))
    history.start_comparison(Comparison(id="c", created=1.0), [request])
    history.start_run("r")
    history.append("r", [e.Hello(), e.Warning(code="x", message="first line\nsecond line \u2028 third")])
    history.flush()

    (run,) = history.load("c").runs

    assert run.processes[0].warnings[0].message == "first line\nsecond line \u2028 third"
    assert run.outcome is None
