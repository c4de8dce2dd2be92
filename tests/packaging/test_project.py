"""What the project file and the README promise."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
VOCABULARY = {"config", "errors", "events", "fields", "scan", "statistics", "trace", "workload"}


def test_that_the_worker_loads_the_vocabulary_torch_and_the_standard_library_alone() -> None:
    graph = grimp.build_graph("compilescope", include_external_packages=True)
    loaded = graph.find_upstream_modules("compilescope.worker", as_package=True)
    own = {name for name in loaded if name.startswith("compilescope.")}
    assert {".".join(name.split(".")[1:3]) for name in own} <= {f"domain.{name}" for name in VOCABULARY} | {"domain"}
    others = {name.split(".")[0] for name in loaded - own} - sys.stdlib_module_names
    assert others <= {"compilescope", "torch", "triton"}


def test_that_what_the_readme_links_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        assert (ROOT / target).is_file(), target


def test_that_the_commands_of_the_readme_are_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\./(\S+)", text, re.MULTILINE)
    assert commands == ["packaging/run", "packaging/test"]
    assert all((ROOT / command).is_file() for command in commands)
