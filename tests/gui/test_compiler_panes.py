"""The panes that explain a run, fed with recorded traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fakes.profiles import on_cpu
from fakes.stories import recorded_run, transcript
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPlainTextEdit, QPushButton, QTreeWidget, QWidget

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.trace import translate
from compilescope.domain.workload import Workload
from compilescope.ui.compiler.code_view import CodeView
from compilescope.ui.compiler.late import LatePane
from compilescope.ui.compiler.panes import CompilerPanes
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.panels.recompiles_pane import RecompilesPane
from compilescope.ui.panels.table import DataTable
from compilescope.ui.selection import Selection
from compilescope.ui.state import AppState
from compilescope.ui.theme import Scheme, Theme

Kind = TypeVar("Kind", bound=QWidget)
TABLES = {"shapes": "shapes", "cache": "cache", "cudagraphs": "cudagraphs", "autotune": "choices", "code": "kernels"}


class Shelf:
    """The panes around one state, each shown alone when it is looked at."""

    def __init__(self, qtbot: Any) -> None:
        self.qtbot = qtbot
        self.state = AppState(Selection())
        self.theme = Theme(Scheme.LIGHT)
        self.panes = CompilerPanes(self.state, self.theme)
        self.recompiles = RecompilesPane(self.state, self.theme)
        for widget in (*(tab.pane for tab in self.panes.tabs), self.recompiles):
            qtbot.addWidget(widget)
            widget.resize(900, 500)

    def show(self, *runs: Run) -> None:
        self.state.set_comparison(Comparison(id="c", created=time.time(), runs=list(runs)))

    def look(self, name: str) -> RunPane:
        late: LatePane = getattr(self.panes, name)
        late.show()
        self.wait(lambda: late.pane.isVisible())
        return late.pane

    def wait(self, condition: Callable[[], bool]) -> None:
        self.qtbot.waitUntil(condition, timeout=10_000)

    def titles(self) -> list[str]:
        run = self.state.shown
        return [tab.title for tab in self.panes.tabs if run and tab.is_wanted(run)]

    def words(self, name: str) -> list[str]:
        """All that a pane shows in tables and labels."""
        pane = self.look(name)
        tables = [cell for table in pane.findChildren(DataTable) for row in cells(table.model()) for cell in row]
        labels = [label.text() for label in pane.findChildren(QLabel) if label.objectName()]
        return [pane.sentence, *labels, *tables]


def child(pane: QWidget, kind: type[Kind], name: str) -> Kind:
    found = pane.findChild(kind, name)
    assert found is not None
    return found


def cells(model: QAbstractItemModel) -> list[list[str]]:
    return [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


@pytest.fixture
def shelf(qtbot: Any) -> Iterator[Shelf]:
    shelf = Shelf(qtbot)
    yield shelf
    shelf.panes.close()


def test_that_panes_with_nothing_to_say_have_no_tab(shelf: Shelf) -> None:
    assert shelf.titles() == []

    shelf.show(recorded_run("mlp_default"))
    assert shelf.titles() == ["Cache", "Code", "Guards"]

    shelf.show(recorded_run("mlp_max_autotune", mode="max-autotune"))
    assert shelf.titles() == ["Cache", "CUDA graphs", "Autotune", "Code", "Guards"]

    shelf.show(recorded_run("graph_break_and_recompile"))
    assert shelf.titles() == ["Shapes", "Cache", "Code", "Guards"]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_that_models_keep_the_rules_while_a_run_grows(shelf: Shelf, name: str) -> None:
    run = Run("live", config=Config(mode="reduce-overhead"), workload=Workload(script="model.py"))
    shelf.show(run)
    table = child(shelf.look(name), DataTable, TABLES[name])
    QAbstractItemModelTester(table.model(), QAbstractItemModelTester.FailureReportingMode.Fatal)

    run.apply(e.Hello(start="cold"))
    for number, event in enumerate(translate(transcript("cudagraph_dynamic_shapes"))):
        run.apply(event)
        if number % 60 == 0:
            shelf.state.run_changed.emit("live")
            shelf.qtbot.wait(1)
    run.apply(e.Ended())
    shelf.panes.cache.refresh()

    shelf.show(recorded_run("mlp_max_autotune", mode="max-autotune"))
    shelf.look(name).refresh()


def test_that_a_replayed_stream_gives_the_same_panes(qtbot: Any, shelf: Shelf) -> None:
    events = list(translate(transcript("graph_break_and_recompile")))
    live = recorded_run("graph_break_and_recompile")
    lines = [e.encode(event) for event in events]
    again = Run("recorded", config=live.config, workload=live.workload)
    again.apply(e.Hello(start="cold"))
    again.apply_all(event for line in lines if (event := e.decode(line)))
    again.apply_all([e.FirstCall(side="compiled", duration_s=1.0), e.Ended(outcome="finished")])
    other = Shelf(qtbot)
    shelf.show(live)
    other.show(again)

    names = [*TABLES, "guards"]
    for each in (shelf, other):
        each.look("guards")
        each.wait(lambda each=each: "checks" in child(each.panes.guards, QLabel, "guards_summary").text())

    assert [shelf.words(name) for name in names] == [other.words(name) for name in names]
    other.panes.close()


def test_that_the_ledger_explains_a_miss_by_the_nearest_earlier_key(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default", run_id="a"), recorded_run("mlp_reduce_overhead", run_id="b"))
    shelf.state.show_run("b")

    pane = shelf.look("cache")

    details = child(pane, QPlainTextEdit, "explanation")
    shelf.wait(lambda: "triton.cudagraphs: False → True" in details.toPlainText())
    assert "The nearest earlier one is of default" in details.toPlainText()


def test_that_keys_of_an_earlier_comparison_are_remembered(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default", run_id="a"))
    shelf.show(recorded_run("mlp_max_autotune", run_id="b"))

    details = child(shelf.look("cache"), QPlainTextEdit, "explanation")

    shelf.wait(lambda: "max_autotune: False → True" in details.toPlainText())


def test_that_the_totals_stand_above_the_ledger(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default", "mlp_default_warm"))

    pane = shelf.look("cache")

    totals = child(pane, QLabel, "cache_totals").text()
    assert totals.startswith("Cold: 2 misses.\nWarm: 2 hits, first call 2.00 s shorter; what remains after a hit: ")
    assert not child(pane, QLabel, "cache_finding").isVisible()


def test_that_clearing_a_cache_asks_first(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "torchinductor_me"
    (cache / "fxgraph").mkdir(parents=True)
    (cache / "fxgraph" / "entry").write_bytes(b"x" * 5000)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    shelf.show(recorded_run("mlp_default"))
    pane = shelf.look("cache")
    press = child(pane, QPushButton, "clear_yours")
    shelf.wait(press.isEnabled)

    with shelf.qtbot.waitSignal(shelf.panes.question_asked) as asked:
        shelf.qtbot.mouseClick(press, Qt.MouseButton.LeftButton)

    question, _answer, act = asked.args
    assert str(cache) in question and "4.88 KiB" in question
    assert (cache / "fxgraph" / "entry").exists()
    with shelf.qtbot.waitSignal(shelf.panes.said):
        act()
    assert cache.is_dir() and list(cache.iterdir()) == []


def test_that_a_choice_of_autotuning_is_a_row_with_its_time(shelf: Shelf) -> None:
    run = recorded_run("mlp_max_autotune", mode="max-autotune")
    choices = (
        {"name": "slow", "seconds": 2e-5},
        {"name": "fast", "seconds": 1e-5},
        {"name": "broken", "seconds": None},
    )
    tuned = e.Autotune(operation="mm", inputs=("8x8", "8x8"), choices=choices, winner="fast", duration_s=2.0)
    assert run.story
    run.story.autotunes.insert(0, tuned)
    shelf.show(run)

    rows = cells(child(shelf.look("autotune"), DataTable, "choices").model())

    assert [row[:2] for row in rows] == [["fast  (winner)", "10.0 µs"], ["slow", "20.0 µs"], ["broken", "failed"]]


def test_that_the_generated_code_is_shown_and_searched(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default"))
    pane = shelf.look("code")
    view = pane.findChild(CodeView)
    assert view is not None
    shelf.wait(lambda: "async_compile.triton" in view.text)

    search = child(pane, QLineEdit, "code_search")
    shelf.qtbot.keyClicks(search, "TRITON_POI")

    assert view.textCursor().selectedText() == "triton_poi"
    first = view.textCursor().position()
    shelf.qtbot.keyClick(search, Qt.Key.Key_Return)
    assert view.textCursor().position() > first
    assert child(pane, QLabel, "code_found").text().startswith("2 of ")
    shelf.qtbot.keyClicks(search, "nowhere")
    assert child(pane, QLabel, "code_found").text() == "not found"


def test_that_control_f_searches_the_text_that_has_the_keyboard(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default"))
    pane = shelf.look("code")
    view = pane.findChild(CodeView)
    assert view is not None

    with shelf.qtbot.waitSignal(view.find_wanted):
        shelf.qtbot.keyClick(view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)


def test_that_every_text_of_a_compile_is_listed_under_it(shelf: Shelf) -> None:
    shelf.show(recorded_run("training_step_bf16"))

    tree = child(shelf.look("code"), QTreeWidget, "texts")

    group = tree.topLevelItem(0)
    assert group is not None and group.text(0).startswith("0/0")
    listed = [group.child(i).text(0) for i in range(group.childCount())]  # type: ignore[union-attr]
    assert {"Dynamo graph", "AOT forward graph", "AOT backward graph", "Inductor output code"} <= set(listed)
    assert {"Post-grad graph", "Runnable repro script"} <= set(listed)


def test_that_of_thousands_of_texts_only_those_that_are_seen_have_items(shelf: Shelf) -> None:
    run = recorded_run("training_step_bf16")
    first = run.story.texts[:]
    run.story.texts.extend(replace(text, compile_id=f"{n}/0") for n in range(1, 400) for text in first)
    shelf.show(run)
    tree = child(shelf.look("code"), QTreeWidget, "texts")
    last = tree.topLevelItem(tree.topLevelItemCount() - 1)
    assert tree.topLevelItemCount() == 400
    assert last is not None and last.text(0).startswith("399/0") and last.childCount() == 0

    last.setExpanded(True)

    assert last.childCount() == tree.topLevelItem(0).childCount() > 5  # type: ignore[union-attr]
    assert tree.currentItem().text(0) == "Inductor output code"
    made = sum(tree.topLevelItem(i).childCount() for i in range(400))  # type: ignore[union-attr]
    assert made == 9 * last.childCount()


def test_that_a_large_text_is_there_at_once_and_whole_soon(shelf: Shelf, qtbot: Any) -> None:
    view = CodeView(shelf.theme, "code")
    qtbot.addWidget(view)
    view.resize(600, 300)
    view.show()
    text = "\n".join(f"buf{i} = empty_strided_cuda(({i}, 8), (8, 1), torch.float32)" for i in range(60_000))

    view.show_text(text)

    assert view.blockCount() > 100
    assert not view.is_loaded
    qtbot.waitUntil(lambda: view.is_loaded, timeout=20_000)
    assert view.blockCount() == 60_000
    assert view.find_text("buf59999") == (1, 1)


def test_that_a_text_that_is_gone_is_a_sentence(shelf: Shelf, tmp_path: Path) -> None:
    run = recorded_run("mlp_default")
    assert run.story
    run.story.texts[:] = [replace(text, file=str(tmp_path / "gone.log")) for text in run.story.texts]
    shelf.show(run)

    view = shelf.look("code").findChild(CodeView)

    assert view is not None
    shelf.wait(lambda: "cannot be read any more" in view.text)


def test_that_a_kernel_leads_to_its_source_line(shelf: Shelf) -> None:
    shelf.show(recorded_run("graph_break_and_recompile"))
    table = child(shelf.look("code"), DataTable, "kernels")

    with shelf.qtbot.waitSignal(shelf.panes.line_wanted) as asked:
        table.activated.emit(table.model().index(0, 4))

    assert asked.args == ["/home/user/models/graph_break_and_recompile.py", 10]


def test_that_guards_are_filtered_by_words(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_default"))
    pane = shelf.look("guards")
    summary = child(pane, QLabel, "guards_summary")
    shelf.wait(lambda: summary.text() == "50 checks, 76.3 µs per call")

    child(pane, QLineEdit, "guards_filter").setText("tensor_match linear.py")

    shelf.wait(lambda: "shown" in summary.text())
    tree = child(pane, QTreeWidget, "guards")
    items = tree.findItems("check_tensor", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
    assert [item.isHidden() for item in items].count(False) == int(summary.text().split(" · ")[1].split(" ")[0])
    hidden = tree.findItems("hasattr(args[0]", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
    assert hidden and all(item.isHidden() for item in hidden)


def test_that_each_compile_has_its_own_guards(shelf: Shelf) -> None:
    shelf.show(recorded_run("graph_break_and_recompile"))

    compiles = child(shelf.look("guards"), QComboBox, "guards_compile")

    assert compiles.count() >= 8
    assert compiles.itemText(0) == "0/0  forward"


def test_that_a_recompile_says_what_to_do(shelf: Shelf) -> None:
    shelf.show(recorded_run("graph_break_and_recompile"))
    shelf.recompiles.show()

    text = child(shelf.recompiles, QPlainTextEdit, "explanation").toPlainText()

    assert text.startswith("forward was compiled again once, since x, dimension 0 went 4 → 5.")
    assert "What to try\nTry dynamic on (dynamic=True), or torch._dynamo.mark_dynamic(x, 0)" in text


def test_that_colours_follow_the_theme(shelf: Shelf) -> None:
    shelf.show(recorded_run("mlp_max_autotune", mode="max-autotune"))
    for name in (*TABLES, "guards"):
        shelf.look(name)

    shelf.theme.set_scheme(Scheme.DARK)

    for name in (*TABLES, "guards"):
        assert not getattr(shelf.panes, name).grab().isNull()


def test_that_both_sides_show_where_their_time_goes_heaviest_first(shelf: Shelf) -> None:
    run = recorded_run("mlp_default")
    run.processes[-1].profiles |= {event.side: event for event in on_cpu() if isinstance(event, e.Profile)}
    shelf.show(run)

    pane = shelf.look("hotspots")
    eager, compiled = (cells(child(pane, DataTable, f"hotspots_{side}").model()) for side in ("eager", "compiled"))

    assert shelf.titles()[0] == "Where the time goes"
    assert (eager[0][0], eager[0][3]) == ("aten::convolution", "19.4 %")
    assert compiled[0][0] == "aten::convolution_backward"
    assert "cpp_fused_native_layer_norm_transpose_1" in [row[0] for row in compiled]
    assert "92 operators and kernels in eager and 88 compiled" in child(pane, QLabel, "hotspots_summary").text()


def test_that_times_keep_their_bar_and_name_where_there_is_little_room(shelf: Shelf) -> None:
    run = recorded_run("mlp_default")
    run.processes[-1].profiles |= {event.side: event for event in on_cpu() if isinstance(event, e.Profile)}
    shelf.show(run)
    pane = shelf.look("hotspots")
    table = child(pane, DataTable, "hotspots_eager")

    pane.window().resize(1900, 500)
    shelf.wait(lambda: not any(table.isColumnHidden(column) for column in range(6)))
    pane.window().resize(800, 500)
    shelf.wait(lambda: table.isColumnHidden(5))

    assert not table.isColumnHidden(0) and not table.isColumnHidden(3)
    assert table.columnWidth(0) >= 10 * table.fontMetrics().averageCharWidth()
