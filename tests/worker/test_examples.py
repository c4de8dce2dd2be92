"""The bundled examples through the command line: each shows what it says that it teaches.

The counts are torch 2.13's on a CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "resources" / "examples"
EXPECTED: dict[str, dict[str, Any]] = json.loads((ROOT / "tests" / "examples" / "expected.json").read_text("utf-8"))

pytestmark = pytest.mark.slow


class Benches:
    """`compilescope bench` over the examples that were asked for, two at a time."""

    def __init__(self, names: list[str], folder: Path) -> None:
        self._folder = folder
        self._threads = ThreadPoolExecutor(max_workers=2)
        self._futures: dict[str, Future[dict[str, Any]]] = {
            name: self._threads.submit(self._bench, name) for name in names
        }

    def result(self, name: str) -> dict[str, Any]:
        return self._futures[name].result()

    def _bench(self, name: str) -> dict[str, Any]:
        expected = EXPECTED[name]
        fullgraph = ["--fullgraph", "off", "--fullgraph", "on"] if "fullgraph_error" in expected else []
        options = ["--device", "cpu", "--budget", "1", *expected.get("options", []), *fullgraph]
        file = self._folder / f"{name}.json"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "compilescope",
                "bench",
                str(EXAMPLES / f"{name}.py"),
                *options,
                "--json",
                str(file),
            ],
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "app")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == (1 if fullgraph else 0), done.stdout + done.stderr
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return result

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def benches(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    own = [item for item in request.session.items if item.path == Path(__file__) and isinstance(item, pytest.Function)]
    names = [item.callspec.params["name"] for item in own if hasattr(item, "callspec")]
    benches = Benches(list(dict.fromkeys(names)), tmp_path_factory.mktemp("examples"))
    yield benches
    benches.close()


def test_that_every_example_is_expected_to_show_something() -> None:
    assert set(EXPECTED) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", EXPECTED)
def test_that_an_example_shows_what_it_teaches(name: str, benches: Benches) -> None:
    expected = EXPECTED[name]
    run = benches.result(name)["runs"][0]
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    breaks = [{"id": each["id"], "source": source[each["line"] - 1].strip()} for each in run["graph_breaks"]]
    assert run["outcome"] == "finished"
    assert run["compile"]["graphs"] == expected["graphs"]
    assert breaks == expected.get("graph_breaks", [])
    assert sum(each["count"] for each in run["recompiles"]) == expected.get("recompiles", 0)
    assert bool(run["recompile_limits"]) == expected.get("recompile_limit", False)
    assert run["verdict"]["kind"] == expected.get("verdict", run["verdict"]["kind"])
    assert run["verdict"]["kind"] not in ("failed", "incorrect")
    assert run["timing"]["eager_ms"]["median"] > 0


@pytest.mark.parametrize("name", [name for name in EXPECTED if "fullgraph_error" in EXPECTED[name]])
def test_that_fullgraph_makes_the_break_of_an_example_an_error(name: str, benches: Benches) -> None:
    run = benches.result(name)["runs"][1]
    assert run["config"]["fullgraph"] is True
    assert run["outcome"] == "failed"
    assert run["error"]["stage"] == "compile"
    assert run["error"]["type"] == EXPECTED[name]["fullgraph_error"]


@pytest.mark.parametrize("name", ["pointwise_fusion"])
def test_that_fusion_wins_by_a_wide_margin(name: str, benches: Benches) -> None:
    timing = benches.result(name)["runs"][0]["timing"]
    assert timing["compiled_ms"]["median"] < timing["eager_ms"]["median"] / 1.5
