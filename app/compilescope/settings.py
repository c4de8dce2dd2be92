"""What the window remembers between starts: one JSON file, never trusted and never fatal."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = 1
MOST_RECENT = 8


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`geometry` and `layout` are Qt's own states in base64; `layout_version` says which window they fit."""

    version: int = VERSION
    scheme: str = "system"
    recent: tuple[str, ...] = ()
    python: str = ""
    budget_s: float = 10.0
    shows_log: bool = True
    geometry: str = ""
    layout: str = ""
    layout_version: int = 0

    def with_recent(self, script: Path) -> Settings:
        """These settings with `script` as the latest one opened."""
        others = [path for path in self.recent if path != str(script)]
        return dataclasses.replace(self, recent=(str(script), *others)[:MOST_RECENT])


def load(path: Path) -> tuple[Settings, str]:
    """The settings in a file, and a sentence where they could not be read (the defaults are used then)."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings(), ""
    except (OSError, ValueError) as error:
        return Settings(), f"The settings in {path} could not be read ({error}); the defaults are in use."
    if not isinstance(value, dict):
        return Settings(), f"The settings in {path} are not what they should be; the defaults are in use."
    return Settings(**_fitting(value)), ""


def save(settings: Settings, path: Path) -> None:
    """Write the settings whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(dataclasses.asdict(settings), indent=1), "utf-8")
    draft.replace(path)


def _fitting(value: dict[str, Any]) -> dict[str, Any]:
    """The known keys whose values have the type that they should have."""
    default = Settings()
    result: dict[str, Any] = {}
    for field in dataclasses.fields(Settings):
        item = value.get(field.name)
        expected = type(getattr(default, field.name))
        if expected is tuple and isinstance(item, list):
            result[field.name] = tuple(part for part in item if isinstance(part, str))
        elif expected is float and isinstance(item, (int, float)) and not isinstance(item, bool):
            result[field.name] = float(item)
        elif type(item) is expected:
            result[field.name] = item
    result["version"] = VERSION
    return result
