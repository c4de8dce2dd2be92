"""What people really have: scripts after public reports, each with the graphs, breaks and recompiles it must show, and
where it matters the verdict on its results, how often a call enters compiled code, and what the hint must say.

The counts are torch 2.13's on a CPU. Where the backend changes nothing of them, a faster one than Inductor is taken.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.agreement import WORST_FIRST
from compilescope.domain.config import Config
from compilescope.domain.run import ProcessStory, Run
from compilescope.domain.workload import Workload

if TYPE_CHECKING:
    from conftest import Worker

CASES = Path(__file__).parents[1] / "cases"
EXPECTED: list[dict[str, Any]] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))
WORKLOAD_OPTIONS = ("phase", "train_mode")
HANGS = "hangs"

pytestmark = pytest.mark.slow


def label(case: dict[str, Any]) -> str:
    return " ".join([case["folder"], case.get("name", "")]).strip()


def options(case: dict[str, Any], *, workload: bool) -> dict[str, Any]:
    return {key: value for key, value in case.get("options", {}).items() if (key in WORKLOAD_OPTIONS) == workload}


def error_type(case: dict[str, Any]) -> str | None:
    return case.get("error", {}).get("type")


class Pool:
    """Runs the chosen cases two at a time, with one compiler cache: what was built once need not be built again."""

    def __init__(self, cases: list[dict[str, Any]]) -> None:
        self._cases = cases
        self._threads = ThreadPoolExecutor(max_workers=2)
        self._folder = tempfile.TemporaryDirectory(prefix="compilescope-cases-", ignore_cleanup_errors=True)
        self._futures: dict[str, Future[list[e.Event]]] = {}

    def events(self, case: dict[str, Any], worker: Worker) -> list[e.Event]:
        for each in self._cases:
            if label(each) not in self._futures:
                self._futures[label(each)] = self._threads.submit(self._run, each, worker)
        return self._futures[label(case)].result()

    def _run(self, case: dict[str, Any], worker: Worker) -> list[e.Event]:
        try:
            return worker.run(
                CASES / case["folder"] / "script.py",
                Config(**options(case, workload=False)),
                budget=0.1,
                cache=self._folder.name,
                timeout=30 if error_type(case) == HANGS else 300,
                environment={"OMP_NUM_THREADS": "1"},
                **options(case, workload=True),
            ).events
        except subprocess.TimeoutExpired as late:
            assert error_type(case) == HANGS
            return [event for line in (late.output or b"").splitlines() if (event := e.decode(line))]

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._folder.cleanup()


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    chosen = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    pool = Pool([case for case in EXPECTED if case in chosen])
    yield pool
    pool.close()


def fold(case: dict[str, Any], events: list[e.Event]) -> ProcessStory:
    run = Run("case", config=Config(), workload=Workload(script=case["folder"]))
    run.apply_all(events)
    assert run.story is not None
    return run.story


def breaks(story: ProcessStory, script: Path) -> list[list[Any]]:
    rows = [row.event for row in story.graph_breaks.values()]
    return sorted([row.line, row.id] for row in rows if row.file and Path(row.file) == script)


def recompiles(story: ProcessStory) -> list[list[Any]]:
    events = [event for row in story.recompiles.values() for event in row.events]
    return [[event.source, event.dimension, event.expected] for event in sorted(events, key=lambda event: event.at)]


def worst_verdict(story: ProcessStory, case: dict[str, Any]) -> str | None:
    backend = case.get("options", {}).get("backend", "inductor")
    found = {row.verdict for row in story.numerics if row.backend == backend}
    return next((verdict for verdict in WORST_FIRST if verdict in found), None)


@pytest.mark.parametrize("case", EXPECTED, ids=label)
def test_that_a_case_shows_its_graphs_breaks_and_recompiles(case: dict[str, Any], pool: Pool, worker: Worker) -> None:
    story = fold(case, pool.events(case, worker))
    error = story.failure.error if story.failure else None
    script = CASES / case["folder"] / "script.py"
    seen = {
        "graphs": story.graphs,
        "ops": story.ops,
        "breaks": breaks(story, script),
        "elsewhere": len(story.graph_breaks) - len(breaks(story, script)),
        "skipped_frames": [row.event.line for row in story.graph_breaks.values() if row.event.frame_skipped],
        "recompiles": recompiles(story),
        "limits": [row.function for row in story.recompile_limits],
        "error": error and {"type": error.type.rsplit(".", 1)[-1], "stage": error.stage, "line": error.line},
    }

    if error_type(case) == HANGS:
        assert error is None
        assert [stage.name for stage in story.stages if stage.duration_s is None] == [case["error"]["stage"]]
        assert story.graphs == 0
        return
    assert not [warning.message for warning in story.warnings if warning.code == "capture"]
    assert seen == {
        "graphs": case["graphs"],
        "ops": case["ops"],
        "breaks": sorted(case["breaks"]),
        "elsewhere": 0,
        "skipped_frames": case.get("skipped_frames", []),
        "recompiles": case.get("recompiles", []),
        "limits": ["forward"] if case.get("limit") else [],
        "error": case.get("error"),
    }
    assert case.get("hint", "") in (error.hint if error else "")
    if "numerics" in case:
        assert worst_verdict(story, case) == case["numerics"]
    if "entries" in case:
        assert story.entries_per_call == case["entries"]
    assert {row.code for row in story.warnings} >= set(case.get("warnings", []))
