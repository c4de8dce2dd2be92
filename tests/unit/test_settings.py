"""Settings are remembered, and can never keep the window from opening."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope import settings
from compilescope.domain.errors import UsageError
from compilescope.main import refuse_broken_qt
from compilescope.settings import Settings


def test_that_settings_come_back_as_they_were_saved(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    kept = Settings(scheme="dark", budget_s=3.0).with_recent(Path("/a.py")).with_recent(Path("/b.py"))

    settings.save(kept, path)

    assert settings.load(path) == (kept, "")
    assert kept.recent == ("/b.py", "/a.py")


def test_that_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "none.json") == (Settings(), "")


@pytest.mark.parametrize("text", ["{", "[]", "\x00", '"words"'])
def test_that_a_bad_file_means_the_defaults_and_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)

    known, problem = settings.load(path)

    assert known == Settings()
    assert "defaults" in problem


def test_that_values_of_the_wrong_type_and_unknown_keys_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"version": 99, "scheme": 7, "recent": ["/a.py", 3], "budget_s": 4, "later": true}')

    known, problem = settings.load(path)

    assert known == Settings(recent=("/a.py",), budget_s=4.0)
    assert problem == ""


def test_that_the_same_script_is_listed_once() -> None:
    kept = Settings().with_recent(Path("/a.py")).with_recent(Path("/b.py")).with_recent(Path("/a.py"))

    assert kept.recent == ("/a.py", "/b.py")


def test_that_a_qt_that_would_abort_is_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"6\.12\.0 aborts on Python 3\.11"):
        refuse_broken_qt("6.12.0", (3, 11))

    refuse_broken_qt("6.12.0", (3, 12))
    refuse_broken_qt("6.11.3", (3, 11))
