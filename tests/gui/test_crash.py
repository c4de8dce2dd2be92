"""Errors that nobody expected are written down and told, and end nothing."""

from __future__ import annotations

import faulthandler
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import qInstallMessageHandler

from compilescope.crash import CrashLog
from compilescope.domain.faults import fault


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CrashLog]:
    hooks = sys.excepthook, threading.excepthook
    before = qInstallMessageHandler(None)
    result = CrashLog(tmp_path / "crash.log")
    result.install()
    yield result
    result.uninstall()
    sys.excepthook, threading.excepthook = hooks
    qInstallMessageHandler(before)
    faulthandler.enable(sys.__stderr__)


def test_that_an_exception_is_told_in_a_sentence_and_written_with_its_traceback(log: CrashLog, tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    log.caught.connect(lambda sentence, text: told.append((sentence, text)))

    try:
        raise ValueError("a surprise")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)

    (sentence, text) = told[0]
    assert "ValueError: a surprise" in sentence
    assert "Traceback" in text
    assert "a surprise" in (tmp_path / "crash.log").read_text()


@pytest.mark.usefixtures("log")
def test_that_an_exception_of_a_thread_is_written_too(tmp_path: Path) -> None:
    def fall() -> None:
        raise RuntimeError("in a thread")

    thread = threading.Thread(target=fall)
    thread.start()
    thread.join()

    assert "in a thread" in (tmp_path / "crash.log").read_text()


@pytest.mark.usefixtures("log")
def test_that_a_fault_that_was_told_where_it_arose_is_written_too(tmp_path: Path) -> None:
    try:
        raise KeyError("in a verdict")
    except KeyError as error:
        sentence = fault("The verdict is missing", error)

    written = (tmp_path / "crash.log").read_text()
    assert sentence in written
    assert "Traceback" in written
