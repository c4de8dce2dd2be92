"""The log pane by itself: rows, filter, tail, copy and save."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QTableView, QToolButton, QWidget

from compilescope.domain.log import LogStore
from compilescope.domain.log_search import LogFilter
from compilescope.ui.log import LogPane
from compilescope.ui.log.model import MESSAGE, LogModel
from compilescope.ui.theme import Scheme, Theme

LINES = [
    b"I1129 12:34:56.789000 42 torch/x.py:1] Step 1",
    b"plain output",
    b"W1129 12:34:56.789000 42 torch/x.py:2] recompile limit",
    b"Traceback (most recent call last):",
    b"ValueError: <b>no</b> markup",
]


class Shown:
    """A pane on the screen, and what a user sees of it."""

    def __init__(self, qtbot: Any) -> None:
        self.qtbot = qtbot
        self.theme = Theme(Scheme.LIGHT)
        self.pane = LogPane(self.theme)
        qtbot.addWidget(self.pane)
        self.pane.resize(900, 300)
        self.pane.show()
        qtbot.waitExposed(self.pane)
        self.table = self.child(QTableView, "log.table")

    def child(self, kind: type[Any], name: str) -> Any:
        found = self.pane.findChild(kind, name)
        assert found is not None
        return found

    @property
    def messages(self) -> list[str]:
        model = self.table.model()
        return [model.index(row, MESSAGE).data() for row in range(model.rowCount())]

    @property
    def count(self) -> str:
        return str(self.child(QWidget, "log.count").accessibleName())

    def append(self, lines: list[bytes], label: str = "default") -> None:
        before = len(self.messages)
        self.pane.append(label, 1.5, lines)
        self.qtbot.waitUntil(lambda: len(self.messages) == before + len(lines))

    def search(self, text: str) -> None:
        field = self.child(QLineEdit, "log.search")
        field.clear()
        self.qtbot.keyClicks(field, text)
        self.qtbot.keyClick(field, Qt.Key.Key_Return)

    def is_at_tail(self) -> bool:
        bar = self.table.verticalScrollBar()
        return bool(bar.value() == bar.maximum())


@pytest.fixture
def shown(qtbot: Any) -> Iterator[Shown]:
    yield Shown(qtbot)


def test_that_the_model_keeps_qts_rules_while_it_grows_and_is_filtered() -> None:
    store = LogStore()
    model = LogModel(store)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)

    store.append("run", 0.0, LINES)
    model.advance(1.0)
    model.set_filter(LogFilter(text="torch"), 1.0)
    store.append("run", 0.0, LINES)
    model.advance(1.0)
    assert model.rowCount() == 4
    model.set_filter(LogFilter(), 1.0)
    assert model.rowCount() == 10
    model.clear()
    assert model.rowCount() == 0


@pytest.mark.parametrize("text", ["", "7"])
def test_that_rows_go_with_the_lines_that_the_store_lets_go(text: str) -> None:
    store = LogStore(room_bytes=400_000)
    model = LogModel(store)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_filter(LogFilter(text=text), 1.0)

    for batch in range(60):
        store.append("run", 0.0, [b"line %06d" % (batch * 1000 + number) for number in range(1000)])
        model.trim()
        if batch % 3:
            model.advance(1.0)
    model.advance(1.0)

    kept = [f"line {number:06d}" for number in range(store.begin, store.end) if text in f"{number:06d}"]
    assert store.begin > 0
    assert [model.index(row, MESSAGE).data() for row in range(model.rowCount())] == kept


def test_that_an_empty_pane_says_what_will_appear(shown: Shown) -> None:
    assert shown.child(QLabel, "log.empty").isVisible()

    shown.append(LINES)

    assert not shown.child(QLabel, "log.empty").isVisible()


def test_that_lines_appear_with_time_level_and_message(shown: Shown) -> None:
    shown.append(LINES)

    model = shown.table.model()
    assert shown.messages == [line.decode() for line in LINES]
    assert [model.index(0, column).data() for column in range(3)] == ["1.500", "default", "info"]
    assert shown.count == "5 lines · 2 error lines · 1 warning line"


def test_that_the_run_is_named_once_there_are_two(shown: Shown) -> None:
    shown.append(LINES)
    assert shown.table.isColumnHidden(1)

    shown.append(LINES, "reduce-overhead")

    assert not shown.table.isColumnHidden(1)


def test_that_searching_leaves_the_lines_that_match(shown: Shown) -> None:
    shown.append(LINES)

    shown.search("TORCH")

    assert shown.messages == [LINES[0].decode(), LINES[2].decode()]
    assert shown.count == "2 of 5 lines"


def test_that_a_search_without_a_match_says_so_and_escape_clears_it(shown: Shown) -> None:
    shown.append(LINES)
    shown.search("nowhere")
    shown.qtbot.waitUntil(lambda: shown.child(QLabel, "log.empty").isVisible())

    shown.qtbot.keyClick(shown.child(QLineEdit, "log.search"), Qt.Key.Key_Escape)

    assert len(shown.messages) == 5


def test_that_the_level_hides_what_is_quieter(shown: Shown) -> None:
    shown.append(LINES)

    shown.child(QComboBox, "log.level").setCurrentText("Errors only")

    assert shown.messages == [line.decode() for line in LINES[3:]]


def test_that_a_broken_pattern_is_told_and_changes_nothing(shown: Shown) -> None:
    shown.append(LINES)
    shown.child(QToolButton, "log.pattern").click()

    shown.search("(")

    assert shown.child(QLabel, "log.problem").text().startswith("Not a regular expression")
    assert len(shown.messages) == 5


def test_that_control_f_finds(shown: Shown) -> None:
    shown.append(LINES)
    shown.table.setFocus()

    shown.pane.focus_search()

    assert shown.child(QLineEdit, "log.search").hasFocus()


def test_that_the_tail_is_followed_until_the_user_scrolls_away(shown: Shown) -> None:
    shown.append([b"line %d" % number for number in range(200)])
    shown.qtbot.waitUntil(shown.is_at_tail)

    shown.table.verticalScrollBar().setValue(3)
    shown.append(LINES)
    assert not shown.child(QCheckBox, "log.follow").isChecked()
    assert shown.table.verticalScrollBar().value() == 3

    shown.child(QCheckBox, "log.follow").click()
    shown.append(LINES)
    assert shown.is_at_tail()


def test_that_a_filter_does_not_end_the_following(shown: Shown) -> None:
    shown.append([b"line %d" % number for number in range(200)])

    shown.search("line 1")
    shown.search("")

    assert shown.child(QCheckBox, "log.follow").isChecked()
    assert shown.is_at_tail()


def test_that_selected_lines_are_copied_whole(shown: Shown) -> None:
    long = b"x" * 5000
    shown.append([*LINES, long])
    shown.table.selectRow(5)

    shown.pane.copy()

    assert QGuiApplication.clipboard().text() == long.decode()


def test_that_a_long_line_can_be_seen_whole(shown: Shown) -> None:
    shown.append([b"x" * 5000])
    shown.table.selectRow(0)

    shown.pane.show_detail()

    assert len(shown.child(QPlainTextEdit, "log.detail").toPlainText()) == 5000


def test_that_leaving_a_filter_shows_the_line_among_its_neighbours(shown: Shown) -> None:
    shown.append([b"line %d" % number for number in range(500)])
    shown.search("line 250")
    shown.table.selectRow(0)

    shown.pane.leave_filter()

    assert shown.table.currentIndex().row() == 250
    assert not shown.child(QCheckBox, "log.follow").isChecked()


def test_that_what_is_shown_is_saved(shown: Shown, tmp_path: Path) -> None:
    shown.append(LINES)
    shown.search("torch")

    shown.pane.save_to(tmp_path / "log.txt")

    assert (tmp_path / "log.txt").read_bytes() == LINES[0] + b"\n" + LINES[2] + b"\n"


def test_that_a_file_that_cannot_be_written_is_told(shown: Shown, tmp_path: Path) -> None:
    shown.append(LINES)

    shown.pane.save_to(tmp_path / "no folder" / "log.txt")

    assert "could not be saved" in shown.child(QLabel, "log.problem").text()


def test_that_foreign_markup_stays_text_in_a_tooltip(shown: Shown) -> None:
    shown.append([b"<img src=x>" * 20])

    tip = shown.table.model().index(0, MESSAGE).data(Qt.ItemDataRole.ToolTipRole)

    assert "&lt;img" in tip and "<img" not in tip


def test_that_both_themes_draw_other_pictures(shown: Shown) -> None:
    shown.append(LINES)
    light = shown.table.grab().toImage()

    shown.theme.set_scheme(Scheme.DARK)

    assert shown.table.grab().toImage() != light
