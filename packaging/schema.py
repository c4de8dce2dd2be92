"""The published JSON schema of a comparison: what it says of figures comes from their table.

After a change of the table: PYTHONPATH=app python packaging/schema.py
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from compilescope.domain.figures import FIGURES, Figure


def with_figures(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with every figure of the table as the table has it."""
    result = copy.deepcopy(schema)
    for figure in FIGURES:
        *way, name = figure.path.split(".")
        branch = result["$defs"]["run"]["properties"]
        for key in way:
            branch = branch[key]["properties"]
        branch[name] = _of(figure)
    return result


def _of(figure: Figure) -> dict[str, Any]:
    schema = dict(figure.kind.schema)
    if figure.values:
        schema = {"enum": [*figure.values, None]}
    elif "type" in schema and not figure.is_given:
        schema["type"] = [schema["type"], "null"]
    return schema | ({"description": figure.explains} if figure.explains else {})


def text(schema: dict[str, Any]) -> str:
    """As the file has it."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "resources" / "schema" / "comparison.schema.json"
    path.write_text(text(with_figures(json.loads(path.read_text("utf-8")))), "utf-8")
