"""The static scan: what a script offers, told without running it."""

from pathlib import Path

import pytest

from compilescope.domain.scan import Scan, scan


def scanned(tmp_path: Path, source: str | bytes, name: str = "script.py") -> Scan:
    path = tmp_path / name
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return scan(path)


def names(found: Scan) -> list[tuple[str, str]]:
    return [(entry.name, entry.kind) for entry in found.entries]


def test_that_a_model_class_with_inputs_is_found(tmp_path: Path) -> None:
    found = scanned(
        tmp_path,
        '"""Teaches something."""\nimport torch.nn as nn\nclass Model(nn.Module):\n    pass\n'
        "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n",
    )

    assert names(found) == [("Model", "model class")]
    assert found.entries[0].line == 3
    assert found.entries[0].detail == "get_inputs(), get_init_inputs()"
    assert found.docstring == "Teaches something."
    assert not found.problem


def test_that_a_model_class_may_come_from_a_base_of_the_same_file(tmp_path: Path) -> None:
    found = scanned(
        tmp_path,
        "from torch import nn\nclass Base(nn.Module): ...\nclass Model(Base): ...\ndef get_inputs(): ...\n",
    )

    assert names(found) == [("Model", "model class")]


def test_that_a_class_that_is_no_module_is_no_entry(tmp_path: Path) -> None:
    found = scanned(tmp_path, "class Model:\n    pass\ndef get_inputs():\n    return []\n")

    assert not found.entries
    assert "offers no model" in found.problem


@pytest.mark.parametrize("factory", ["build_model", "get_model", "make_model"])
@pytest.mark.parametrize(
    "inputs", ["def get_inputs(): ...", "def make_inputs(): ...", "example_inputs = (1,)", "def example_inputs(): ..."]
)
def test_that_a_factory_with_inputs_is_found(tmp_path: Path, factory: str, inputs: str) -> None:
    found = scanned(tmp_path, f"def {factory}(): ...\n{inputs}\n")

    assert names(found) == [(factory, "factory")]


def test_that_a_factory_may_return_its_inputs(tmp_path: Path) -> None:
    found = scanned(tmp_path, "def build_model():\n    return Net(), (x,)\n")

    assert names(found) == [("build_model", "factory")]


def test_that_a_pair_returned_by_a_function_within_the_factory_does_not_count(tmp_path: Path) -> None:
    found = scanned(tmp_path, "def build_model():\n    def pair():\n        return 1, 2\n    return Net()\n")

    assert not found.entries


def test_that_a_module_level_model_is_found_behind_calls_on_it(tmp_path: Path) -> None:
    found = scanned(
        tmp_path,
        "import torch\nfrom torch import nn\nclass Net(nn.Module): ...\nfirst = Net().eval()\n"
        "second = torch.compile(Net())\nthird = nn.Linear(1, 1)\nnumber = int(3)\nexample_inputs = (1,)\n",
    )

    assert names(found) == [("first", "module"), ("second", "module"), ("third", "module")]


def test_that_all_entries_are_listed_in_the_order_of_preference(tmp_path: Path) -> None:
    found = scanned(
        tmp_path,
        "from torch import nn\nmodel = nn.Linear(1, 1)\ndef build_model(): ...\n"
        "class Model(nn.Module): ...\ndef get_inputs(): ...\n",
    )

    assert names(found) == [("Model", "model class"), ("build_model", "factory"), ("model", "module")]


def test_that_what_stands_under_the_main_guard_is_left_out(tmp_path: Path) -> None:
    found = scanned(
        tmp_path, "from torch import nn\nif __name__ == '__main__':\n    model = nn.Linear(1, 1)\n    inputs = 1\n"
    )

    assert not found.entries
    assert "main guard" in found.problem


def test_that_branches_and_attempts_at_module_level_are_read(tmp_path: Path) -> None:
    found = scanned(
        tmp_path,
        "import torch\nfrom torch import nn\ntry:\n    import fast\nexcept ImportError:\n    fast = None\n"
        "if torch.cuda.is_available():\n    model = nn.Linear(1, 1)\nelse:\n    model = nn.Linear(2, 2)\ninputs = 1\n",
    )

    assert names(found) == [("model", "module")]


def test_that_a_model_without_inputs_is_named_in_the_problem(tmp_path: Path) -> None:
    found = scanned(tmp_path, "from torch import nn\nclass Net(nn.Module): ...\n")

    assert "Net" in found.problem
    assert "get_inputs()" in found.problem


def test_that_nothing_of_the_script_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    scanned(tmp_path, f"open({str(marker)!r}, 'w')\nraise SystemExit\n")

    assert not marker.exists()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (b"", "script.py is empty."),
        (b" \n\n", "script.py is empty."),
        (b"def f(:\n", "no valid Python"),
        (b"\x89PNG\0\0", "binary data"),
        ("name = 'größe'\n".encode("latin-1"), "not UTF-8 (line 1)"),
        (b"x = " + b"(" * 500 + b")" * 500, "no valid Python"),
    ],
)
def test_that_an_unreadable_script_gets_one_sentence(tmp_path: Path, source: bytes, sentence: str) -> None:
    found = scanned(tmp_path, source)

    assert sentence in found.problem
    assert "\n" not in found.problem
    assert not found.entries


def test_that_a_script_may_name_its_own_encoding(tmp_path: Path) -> None:
    source = "# -*- coding: latin-1 -*-\nfrom torch import nn\nmodel = nn.Linear(1, 1)  # größe\ninputs = 1\n"

    assert names(scanned(tmp_path, source.encode("latin-1"))) == [("model", "module")]


def test_that_a_folder_and_a_missing_file_get_one_sentence(tmp_path: Path) -> None:
    assert "is a folder" in scan(tmp_path).problem
    assert "cannot be read" in scan(tmp_path / "missing.py").problem
