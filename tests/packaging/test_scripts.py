"""The two commands, with a virtual environment that only pretends: what they start, install and keep."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("packaging/setup.sh", "packaging/run", "packaging/test", ".ci/run")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the scripts are for bash")

PYTHON = """\
#!/usr/bin/env bash
case "$*" in
    "-m pip"*)
        echo "$*" >> "$PRETENDED/pip"
        for word in "$@"; do [ ! -f "$word" ] || cat "$word" >> "$PRETENDED/pip"; done
        ;;
    --version) echo "Python 3.12.0" ;;
    -) cat > /dev/null; echo "${TORCH_THERE:-}" ;;
    *PySide6*) echo "$PRETENDED/PySide6" ;;
esac
"""
COMPILESCOPE = """\
#!/usr/bin/env bash
printf '%s\\n' "$@" > "$PRETENDED/started"
exit "${STATUS:-0}"
"""
# makes an environment out of the two above
NEW_PYTHON = """\
#!/usr/bin/env bash
case "$*" in
    *sys.executable*) echo "$0" ;;
    "-m venv"*) mkdir -p "${!#}/bin" && cp "$(dirname "$0")/../.venv-as-it-was/bin/"* "${!#}/bin" ;;
    --version) echo "Python 3.12.0" ;;
    -) cat > /dev/null ;;
    *base_prefix*) echo 0 ;;
esac
"""


class Checkout:
    """A folder that looks like a checkout whose `.venv` writes down what it is asked to do."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.pretended = folder / "pretended"
        home = folder / "home"
        for path in (self.pretended, home / ".local" / "share" / "fonts"):
            path.mkdir(parents=True)
        (home / ".local" / "share" / "fonts" / "any.ttf").touch()
        shutil.copytree(ROOT / "packaging", self.root / "packaging")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        self._program(".venv/bin/python", PYTHON)
        self._program(".venv/bin/compilescope", COMPILESCOPE)
        self.environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PRETENDED": str(self.pretended),
        }

    def _program(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def replace(self, name: str, text: str) -> None:
        self._program(name, text)

    def run(
        self, *arguments: str, script: str = "packaging/run", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(self.root / script), *arguments],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def installed(self) -> str:
        path = self.pretended / "pip"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def started(self) -> list[str]:
        return (self.pretended / "started").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_that_the_shell_can_read_the_script(script: str) -> None:
    assert subprocess.run(["bash", "-n", str(ROOT / script)], check=False).returncode == 0


@pytest.mark.parametrize("script", [name for name in SCRIPTS if not name.endswith(".sh")])
def test_that_the_script_may_be_executed(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_that_the_window_opens_with_an_example_where_there_is_a_display(checkout: Checkout) -> None:
    done = checkout.run(DISPLAY=":7")
    assert done.returncode == 0, done.stderr
    (script,) = checkout.started
    assert (ROOT / "resources" / "examples" / Path(script).name).is_file()


def test_that_without_a_display_the_example_is_compared_headless(checkout: Checkout) -> None:
    done = checkout.run()
    command, script, *options = checkout.started
    assert command == "bench"
    assert Path(script).parent == checkout.root / "resources" / "examples"
    assert options[options.index("--json") + 1].startswith(str(checkout.root / "results"))
    assert "No display here" in done.stderr
    assert str(checkout.root / "results") in done.stderr


def test_that_the_status_of_the_headless_comparison_is_passed_on(checkout: Checkout) -> None:
    assert checkout.run(STATUS="1").returncode == 1


def test_that_arguments_are_passed_on(checkout: Checkout) -> None:
    assert checkout.run("bench", "my model.py", STATUS="2").returncode == 2
    assert checkout.started == ["bench", "my model.py"]


def test_that_a_second_start_installs_nothing(checkout: Checkout) -> None:
    checkout.run("doctor")
    first = checkout.installed
    done = checkout.run("doctor")
    assert f"--editable {checkout.root}" in first
    assert checkout.installed == first
    assert done.stderr == ""


def test_that_a_changed_project_file_is_installed_again(checkout: Checkout) -> None:
    checkout.run("doctor")
    first = checkout.installed
    with (checkout.root / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write("# another\n")
    checkout.run("doctor")
    assert len(checkout.installed) > len(first)


def test_that_a_torch_that_is_there_is_kept(checkout: Checkout) -> None:
    done = checkout.run("doctor", TORCH_THERE="2.9.1+cu128")
    assert "torch==2.9.1+cu128" in checkout.installed
    assert "Keeping torch 2.9.1+cu128" in done.stderr


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has an NVIDIA GPU")
def test_that_without_a_gpu_a_cpu_build_is_named(checkout: Checkout) -> None:
    checkout.run("doctor")
    assert "torch==2.13.0" in checkout.installed


def test_that_a_failed_installation_is_tried_again(checkout: Checkout) -> None:
    checkout.replace(".venv/bin/python", PYTHON.replace("case", "case \"$*\" in '-m pip'*) exit 1 ;; esac\ncase", 1))
    done = checkout.run("doctor")
    assert done.returncode == 1
    assert "pip could not install" in done.stderr
    checkout.replace(".venv/bin/python", PYTHON)
    assert checkout.run("doctor").returncode == 0


def test_that_a_wrong_python_is_named_in_one_sentence(checkout: Checkout) -> None:
    (checkout.root / ".venv" / "bin" / "python").unlink()
    done = checkout.run("doctor", COMPILESCOPE_PYTHON="/bin/false")
    assert done.returncode == 1
    assert done.stderr == "COMPILESCOPE_PYTHON names /bin/false, which is no Python 3.10 or newer.\n"


def test_that_white_space_in_the_path_is_kept_out_of_the_environment(checkout: Checkout) -> None:
    spaced = checkout.root.with_name("a checkout")
    checkout.root.rename(spaced)
    checkout.root = spaced
    (spaced / ".venv").rename(spaced / ".venv-as-it-was")
    checkout.replace("bin/python3", NEW_PYTHON)
    done = checkout.run("doctor", PATH=f"{spaced / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    place = (spaced / ".venv").resolve()
    assert (place / "bin" / "compilescope").is_file()
    assert " " not in str(place)


def test_that_ci_runs_the_tests_and_passes_their_status(checkout: Checkout) -> None:
    checkout.replace("packaging/test", "#!/usr/bin/env bash\necho tested\nexit 3\n")
    shutil.copytree(ROOT / ".ci", checkout.root / ".ci")
    done = checkout.run(script=".ci/run")
    assert (done.returncode, done.stdout) == (3, "tested\n")
