"""The comparison as a file or on the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilescope.domain.results import comparison_json
from compilescope.report.markdown import markdown
from compilescope.report.tables import write_csv, write_json, write_markdown
from compilescope.ui.state import AppState


def export_json(state: AppState, path: Path) -> None:
    write_json(_result(state), path)


def export_csv(state: AppState, path: Path) -> None:
    write_csv(_result(state), path)


def export_markdown(state: AppState, path: Path) -> None:
    write_markdown(_result(state), path)


def markdown_text(state: AppState) -> str:
    return markdown(_result(state))


def _result(state: AppState) -> dict[str, Any]:
    assert state.comparison is not None, "exports are enabled only once there is a comparison"
    return comparison_json(state.comparison)
