"""Saved traces as runs."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
from fakes.stories import TRANSCRIPTS, recorded_run, transcript

from compilescope.domain.comparison import recommend
from compilescope.domain.errors import UsageError
from compilescope.domain.savedtraces import Progress, ReadingStoppedError, read_saved, saved_json
from compilescope.domain.verdict import judge
from compilescope.report.trace_folder import save_trace_folder


def test_that_a_folder_is_a_run_a_file() -> None:
    found = read_saved(TRANSCRIPTS)

    assert len(found.runs) == 12
    assert found.problems == []
    assert all(run.is_over and run.is_trace for run in found.runs)


def test_that_a_trace_tells_the_same_as_the_live_run_did() -> None:
    live, saved = recorded_run("graph_break_and_recompile"), read_saved(transcript("graph_break_and_recompile")).runs[0]

    assert live.cold and saved.cold
    for section in ("phases", "graph_breaks", "recompiles", "symbols", "cache", "kernels", "texts"):
        assert getattr(saved.cold, section) == getattr(live.cold, section), section


def test_that_nothing_is_judged_or_recommended_where_nothing_was_measured() -> None:
    found = read_saved(transcript("mlp_default"))

    assert judge(found.runs[0]) is None
    assert recommend(found.comparison) is None
    assert saved_json(found)["recommendation"] is None


def test_that_a_trace_in_which_nothing_was_compiled_says_so() -> None:
    verdict = judge(read_saved(transcript("lstm_not_compiled")).runs[0])

    assert verdict is not None and verdict.kind == "not_compiled"


def test_that_a_trace_of_hits_alone_is_a_warm_start() -> None:
    assert read_saved(transcript("mlp_default_warm")).runs[0].warm is not None


def test_that_ranks_are_told_by_their_number(tmp_path: Path) -> None:
    text = gzip.decompress(transcript("mlp_default").read_bytes()).decode()
    for rank in (1, 0):
        # as torch.distributed makes torch write it
        ranked = text.replace('"frame_id": 0,', f'"rank": {rank}, "frame_id": 0,')
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_text(ranked)

    assert [run.label for run in read_saved(tmp_path).runs] == ["rank 0", "rank 1"]


def test_that_a_foreign_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_text("nothing of the kind\n")

    with pytest.raises(UsageError, match="is not a structured torch trace"):
        read_saved(tmp_path / "notes.log")


def test_that_a_damaged_file_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    shutil.copy(transcript("mlp_default"), tmp_path / "good.log.gz")
    (tmp_path / "bad.log.gz").write_bytes(transcript("mlp_default").read_bytes()[:20_000])

    found = read_saved(tmp_path)

    assert [run.label for run in found.runs] == ["bad.log.gz", "good.log.gz"]
    assert "bad.log.gz is damaged" in found.problems[0]
    assert "What comes before the damage was read." in found.problems[0]


def test_that_a_folder_of_many_foreign_files_is_told_in_a_few_sentences(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.log").write_text("nothing of the kind\n")

    with pytest.raises(UsageError) as refused:
        read_saved(tmp_path)

    assert refused.value.message.count("is not a structured torch trace") == 3
    assert refused.value.message.endswith("And 17 more files like these.")


def test_that_a_folder_that_may_not_be_read_is_not_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root, whom nothing is forbidden, runs tests too
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(UsageError, match="Permission denied"):
        read_saved(tmp_path)


def test_that_a_log_whose_process_died_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = gzip.decompress(transcript("graph_break_and_recompile").read_bytes())
    (tmp_path / "cut.log").write_bytes(whole[: len(whole) // 2])

    story = read_saved(tmp_path / "cut.log").runs[0].story

    assert story is not None and story.graphs


def test_that_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file or folder"):
        read_saved(tmp_path / "missing")
    with pytest.raises(UsageError, match="holds no trace"):
        read_saved(tmp_path)


def test_that_reading_stops_when_nobody_wants_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.domain.savedtraces.REPORT_S", -1.0)
    seen: list[Progress] = []

    with pytest.raises(ReadingStoppedError):
        read_saved(transcript("graph_break_and_recompile"), lambda progress: bool(seen.append(progress)))

    assert len(seen) == 1


def test_that_a_saved_folder_is_read_back_the_same(tmp_path: Path) -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")

    written = save_trace_folder(run, tmp_path / "trace")

    assert [path.name.startswith("dedicated_log_torch_trace_") for path in written] == [True, True]
    again = read_saved(tmp_path / "trace").runs
    assert [story.graphs for story in (again[0].processes[0], again[1].processes[0])] == [1, 1]
    assert written[0].read_bytes() == gzip.decompress(transcript("mlp_default").read_bytes())
