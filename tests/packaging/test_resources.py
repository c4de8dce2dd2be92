"""Examples and icons: what a person sees of them, from a checkout and from an installed wheel."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from compilescope import paths
from compilescope.domain.scan import scan

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "resources" / "examples").glob("*.py"))
ICONS = sorted((ROOT / "resources" / "icons").glob("*.svg"))
FITS_A_CARD = 125

LIST_RESOURCES = """
import compilescope
from compilescope import paths
from compilescope.domain.scan import scan

print(compilescope.__file__)
folder = paths.resources()
print(folder)
for path in sorted(folder.rglob("*")):
    if path.is_file() and "__pycache__" not in path.parts:
        print(path.relative_to(folder).as_posix(), path.stat().st_size)
assert all(scan(path).entries for path in (folder / "examples").glob("*.py"))
"""


def python(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the source archive."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    python("-m", "pip", "wheel", "-q", *offline, "-w", str(folder), str(archive), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_that_a_checkout_and_an_installed_wheel_hold_the_same_resources(wheel: Path, tmp_path: Path) -> None:
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check")
    python("-m", "pip", "install", "-q", *offline, "--target", str(tmp_path / "site"), str(wheel), cwd=tmp_path)
    installed = python("-c", LIST_RESOURCES, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site")).splitlines()
    checkout = python("-c", LIST_RESOURCES, cwd=tmp_path, PYTHONPATH=str(ROOT / "app")).splitlines()
    assert installed[0].startswith(str(tmp_path))
    assert installed[1].startswith(str(tmp_path))
    assert checkout[1] == str(ROOT / "resources")
    assert installed[2:] == checkout[2:]


def test_that_an_installed_wheel_has_both_commands(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path, "zip")
    (file,) = tmp_path.glob("*.dist-info/entry_points.txt")
    points = configparser.ConfigParser()
    points.read(file, encoding="utf-8")
    assert points["console_scripts"]["compilescope"] == points["gui_scripts"]["compilescope-window"]


def test_that_there_are_at_least_a_dozen_examples() -> None:
    assert paths.resources() == ROOT / "resources"
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_that_an_example_says_what_it_teaches_and_what_to_look_at(path: Path) -> None:
    lesson, _, advice = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")
    assert lesson.endswith(".")
    assert "\n" not in lesson
    assert len(lesson) <= FITS_A_CARD
    assert advice


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_that_an_example_is_a_model_script_that_needs_torch_alone(path: Path) -> None:
    found = scan(path)
    assert found.entries
    assert not found.problem
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
    assert modules - sys.stdlib_module_names == {"torch"}


@pytest.mark.parametrize("path", ICONS, ids=lambda path: path.stem)
def test_that_an_icon_is_drawn_in_the_one_colour_of_the_theme(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', text)) - {"none"}
    assert colours == {"currentColor"} or path.stem == "compilescope"


def test_that_the_desktop_entry_starts_the_window_under_its_own_icon() -> None:
    path = ROOT / "packaging" / "compilescope.desktop"
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path, encoding="utf-8")
    entry = parser["Desktop Entry"]
    assert (entry["Version"], entry["Type"], entry["Terminal"]) == ("1.4", "Application", "false")
    assert entry["Exec"].split()[0] == "compilescope-window"
    assert (ROOT / "resources" / "icons" / f"{entry['Icon']}.svg").is_file()
    if shutil.which("desktop-file-validate"):
        assert subprocess.run(["desktop-file-validate", str(path)], check=False).returncode == 0
