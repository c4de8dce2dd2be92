"""The words of the command line, through `main`, without a worker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.cli import main
from compilescope.cli.arguments import COMMANDS, cards, choices, measurement, parse, rows

MODEL = "from torch import nn\nclass Model(nn.Module): pass\ndef get_inputs(): return []\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_that_the_product_of_repeated_options_is_compared() -> None:
    arguments = parse(
        ["bench", "m.py", "--mode", "default", "--mode", "reduce-overhead", "--dynamic", "auto", "--dynamic", "on"]
    )

    labels = [config.label for config in choices(arguments).product()]

    assert labels == ["default", "default · dynamic", "reduce-overhead", "reduce-overhead · dynamic"]


def test_that_without_options_there_is_one_configuration() -> None:
    (config,) = choices(parse(["bench", "m.py"])).product()

    assert (config.backend, config.mode, config.dynamic, config.fullgraph) == ("inductor", "default", None, False)


def test_that_options_have_the_types_they_look_like() -> None:
    arguments = parse(
        ["bench", "m.py", "--option", "max_autotune=True", "--option", "a=3", "--option", "b=0.5", "--option", "c=x=y"]
    )

    (config,) = choices(arguments).product()

    assert config.mode is None
    assert config.options == {"max_autotune": True, "a": 3, "b": 0.5, "c": "x=y"}


def test_that_the_workload_is_read() -> None:
    words = ["--entry", "net", "--phase", "training", "--precision", "bf16", "--device", "cuda:1", "--train-mode"]
    words += ["--inputs", "x=8,128;16,128", "--inputs", "mask=8", "--arg", "--epochs"]
    words += ["--grad-mode", "no_grad", "--threads", "4"]

    (row,) = rows(parse(["bench", "m.py", *words]), "m.py")
    found = row.workload

    assert (found.entry, found.phase, found.precision, found.device) == ("net", "training", "bf16", "cuda:1")
    assert found.inputs == {"x": ((8, 128), (16, 128)), "mask": ((8,),)}
    assert found.arguments == ("--epochs",)
    assert (found.grad_mode, found.threads) == ("no_grad", 4)


def test_that_phases_and_precisions_join_the_product() -> None:
    words = ["--mode", "default", "--mode", "max-autotune", "--precision", "fp32", "--precision", "bf16"]
    words += ["--phase", "training", "--phase", "inference", "--phase", "training", "--train-mode"]

    found = rows(parse(["bench", "m.py", *words]), "m.py")

    assert len(found) == 8
    assert [row.label for row in found[:3]] == [
        "default (training, fp32)",
        "max-autotune (training, fp32)",
        "default (training, bf16)",
    ]
    assert {row.workload.phase: row.workload.train_mode for row in found} == {"training": False, "inference": True}


def test_that_several_cards_share_the_runs() -> None:
    arguments = parse(["bench", "m.py", "--device", "cuda:0,cuda:2"])

    assert cards(arguments) == ("cuda:0", "cuda:2")
    assert rows(arguments, "m.py")[0].workload.device == "cuda"
    assert cards(parse(["bench", "m.py", "--device", "cuda:1"])) == ()


def test_that_the_measurement_is_read() -> None:
    found = measurement(parse(["bench", "m.py", "--budget", "3", "--l2-flush"]))

    assert (found.budget_s, found.l2_flush, found.queued) == (3.0, True, None)


@pytest.mark.parametrize(("word", "queued"), [("on", True), ("off", False)])
def test_that_the_queue_is_read(word: str, queued: bool) -> None:
    assert measurement(parse(["bench", "m.py", "--queue", word])).queued is queued


def test_that_a_training_step_is_compiled_as_model_and_as_a_whole() -> None:
    words = ["--phase", "training", "--scope", "model", "--scope", "step"]

    labels = [config.label for config in choices(parse(["bench", "m.py", *words])).product()]

    assert labels == ["default", "default · whole step"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bench"], "arguments are required: SCRIPT"),
        (["bench", "no such.py"], "There is no file no such.py."),
        (["bench", "SCRIPT", "--mode", "reduce-overhaed"], "There is no mode reduce-overhaed."),
        (["bench", "SCRIPT", "--mode", "default", "--option", "a=1"], "exclude each other"),
        (["bench", "SCRIPT", "--option", "a"], "a is not like max_autotune=true"),
        (["bench", "SCRIPT", "--inputs", "x=8,y"], "x=8,y is not like x=8,128"),
        (["bench", "SCRIPT", "--inputs", "x"], "x is not like x=8,128"),
        (["bench", "SCRIPT", "--dynamic", "maybe"], "--dynamic: invalid choice: 'maybe'"),
        (["bench", "SCRIPT", "--budget", "0"], "0 is no time in seconds"),
        (["bench", "SCRIPT", "--scope", "step"], "--scope step compiles a training step; inference has none."),
        (["bench", "SCRIPT", "--device", "cuda:0,cpu"], "cuda:0,cpu is not like cuda:0,cuda:1"),
        (["bench", "SCRIPT", "--device", "gpu"], "'gpu' is no device like cpu, cuda or cuda:1"),
        (["bench", "SCRIPT", "--device", "mps"], "'mps' is no device like cpu, cuda or cuda:1"),
        (["report", ""], "The history has no comparison ''."),
        (["bench", "SCRIPT", "--threads", "0"], "0 is no number of threads"),
        (["bench", "SCRIPT", "--grad-mode", "grad"], "--grad-mode: invalid choice: 'grad'"),
        (["bench", "SCRIPT", "--timeout", "nan"], "nan is no time in seconds"),
        (["bench", "SCRIPT", "--python", "/no/python"], "there is no Python interpreter /no/python"),
        (["bench", "SCRIPT", "--json", "/no/such/folder/a.json"], "/no/such/folder/a.json cannot be written."),
        (["bench", "SCRIPT", "--pdf", "/no/such/folder/a.pdf"], "/no/such/folder/a.pdf cannot be written."),
        (["bench", "SCRIPT", "--markdown", "-"], "- is no file."),
        (["bench", "SCRIPT", "--log", "SCRIPT"], "which is read."),
        (["bench", "SCRIPT", "--json", "/tmp/no such.json", "--csv", "/tmp/no such.json"], "are the same file"),
        (["bench", "SCRIPT", "--page", "A5"], "--page: invalid choice: 'A5'"),
        (["bench", "SCRIPT", "--baseline", "no such.json"], "no such.json cannot be read: No such file or directory."),
        (["bench", "SCRIPT", "--strict"], "--strict is about a baseline, and none is given."),
        (["report"], "arguments are required: COMPARISON"),
        (["history", "extra"], "nrecognized arguments: extra"),
        (["bench", "SCRIPT", "--jso", "a"], "nrecognized arguments: --jso a"),
        (["doctor", "extra"], "nrecognized arguments: extra"),
        (["no such.py"], "There is no file no such.py."),
        (["--what"], "nrecognized arguments: --what"),
    ],
)
def test_that_bad_usage_is_one_sentence_and_a_hint(
    words: list[str], sentence: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([str(script) if word == "SCRIPT" else word for word in words])

    out, err = capsys.readouterr()
    first, hint = err.splitlines()
    assert status == 2
    assert sentence in first
    assert first.endswith(".")
    assert hint.strip()
    assert out == ""


@pytest.mark.parametrize(
    ("source", "sentence"),
    [("def f(:\n", "no valid Python"), ("", "is empty"), ("x = 1\n", "offers no model"), ("\0", "binary data")],
)
def test_that_a_script_that_cannot_be_used_is_refused_before_anything_runs(
    source: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "script.py"
    path.write_text(source)

    assert main(["bench", str(path)]) == 2
    assert sentence in capsys.readouterr().err


def test_that_no_display_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")

    assert main([]) == 1
    assert "There is no display here" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS), ["--version"]])
def test_that_help_is_there(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)

    assert left.value.code == 0
    assert "ompile" in capsys.readouterr().out


def test_that_bench_loads_neither_torch_nor_qt() -> None:
    code = "import sys, compilescope.cli.bench, compilescope.cli.doctor\n"
    code += "print([name for name in ('torch', 'PySide6', 'pyqtgraph') if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("backends", [["eager"], ["inductor", "aot_eager"]])
def test_that_options_of_a_backend_that_has_none_are_refused(
    backends: list[str], script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for backend in backends for word in ("--backend", backend)]

    assert main(["bench", str(script), *words, "--option", "nosuch=1"]) == 2
    assert f"--option is for the backend inductor; {backends[-1]} has no options." in capsys.readouterr().err


def test_that_the_readme_names_commands_and_options_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    headless = readme.partition("## Without a window")[2].partition("\n## ")[0]
    offered = {}
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        offered[command] = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))

    assert set(re.findall(r"^compilescope (\w+)", headless, re.MULTILINE)) == set(COMMANDS)
    for command, words in re.findall(r"^compilescope (\w+)(.*)", headless, re.MULTILINE):
        assert set(re.findall(r"--[a-z][a-z-]*", words)) <= offered[command]
    assert set(re.findall(r"--[a-z][a-z-]*", headless)) <= set().union(*offered.values())
