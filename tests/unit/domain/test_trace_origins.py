"""Whose a break or a recompile is, where the program that compiles brings a training step along."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.story_json import story_json
from compilescope.domain.trace import Entrance, TraceRecord, TraceTranslator
from compilescope.domain.verdict import step_sentence, story_reasons
from compilescope.domain.workload import Workload

MODEL = "/home/user/model.py"
WORKER = "/opt/app/worker"
STEP = f"{WORKER}/training.py"
TORCH = "/usr/lib/python3.11/site-packages/torch"
OPTIMIZER = f"{TORCH}/optim/optimizer.py"
LINEAR = f"{TORCH}/nn/modules/linear.py"
OUTSIDE = ((f"{WORKER}/steps.py", 119, "<lambda>"),)
Frames = tuple[tuple[str, int, str], ...]


class Step:
    """Compiles of a training step's functions, one after the other."""

    def __init__(self, hidden: tuple[str, ...] = (WORKER,)) -> None:
        self.translator = TraceTranslator("trace.log", hidden=hidden)
        self.translator.entrance = Entrance(file=MODEL, line=7, arguments=("x",))
        self.events: list[e.Event] = []
        self.id = (0, 0)

    def record(self, metadata: dict[str, Any], payload: str = "") -> None:
        frame, count = self.id
        whole = {**metadata, "frame_id": frame, "frame_compile_id": count, "attempt": 0}
        self.events += self.translator.feed(TraceRecord(whole, text=payload, at=1.0, thread=7))

    def start(self, file: str = STEP, line: int = 37, function: str = "step") -> None:
        frames = (*OUTSIDE, (file, line, function))
        stack = [{"filename": name, "line": at, "name": called} for name, at, called in frames]
        self.record({"dynamo_start": {"stack": stack}})

    def end(self, operations: int = 4) -> None:
        self.record({"compilation_metrics": {"has_guarded_code": True, "graph_op_count": operations}})

    def breaks(self, *frames: tuple[str, int, str]) -> e.GraphBreak:
        """A compile that breaks there, and its break."""
        stack = "".join(f'  File "{file}", line {line}, in {name}\n    x\n' for file, line, name in (*OUTSIDE, *frames))
        text = (
            f"Graph break in user code at {frames[-1][0]}:{frames[-1][1]}\nGraph Break Reason: Unsupported thing\n"
            f"  Hint: Remove the call.\n\nUser code traceback:\n{stack}\n"
        )
        self.record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}}, text)
        self.end()
        (found,) = [event for event in self.events if isinstance(event, e.GraphBreak)]
        return found

    def recompiles(self, reason: str, file: str = STEP, *, operations: int = 4) -> e.Recompile:
        """A function that was compiled once and again for a reason."""
        self.start(file)
        self.end(operations)
        self.id = (0, 1)
        self.record({"artifact": {"name": "recompile_reasons", "encoding": "json"}}, json.dumps(reason))
        self.start(file)
        (found,) = [event for event in self.events if isinstance(event, e.Recompile)]
        return found


@pytest.mark.parametrize(
    ("frames", "origin", "place"),
    [
        (((STEP, 44, "step"),), "worker", (STEP, 44)),
        (((STEP, 46, "step"), (OPTIMIZER, 530, "wrapper"), (OPTIMIZER, 79, "_use_grad")), "worker", (STEP, 46)),
        (((STEP, 38, "step"), (STEP, 24, "forward"), (MODEL, 9, "forward")), "", (MODEL, 9)),
        (
            ((STEP, 38, "step"), (MODEL, 9, "forward"), (LINEAR, 134, "forward")),
            "",
            (MODEL, 9),
        ),
        # a model of torch's own
        (
            ((STEP, 38, "step"), (STEP, 24, "forward"), (LINEAR, 134, "forward")),
            "",
            (MODEL, 7),
        ),
    ],
)
def test_that_a_break_in_the_step_itself_is_not_the_scripts(
    frames: Frames, origin: str, place: tuple[str, int]
) -> None:
    step = Step()
    step.start()
    found = step.breaks(*frames)

    assert (found.origin, (found.file, found.line)) == (origin, place)


def test_that_a_break_in_torchs_optimizer_is_torchs() -> None:
    step = Step()
    step.start(OPTIMIZER, 509, "wrapper")
    found = step.breaks((OPTIMIZER, 79, "_use_grad"))

    assert (found.origin, found.line) == ("torch", 509)


def test_that_a_break_in_a_layer_that_is_compiled_by_itself_stays_the_scripts() -> None:
    step = Step()
    step.start(LINEAR, 130, "forward")

    assert step.breaks((LINEAR, 134, "forward")).origin == ""


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("0/0: tensor 'args[0]' size mismatch at index 0. expected 4, actual 6", ("", MODEL, "x")),
        ("0/0: tensor 'output' size mismatch at index 0. expected 4, actual 6", ("worker", STEP, "output")),
        ("0/0: self.n == 1  # self.n += 1  # user/model.py:9 in forward", ("", MODEL, "self.n")),
        ("0/0: scale == 2  # loss.backward()  # worker/training.py:44 in step", ("worker", STEP, "scale")),
        ("0/0: scale == 2  # loss.backward()  # pp/worker/training.py:44 in step", ("worker", STEP, "scale")),
    ],
)
def test_that_a_recompile_of_the_step_is_the_scripts_where_its_inputs_or_its_model_change(
    reason: str, expected: tuple[str, str, str]
) -> None:
    found = Step().recompiles(reason)

    assert (found.origin, found.file, found.source) == expected


def test_that_a_recompile_of_a_step_without_the_model_in_it_is_not_counted_as_the_scripts() -> None:
    reason = "0/0: tensor 'args[0]' size mismatch at index 0. expected 4, actual 6"

    assert Step().recompiles(reason, operations=0).origin == "worker"
    assert Step().recompiles(reason, f"{TORCH}/optim/adam.py").origin == "torch"
    assert Step(hidden=()).recompiles(reason, f"{TORCH}/optim/adam.py").origin == ""


def test_that_what_lies_in_the_step_is_counted_and_worded_apart() -> None:
    run = Run("run", config=Config(scope="step"), workload=Workload(script=MODEL))
    run.apply_all(
        [
            e.GraphBreak(file=STEP, line=44, kind="backward", origin="worker"),
            e.GraphBreak(file=OPTIMIZER, line=509, kind="graph_break()", origin="torch"),
            e.GraphBreak(file=MODEL, line=9, kind="print"),
            e.Recompile(file=STEP, line=46, source="output", origin="worker"),
        ]
    )
    story = run.story
    assert story is not None
    told = story_json(run)

    assert story_reasons(run)[0] == "1 graph break at model.py:9."
    assert step_sentence(story).startswith("2 graph breaks and 1 recompile lie in the training step around the model")
    assert step_sentence(story) in story_reasons(run)
    assert not story.recompiles
    assert [row["origin"] for row in told["graph_breaks"]] == ["", "worker", "torch"]
    assert [row["origin"] for row in told["recompiles"]] == ["worker"]
