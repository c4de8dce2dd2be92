"""The traces of a stored run stay with it, and go along with an export."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stories import transcript

from compilescope.domain import events as e
from compilescope.domain.cacheledger import lookups
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.keyhistory import Sources, explain
from compilescope.domain.run import Run
from compilescope.domain.trace import read_text, translate
from compilescope.domain.workload import Workload
from compilescope.store import traces
from compilescope.store.exchange import HistoryError
from compilescope.store.history import History
from compilescope.store.records import StoredRequest

Opener = Callable[[], History]


def record(history: History, folder: Path, name: str = "first") -> Run:
    """A run that left its trace in its own folder, as the worker does."""
    request = StoredRequest(id=f"{name}-run", config=Config(), workload=Workload(script="model.py"))
    trace = folder / "runs" / request.id / "trace.log"
    trace.parent.mkdir(parents=True)
    shutil.copy(transcript("mlp_default"), trace)
    run = Run(request.id, config=request.config, workload=request.workload)
    history.start_comparison(Comparison(id=name, created=1.0, runs=[run]), [request])
    history.start_run(run.id)
    for event in (e.Hello(), *translate(trace), e.Ended(outcome="finished")):
        history.append(run.id, [event])
        run.apply(event)
    history.finish_run(run)
    history.flush()
    return run


def texts(run: Run) -> list[tuple[str, str]]:
    spans = [text for process in run.processes for text in process.texts]
    return [(span.kind, read_text(span.file, span.offset, span.length)) for span in spans]


def test_that_an_export_carries_the_texts_and_the_keys(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    live = record(history, tmp_path)
    before = texts(live)
    history.export("first", tmp_path / "sent.compilescope")
    shutil.rmtree(tmp_path / "runs")

    other = History(tmp_path / "elsewhere" / "history.sqlite3")
    (run,) = other.load(other.import_(tmp_path / "sent.compilescope")).runs

    assert len(before) > 5
    assert texts(run) == before
    assert {Path(text.file).parent for text in run.processes[0].texts} == {tmp_path / "elsewhere" / "runs" / run.id}
    again = Run("again", config=Config(), workload=Workload(script="model.py"))
    again.apply_all([e.Hello(), *translate(transcript("mlp_default"))])
    assert explain([again], again, lookups(again)[0], Sources(history=other)).is_same
    other.close()


def test_that_a_second_import_has_traces_of_its_own(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    live = record(history, tmp_path)
    history.export("first", tmp_path / "sent.compilescope")

    (run,) = history.load(history.import_(tmp_path / "sent.compilescope")).runs

    assert run.id != live.id
    assert texts(run) == texts(live)
    assert {item.name for item in (tmp_path / "runs").iterdir()} == {run.id, live.id}


def test_that_no_file_outside_the_runs_folder_is_ever_read() -> None:
    folder = Path("/data/runs/run")
    for file in ("/etc/passwd", "../../secret", r"C:\Users\x\passwd", "/..", ""):
        text = traces.localised(e.Text(file=file), folder)
        lookup = traces.localised(e.Cache(components=e.TextSpan(file=file, offset=0, length=9)), folder)
        assert isinstance(text, e.Text) and isinstance(lookup, e.Cache) and lookup.components
        assert text.file == lookup.components.file
        assert not text.file or Path(text.file).parent == folder


def test_that_a_run_whose_id_is_a_path_is_refused(open_history: Opener, tmp_path: Path) -> None:
    history = open_history()
    record(history, tmp_path)
    history.export("first", tmp_path / "sent.compilescope")
    with zipfile.ZipFile(tmp_path / "sent.compilescope") as good, zipfile.ZipFile(tmp_path / "bad", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, good.read(name).replace(b'"first-run"', b'"../../../evil"'))

    with pytest.raises(HistoryError, match="cannot name a run"):
        history.import_(tmp_path / "bad")


def test_that_traces_that_are_too_large_are_refused_and_leave_nothing(
    open_history: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = open_history()
    record(history, tmp_path)
    history.export("first", tmp_path / "sent.compilescope")
    other = History(tmp_path / "elsewhere" / "history.sqlite3")
    monkeypatch.setattr(traces, "MAX_BYTES", 1000)

    with pytest.raises(HistoryError, match="larger than"):
        other.import_(tmp_path / "sent.compilescope")

    assert other.comparisons() == []
    assert list((tmp_path / "elsewhere" / "runs").iterdir()) == []
    other.close()
