"""The window without a run: scripts, options, themes, keys, names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes.comparisons import comparison
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QGraphicsView, QLabel, QPushButton, QSpinBox, QToolButton, QWidget

from compilescope.domain.events import Environment
from compilescope.settings import Settings
from compilescope.ui.actions import ACTIONS
from compilescope.ui.panels.table import DataTable
from compilescope.ui.remembering import restore
from compilescope.ui.theme import DARK, LIGHT, Scheme, Tokens
from compilescope.ui.widgets import FigureCard

SCRIPT = '''"""Writes a file when it is run."""

from pathlib import Path

import torch
from torch import nn

Path(__file__).with_name("was_run").touch()


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(2, 3)]


def build_model():
    return Model()
'''


def test_that_dropping_a_script_lists_its_entries_and_runs_nothing(desk: Any, tmp_path: Path) -> None:
    script = tmp_path / "offers_two.py"
    script.write_text(SCRIPT)

    desk.drop(script)

    entry = desk.child(QComboBox, "entry")
    names = [entry.itemData(index) for index in range(entry.count())]
    assert names[0] == "Model"
    assert len(names) == 2
    assert desk.window.windowTitle().startswith("offers_two.py")
    assert not (tmp_path / "was_run").exists()
    assert desk.window.actions_by_id["run"].isEnabled()


def test_that_a_script_without_a_model_says_so_and_cannot_be_run(desk: Any, tmp_path: Path) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("x = 1\n")

    desk.drop(script)

    assert not desk.window.actions_by_id["run"].isEnabled()
    assert desk.window.workspace.answer.answer.tone == "bad"


def test_that_a_file_that_is_gone_gives_a_sentence(desk: Any, tmp_path: Path) -> None:
    desk.window.open_script(tmp_path / "gone.py")

    assert "gone.py" in desk.window.messages.text


def test_that_the_welcome_pane_offers_every_bundled_example_with_its_lesson(desk: Any) -> None:
    cards = [w for w in desk.window.welcome.findChildren(QWidget) if w.accessibleName().startswith("Example ")]

    assert len(cards) >= 12
    assert all(len(card.accessibleName()) > 40 for card in cards)


def test_that_an_example_opens_by_the_keyboard(desk: Any) -> None:
    card = next(w for w in desk.window.welcome.findChildren(QWidget) if "mlp.py" in w.accessibleName())

    desk.qtbot.keyClick(card, Qt.Key.Key_Return)

    assert desk.state.script is not None
    assert desk.state.script.name == "mlp.py"


def test_that_what_cannot_work_here_is_offered_with_the_reason(desk: Any) -> None:
    modes = {"default": {}, "reduce-overhead": {"triton.cudagraphs": True}}
    devices = ({"id": "cpu", "name": "A processor"},)

    desk.state.set_environment(Environment(torch="2.13", modes=modes, backends=("inductor",), devices=devices))
    tick = next(box for box in desk.window.options.findChildren(QCheckBox) if box.text() == "reduce-overhead")
    tick.click()

    assert "reduce-overhead" in desk.state.selection.modes
    notes = [label.text() for label in desk.window.options.findChildren(QLabel) if label.isVisible()]
    assert any("No CUDA graphs on a CPU" in note for note in notes)


def test_that_how_calls_are_made_and_timed_can_be_chosen(desk: Any) -> None:
    devices = ({"id": "cpu", "name": "A processor"},)
    desk.state.set_environment(Environment(torch="2.13", backends=("inductor",), devices=devices))
    options = desk.window.options
    step = next(chip for chip in options.findChildren(QToolButton) if chip.text() == "whole step")
    # inference has no step
    assert not step.isEnabled()

    next(chip for chip in options.findChildren(QToolButton) if chip.text() == "training step").click()
    step.click()
    options.findChild(QComboBox, "gradients").setCurrentIndex(1)
    options.findChild(QSpinBox, "threads").setValue(2)
    options.findChild(QCheckBox, "l2_flush").click()

    labels = [row.label for row in desk.state.selection.rows(None)]
    assert labels == ["default (inference)", "default (training)", "default · whole step (training)"]
    work = desk.state.selection.workload(Path("m.py"))
    assert (work.grad_mode, work.threads, desk.state.selection.measurement.l2_flush) == ("no_grad", 2, True)
    notes = [label.text() for label in options.findChildren(QLabel)]
    assert any(note.startswith("Not on a CPU: calls are timed back to back") for note in notes)


def test_that_every_cuda_device_is_offered_by_name(desk: Any) -> None:
    devices = (
        {"id": "cuda:0", "name": "NVIDIA H200"},
        {"id": "cuda:1", "name": "NVIDIA H200"},
        {"id": "cpu", "name": "A processor"},
    )

    desk.state.set_environment(
        Environment(torch="2.13", modes={"default": {}}, backends=("inductor",), devices=devices)
    )

    box = desk.child(QComboBox, "device")
    texts = [box.itemText(index) for index in range(box.count())]
    assert texts == ["NVIDIA H200 (cuda:0)", "NVIDIA H200 (cuda:1)", "CPU", "2 × NVIDIA H200 at once"]


def test_that_an_environment_that_arrives_late_leaves_what_was_ticked(desk: Any) -> None:
    before = desk.state.selection

    desk.state.set_environment(
        Environment(
            torch="2.13",
            modes={"default": {}, "max-autotune": {}},
            backends=("inductor", "eager"),
            devices=({"id": "cpu", "name": "A processor"},),
        )
    )

    assert desk.state.selection.modes == before.modes
    assert desk.state.selection.backends == before.backends


def test_that_an_interpreter_without_torch_is_said_in_words(desk: Any) -> None:
    desk.state.set_environment(None, "torch is not installed for /usr/bin/python3.")

    notes = [label.text() for label in desk.window.options.findChildren(QLabel)]
    assert "torch is not installed for /usr/bin/python3." in notes


def test_that_nothing_ticked_cannot_be_run(desk: Any, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    desk.drop(script)

    next(box for box in desk.window.options.findChildren(QCheckBox) if box.text() == "default").click()

    assert not desk.window.actions_by_id["run"].isEnabled()
    assert desk.window.workspace.answer.answer.title == "Tick at least one mode."


def test_that_shortcuts_are_unique() -> None:
    keys = Counter(spec.shortcut for spec in ACTIONS if spec.shortcut)

    assert [key for key, count in keys.items() if count > 1] == []


def test_that_every_action_is_in_a_menu_and_has_a_handler(desk: Any) -> None:
    menus = [action.menu() for action in desk.window.menuBar().actions()]
    shown = {action.objectName() for menu in menus for action in menu.actions() if action.objectName()}

    assert shown == {spec.id for spec in ACTIONS}


def test_that_every_widget_that_takes_the_keyboard_has_a_name(desk: Any) -> None:
    nameless = [
        f"{type(widget).__name__} {widget.objectName()!r} in {type(widget.parent()).__name__}"
        for widget in desk.window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not _name(widget)
        and not _is_part_of_another(widget, desk.window)
    ]

    assert nameless == []


def _name(widget: QWidget) -> str:
    text = widget.text() if isinstance(widget, (QPushButton, QCheckBox, QToolButton, QLabel)) else ""
    return widget.accessibleName() or text


def _is_part_of_another(widget: QWidget, desk_window: QWidget) -> bool:
    """Line edits of spin boxes, lists of combo boxes and the like, which Qt names through their owner."""
    is_popup = widget.window() is not desk_window
    return is_popup or widget.objectName().startswith("qt_") or widget.focusProxy() is not None


def test_that_tab_goes_through_the_options_from_top_to_bottom(desk: Any, qapp: Any) -> None:
    desk.window.open_script(desk.script("ok"))
    desk.window.activateWindow()
    desk.wait(lambda: qapp.focusWidget() is not None)
    names: list[str] = []

    # modes and backends come late, when the environment is known
    desk.wait(lambda: desk.state.environment is not None)
    for _ in range(60):
        qapp.focusWidget().focusNextChild()
        names.append(qapp.focusWidget().accessibleName() or qapp.focusWidget().objectName())

    wanted = ["Mode default", "dynamic auto", "Backend inductor", "Device", "precision fp32"]
    start = names.index(wanted[0])
    assert [name for name in names[start:] if name in wanted][: len(wanted)] == wanted


@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_that_the_theme_can_be_switched_while_the_window_is_open(desk: Any, qapp: Any, scheme: Scheme) -> None:
    desk.parts.theme.set_scheme(scheme)

    tokens = DARK if scheme is Scheme.DARK else LIGHT
    assert qapp.palette().window().color().name() == tokens.window
    assert desk.window.settings.scheme == scheme.value


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("fill", ["window", "panel", "raised", "field"])
@pytest.mark.parametrize("ink", ["text", "muted", "good", "warn", "bad", "accent"])
def test_that_text_can_be_read_on_every_ground(tokens: Tokens, fill: str, ink: str) -> None:
    assert contrast(getattr(tokens, ink), getattr(tokens, fill)) >= 4.3


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the web accessibility guidelines."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", ["comparison", "graph_breaks", "recompiles"])
def test_that_table_models_keep_qts_rules(desk: Any, qtmodeltester: Any, name: str) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)

    qtmodeltester.check(desk.child(DataTable, name).model())


def test_that_the_window_remembers_scripts_and_layout(desk: Any, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    desk.drop(script)

    kept: Settings = desk.window.settings

    assert kept.recent[0] == str(script)
    assert kept.geometry
    assert kept.layout_version == 1


@pytest.mark.parametrize("size", [(1000, 640), (1280, 800), (1920, 1080)])
def test_that_the_window_fits_its_sizes(desk: Any, size: tuple[int, int]) -> None:
    desk.run_fake("ok")
    desk.wait(desk.is_over)

    desk.window.resize(*size)
    desk.qtbot.waitUntil(lambda: desk.window.size().width() <= size[0])

    assert (desk.window.width(), desk.window.height()) == size
    desk.wait(lambda: plot_height(desk) >= 140)
    cards = [card for card in desk.window.workspace.timing.findChildren(FigureCard) if card.isVisible()]
    assert cards and all(card.height() >= card.sizeHint().height() for card in cards)


def plot_height(desk: Any) -> int:
    """How high the latency chart draws."""
    views = desk.window.workspace.timing.findChildren(QGraphicsView)
    return max((view.viewport().height() for view in views), default=0)


@pytest.mark.parametrize("size", [(1000, 640), (1280, 800)])
def test_that_beside_many_configurations_chart_and_results_stay_in_view(desk: Any, size: tuple[int, int]) -> None:
    desk.window.resize(*size)
    desk.state.show_stored(comparison())
    desk.wait(desk.is_over)
    desk.window.workspace.tabs.setCurrentWidget(desk.window.workspace.timing)

    table = desk.child(DataTable, "comparison")
    verdict = table.model().columnCount() - 1
    desk.wait(lambda: plot_height(desk) >= 140)
    assert not table.horizontalScrollBar().isVisible()
    assert table.columnViewportPosition(verdict) + table.columnWidth(verdict) <= table.viewport().width() + 1
    header = table.horizontalHeader()
    shown = [column for column in range(header.count()) if not header.isSectionHidden(column)]
    assert all(header.sectionSize(column) >= header.sectionSizeFromContents(column).width() for column in shown)
    assert table.columnWidth(verdict) >= 100
    assert table.viewport().height() >= 3 * table.rowHeight(0)


def test_that_an_empty_log_is_folded_to_its_header_until_its_first_line(desk: Any) -> None:
    desk.window.open_script(desk.script("hang"))
    desk.window.run()
    workspace = desk.window.workspace
    desk.wait(workspace.log.isVisible)
    workspace.log.clear()
    desk.wait(lambda: workspace.log.height() < 50)

    workspace.log.append("default", 0.0, [b"a line"])

    desk.wait(lambda: workspace.log.height() > 90)
    workspace.split.moveSplitter(workspace.split.height() - 200, 1)
    own = workspace.log.height()
    workspace.log.clear()
    desk.wait(lambda: workspace.log.height() < 50)
    kept = desk.window.settings.layout
    workspace.log.append("default", 0.0, [b"another"])
    desk.wait(lambda: workspace.log.height() == own)
    workspace.split.reset()
    restore(kept, desk.window._body, workspace.split)
    assert workspace.log.height() == own


def test_that_the_answer_is_as_high_as_its_text(desk: Any) -> None:
    desk.window.open_script(desk.script("ok"))
    card = desk.window.workspace.answer
    before = card.height()

    desk.run_fake("fail")
    desk.wait(lambda: card.answer.tone == "bad")

    desk.wait(lambda: card.height() <= before)
    assert card._text.height() == card._text.fontMetrics().lineSpacing()


@pytest.mark.parametrize("content", [bytes(range(256)) * 4000, b"\xff\xfe\xe9" * 100_000], ids=["binary", "latin"])
def test_that_a_file_that_is_no_text_is_one_sentence_and_no_glyphs(desk: Any, tmp_path: Path, content: bytes) -> None:
    script = tmp_path / "blob.py"
    script.write_bytes(content)

    desk.drop(script)

    shown = desk.window.workspace.source.toPlainText()
    assert shown.startswith("blob.py ") and shown.count(".") == 2 and len(shown) < 120
    assert not desk.child(QLabel, "inputs").isVisible()
    assert not desk.window.actions_by_id["run"].isEnabled()
