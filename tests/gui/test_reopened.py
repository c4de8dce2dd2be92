"""A run's events, replayed from the history or from an export, give the panes of the live run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from fakes.stories import transcript
from PySide6.QtCore import QAbstractItemModel, QModelIndex
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QTreeView, QWidget

from compilescope.domain import events as e
from compilescope.domain.results import comparison_json
from compilescope.domain.trace import translate
from compilescope.ui.charts.timeline import Timeline
from compilescope.ui.log.table import LogTable
from compilescope.ui.panels.table import DataTable

Panes = dict[str, Any]


def tell_a_full_story(folder: Path) -> dict[str, str]:
    """What two recorded runs told, one after the other: cache, autotuning, CUDA graphs, shapes, recompiles, texts."""
    names = ("cudagraph_dynamic_shapes", "mlp_max_autotune", "lstm_not_compiled")
    trace = folder / "recorded.log"
    trace.write_bytes(b"".join(gzip.decompress(transcript(name).read_bytes()) for name in names))
    place = {"file": str(folder / "script.py"), "line": 3, "function": "forward"}
    told = [
        *translate(trace),
        e.CudaGraph(state="skipped", reason="mutated inputs", **place),
        e.Autotune(operation="mm", inputs=("8x8", "8x8"), choices=({"name": "a", "seconds": 1e-5},), winner="a"),
        e.Recompile(guard="L['x'].size()[0] == 8", source="x", dimension=0, expected="8", actual="9", **place),
        e.FirstCall(side="compiled", duration_s=1.0),
    ]
    lines = [e.encode(event).replace(str(trace), "OWN_TRACE") for event in told]
    (folder / "events.jsonl").write_text("\n".join(lines))
    return {"trace": str(trace), "events": str(folder / "events.jsonl")}


def content(model: QAbstractItemModel, parent: QModelIndex | None = None) -> list[Any]:
    """All cells of a table or tree."""
    parent = parent or QModelIndex()
    return [
        [[str(model.index(row, column, parent).data()) for column in range(model.columnCount(parent))],
         content(model, model.index(row, 0, parent))]
        for row in range(model.rowCount(parent))
    ]  # fmt: skip


def words(pane: QWidget) -> Panes:
    """What a pane shows: its tables, trees, texts and labels."""
    found: Panes = {}
    for kind, read in (
        (DataTable, lambda view: content(view.model())),
        (QTreeView, lambda view: content(view.model())),
        (QPlainTextEdit, lambda view: view.toPlainText()),
        (QLabel, lambda view: view.text()),
    ):
        views = [view for view in pane.findChildren(kind) if view.objectName() and view.isVisibleTo(pane)]
        found |= {f"{kind.__name__} {view.objectName()}": read(view) for view in views}
    return found


def panes(desk: Any) -> Panes:
    """Every pane of the shown run, looked at one after the other."""
    workspace, found = desk.window.workspace, {}
    desk.wait(lambda: desk.window.findChild(Timeline) is not None, 60)
    for index in range(workspace.tabs.count()):
        if not workspace.tabs.isTabVisible(index):
            continue
        workspace.tabs.setCurrentIndex(index)
        pane, title = workspace.tabs.widget(index), workspace.tabs.tabText(index)
        desk.wait(lambda pane=pane: is_filled(words(pane)))
        found[title] = words(pane)
    timeline = desk.window.findChild(Timeline)
    found["phases"] = [(row.name, row.began, row.duration_s, row.depth) for row in desk.state.shown.story.phases]
    found["timeline"] = timeline._lanes.count
    log = desk.window.findChild(LogTable, "log.table").model()
    desk.wait(lambda: log.rowCount() > 0)
    found["log"] = [cells for cells, _ in content(log)]
    return found


def is_filled(shown: Panes) -> bool:
    """Whether the texts that a thread reads have come."""
    texts = [text for name, text in shown.items() if name.startswith("QPlainTextEdit")]
    return all(texts) and "check" in shown.get("QLabel guards_summary", "check")


def test_that_a_reopened_and_an_imported_comparison_show_the_panes_of_the_live_one(
    open_desk: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    live = open_desk()
    live.run_fake("recorded", **tell_a_full_story(tmp_path))
    live.wait(live.is_over, 60)
    live.wait(lambda: live.store.comparisons() and live.store.comparisons()[0].finished == 1)
    told, figures = panes(live), comparison_json(live.state.comparison)
    live.store.export(live.state.comparison.id, tmp_path / "sent.compilescope")
    live.close()

    again = open_desk()
    again.parts.history.open(again.store.comparisons()[0].id)
    again.wait(again.is_over)
    reopened = panes(again)
    assert json.dumps(comparison_json(again.state.comparison)) == json.dumps(figures)
    again.close()

    monkeypatch.setenv("COMPILESCOPE_HOME", str(tmp_path / "elsewhere"))
    other = open_desk()
    other.parts.history.open(other.store.import_(tmp_path / "sent.compilescope"))
    other.wait(other.is_over)
    imported = panes(other)

    assert {"Cache", "Code", "Guards"} <= set(told)
    assert any("Autotune" in title for title in told) and any("Shapes" in title for title in told)
    for title, shown in told.items():
        assert reopened[title] == shown, title
        assert imported[title] == shown, title
    assert list(reopened) == list(imported) == list(told)
