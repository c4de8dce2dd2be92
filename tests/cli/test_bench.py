"""`compilescope bench` with a real worker and a real torch, as a user runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.backends import SCRIPT

pytestmark = pytest.mark.slow

MODEL = """
import ctypes, os, signal, subprocess, sys, time
import torch
from torch import nn

{top}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        {forward}
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(4, 32)]
"""
WANTS_ARGUMENTS = "import argparse; p = argparse.ArgumentParser(); p.add_argument('size'); p.parse_args()"
# backend eager runs what Dynamo captured without building code: quick, and all of the way but Inductor
QUICK = ("--backend", "eager", "--budget", "0.4")
RUN_KEYS = {
    "id", "config", "workload", "outcome", "error", "compile", "graph_breaks", "recompiles", "cache", "cudagraphs",
    "timing", "memory", "numerics", "break_even", "shape_sweep", "verdict",
}  # fmt: skip


def model(forward: str = "pass", top: str = "") -> str:
    return MODEL.format(forward=forward, top=top)


def error_of(command_line: Any, script: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, error and stdout of one quick run that fails."""
    found = command_line.run("bench", script, *QUICK, "--json", "out.json", *words)
    (run,) = json.loads((command_line.folder / "out.json").read_text())["runs"]
    assert run["verdict"]["kind"] == "failed"
    return found.returncode, run["error"] | {"outcome": run["outcome"]}, found.stdout


def test_that_a_comparison_is_compiled_measured_and_written(command_line: Any) -> None:
    script = command_line.script(model())

    found = command_line.run(
        "bench", script, "--mode", "default", "--backend", "inductor", "--backend", "eager", "--budget", "1",
        "--json", "out.json", "--csv", "out.csv", "--markdown", "out.md",
    )  # fmt: skip

    assert found.returncode == 0, found.stderr
    result = json.loads((command_line.folder / "out.json").read_text())
    assert result["schema"] == 1
    assert {"compilescope", "created", "environment", "workload", "runs", "recommendation"} <= set(result)
    assert [run["outcome"] for run in result["runs"]] == ["finished", "finished"]
    for run in result["runs"]:
        assert set(run) >= RUN_KEYS
        assert run["compile"]["graphs"] == 1
        assert run["compile"]["cold_first_call_s"] > 0 and run["compile"]["warm_first_call_s"] > 0
        assert run["timing"]["eager_ms"]["median"] > 0 and run["timing"]["compiled_ms"]["median"] > 0
        assert run["timing"]["speedup"]["low"] <= run["timing"]["speedup"]["value"] <= run["timing"]["speedup"]["high"]
    rows = list(csv.DictReader((command_line.folder / "out.csv").read_text().splitlines()))
    assert [row["config.backend"] for row in rows] == ["inductor", "eager"]
    assert "model.py" in (command_line.folder / "out.md").read_text()
    assert "default" in found.stdout and "eager" in found.stdout
    assert "[2/2] backend eager" in found.stderr


def test_that_a_play_off_decides_between_two_that_nearly_tie(command_line: Any) -> None:
    script = command_line.script(SCRIPT)
    words = ("--backend", "lean", "--backend", "close", "--budget", "1", "--threads", "1", "--device", "cpu")

    found = command_line.run("bench", script, *words, "--json", "out.json")

    assert found.returncode == 0, found.stderr
    result = json.loads((command_line.folder / "out.json").read_text())
    lean, close = result["runs"]
    chosen = result["recommendation"]
    # a calm machine tells them apart without one
    assert result["play_offs"] or (chosen["is_best"] and chosen["run"] == lean["id"])
    for row in result["play_offs"]:
        assert row["problem"] is None and {row["one"], row["two"]} == {lean["id"], close["id"]}
        assert "In a play-off" in chosen["summary"] and "In a play-off" in " ".join(found.stdout.split())
        assert "Play-off: " in found.stderr
    # of what it does more, nobody may be told that it is faster
    assert not (chosen["is_best"] and chosen["run"] == close["id"])
    assert [run["label"] for run in result["runs"]] == ["lean", "close"]


def test_that_one_failing_configuration_does_not_stop_the_others(command_line: Any) -> None:
    script = command_line.script(model("print('a break')"))

    found = command_line.run("bench", script, *QUICK, "--fullgraph", "on", "--fullgraph", "off", "--json", "out.json")

    runs = json.loads((command_line.folder / "out.json").read_text())["runs"]
    assert found.returncode == 1
    assert [run["outcome"] for run in runs] == ["failed", "finished"]
    assert runs[0]["error"]["stage"] == "compile"
    assert runs[0]["error"]["hint"]
    assert len(runs[1]["graph_breaks"]) == 1


@pytest.mark.parametrize(
    ("forward", "top", "stage", "word"),
    [
        ("raise ValueError('the model is wrong')", "", "eager", "the model is wrong"),
        ("pass", "raise KeyError('at import')", "load", "at import"),
        ("sys.exit(4)", "", "eager", "ended itself with status 4"),
        ("pass", WANTS_ARGUMENTS, "load", "required: size"),
        ("pass", "import a_module_that_is_not_there", "load", "a_module_that_is_not_there"),
    ],
)
def test_that_a_script_at_fault_is_one_sentence_and_a_hint(
    command_line: Any, forward: str, top: str, stage: str, word: str
) -> None:
    status, error, out = error_of(command_line, command_line.script(model(forward, top)))

    assert status == 1
    assert (error["outcome"], error["stage"]) == ("failed", stage)
    assert word in error["message"]
    assert error["hint"]
    assert word in " ".join(out.split())


def test_that_a_segmentation_fault_is_told_with_the_last_lines(command_line: Any) -> None:
    script = command_line.script(model("print('just before'); ctypes.string_at(0)"))

    found = command_line.run("bench", script, *QUICK, "--json", "out.json")

    (run,) = json.loads((command_line.folder / "out.json").read_text())["runs"]
    assert found.returncode == 1
    assert run["outcome"] == "crashed"
    assert "SIGSEGV" in run["error"]["message"]
    assert "just before" in found.stderr


def test_that_a_hang_ends_with_its_time_limit(command_line: Any) -> None:
    script = command_line.script(model("print('waiting for ever'); sum(range(10**15))"))

    found = command_line.run("bench", script, *QUICK, "--timeout", "25", "--json", "out.json")

    (run,) = json.loads((command_line.folder / "out.json").read_text())["runs"]
    assert found.returncode == 1
    assert (run["outcome"], run["error"]["stage"]) == ("timed_out", "compile")
    assert "waiting for ever" in found.stderr


def test_that_a_flood_of_output_does_not_spoil_the_run(command_line: Any) -> None:
    script = command_line.script(model(top="for number in range(300_000): print('a line of a flood', number)"))

    found = command_line.run("bench", script, *QUICK)

    assert found.returncode == 0, found.stderr
    assert "a line of a flood" not in found.stdout + found.stderr


def test_that_doctor_describes_this_machine(command_line: Any) -> None:
    found = command_line.run("doctor")

    assert found.returncode == 0
    assert "Models can be compiled and measured here." in found.stdout


def test_that_doctor_says_that_torch_is_not_there(command_line: Any) -> None:
    bare = command_line.script('#!/bin/sh\nexec /usr/bin/env python3 -S -I "$@"\n', "python")
    bare.chmod(0o755)

    found = command_line.run("doctor", "--python", bare)

    assert found.returncode == 1
    assert "torch is not installed" in found.stdout
    assert "Nothing can be compiled" in found.stdout


def test_that_a_fault_that_the_worker_found_is_told_without_its_own_frames(command_line: Any) -> None:
    bare = command_line.script('#!/bin/sh\nexec /usr/bin/env python3 -S -I "$@"\n', "python")
    bare.chmod(0o755)

    found = command_line.run("bench", command_line.script(model()), "--python", bare)

    assert found.returncode == 1
    assert "torch is not installed" in found.stdout
    assert "Traceback" not in found.stdout + found.stderr


def test_that_folders_that_cannot_be_made_are_a_sentence(command_line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILESCOPE_HOME", "/proc/nowhere")

    found = command_line.run("bench", command_line.script(model()), *QUICK)
    advice = command_line.run("doctor")

    assert found.returncode == 1
    assert "could not be set up: No such file or directory (/proc/nowhere)" in " ".join(found.stdout.split())
    assert "set COMPILESCOPE_HOME to another place" in advice.stdout
    assert "Traceback" not in found.stderr + advice.stderr


def test_that_the_whole_log_is_written_where_asked_and_a_failure_shows_its_end(command_line: Any) -> None:
    script = command_line.script(model(top="print('first of all')\nraise ValueError('no such table')"))

    found = command_line.run("bench", script, *QUICK, "--log", "all.log")

    assert found.returncode == 1
    log = (command_line.folder / "all.log").read_text().splitlines()
    assert log[0] == "first of all" and log[-1] == "ValueError: no such table"
    assert "  | ValueError: no such table" in found.stderr.splitlines()
