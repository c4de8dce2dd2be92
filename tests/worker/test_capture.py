"""Listening to the compiler: complete, cheap, and never in the way of what is compiled."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import types
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.trace import read_text, read_trace, translate
from compilescope.domain.workload import Job, Measurement, Workload

if TYPE_CHECKING:
    from conftest import Told, Worker

    from compilescope.worker.capture import Capture

TRACE = "torch.__trace"
START = {"dynamo_start": {"stack": []}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
BREAKING = '''"""Breaks once, and is called with two batch sizes."""
import itertools
import torch
from torch import nn

SIZES = itertools.cycle([4, 6])

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)

    def forward(self, x):
        x = torch.relu(self.one(x))
        if x.sum() > 0:
            x = x * 2
        return x + 1

def get_inputs():
    return [torch.randn(next(SIZES), 8)]
'''

LIBRARY = '''"""Breaks in a layer of torch's: in a loop, in a callee, and as the last call."""
import torch
from torch import nn
from torch.ao.quantization import quantize_dynamic

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        y = torch.relu(x)
        return self.lin(y)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.a = Block()
        self.b = nn.Linear(8, 8)

    def last(self, x):
        return self.b(x * 2)

    def forward(self, x):
        x = x + 1
        x = self.a(x)
        x = x + 1
        for block in self.blocks:
            x = block(x)
        x = x * 2
        return self.last(x)

def build_model():
    return quantize_dynamic(Net().eval(), {nn.Linear}, dtype=torch.qint8)

def get_inputs():
    return [torch.randn(4, 8)]
'''


@pytest.fixture
def told() -> list[e.Event]:
    return []


@pytest.fixture
def capture(told: list[e.Event], tmp_path: Path) -> Iterator[Capture]:
    from compilescope.worker.capture import Capture

    capture = Capture(told.append, lambda: 1.5, str(tmp_path / "trace.log"))
    capture.install()
    told.clear()
    yield capture
    capture.finish()


def say(metadata: dict[str, Any], payload: str | None = None) -> None:
    logging.getLogger(TRACE).debug("", extra={"metadata": metadata, "payload": payload})


@pytest.mark.usefixtures("capture")
def test_that_an_error_of_ours_becomes_one_warning_and_reaches_nobody(told: list[e.Event]) -> None:
    for _ in range(2):
        say({"dynamo_start": None, "frame_id": 0, "frame_compile_id": 0})

    assert [(event.type, getattr(event, "code", "")) for event in told] == [("warning", "capture")]


def test_that_recompile_limits_are_counted_unless_they_are_of_our_own_making(
    capture: Capture, told: list[e.Event]
) -> None:
    def reach(line: int) -> None:
        logging.getLogger("torch._dynamo.convert_frame").warning(
            "torch._dynamo hit config.recompile_limit (8)\n   function: 'f' (/m.py:%d)\n   last reason: 0/7: n == 7",
            line,
        )

    reach(3)
    reach(3)
    capture.pause()
    reach(9)

    assert capture.limits_seen == len(told) == 1


def test_that_compiles_are_counted_for_those_who_must_notice_one(capture: Capture) -> None:
    for _ in range(2):
        say(START)

    assert capture.compiles_seen == 2


def test_that_what_compiles_during_a_pause_is_no_part_of_the_story(capture: Capture, told: list[e.Event]) -> None:
    capture.pause()
    say(START)
    capture.resume()

    assert (told, capture.compiles_seen) == ([], 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_that_a_forked_child_writes_and_tells_nothing(capture: Capture, told: list[e.Event], tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        say(START)
        os._exit(len(told))
    _, status = os.waitpid(child, 0)
    say(START)
    capture.finish()

    assert os.waitstatus_to_exitcode(status) == 0
    assert [record.kind for record in read_trace(tmp_path / "trace.log") if record.kind != "str"] == ["dynamo_start"]


@pytest.mark.usefixtures("capture")
def test_that_a_message_of_a_logger_and_its_parents_is_told_once(told: list[e.Event]) -> None:
    logger = logging.getLogger("torch._inductor.cudagraph_utils.__cudagraphs")

    logger.warning("skipping cudagraphs due to mutated inputs (1 instances)")

    assert [event.type for event in told] == ["cudagraph"]


def test_that_a_warning_about_cuda_graphs_is_told_and_still_shown(
    told: list[e.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    from compilescope.worker.capture import Capture

    shown: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: shown.append(str(message)))
    before = warnings.showwarning
    capture = Capture(told.append, lambda: 1.5)
    capture.install()
    texts = ["Unable to hit fast path of CUDAGraphs because outputs still require backward.", "something else"]
    for text in texts:
        warnings.showwarning(UserWarning(text), UserWarning, "cudagraph_trees.py", 3068)
    capture.finish()

    assert [(event.state, event.reason) for event in told if isinstance(event, e.CudaGraph)] == [
        ("warning", texts[0].rstrip("."))
    ]
    assert (len(told), shown) == (1, texts)
    assert warnings.showwarning is before


def leave_out(**graph: Any) -> None:
    """Inductor's own last step for a graph of a GPU, of which the rest is played."""
    from torch._inductor import output_code

    played = types.SimpleNamespace(
        device_types={"cuda"},
        fx_kwargs={"is_backward": False},
        disabled_cudagraphs_reason=None,
        current_callable=len,
        **graph,
    )
    cudagraphs = output_code.BoxedBool(True)
    output_code.cudagraph_partition_post_compile([], played, cudagraphs, {}, None)
    assert not cudagraphs


@pytest.mark.usefixtures("capture")
def test_that_a_graph_which_torch_leaves_out_in_silence_is_told_with_its_reason(
    told: list[e.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import output_code

    if not hasattr(output_code, "cudagraph_partition_post_compile"):
        pytest.skip("this torch knows no partitions, and tells every reason")
    monkeypatch.setattr(output_code, "cudagraph_partition_post_compile", output_code.cudagraph_partition_post_compile)
    region = {"name": "inductor_compile", "ts": 1.0, "args": {}, "ph": "B", "cat": "dynamo_timed", "tid": 0, "pid": 0}
    say({"chromium_event": {}, "frame_id": 0, "frame_compile_id": 0}, json.dumps(region))

    reasons = types.SimpleNamespace(cudagraph_fail_reasons=["non-Tensor inputs", "mutated inputs"])
    none = types.SimpleNamespace(cudagraph_fail_reasons=[])
    leave_out(cudagraph_info=reasons, partition_maps=[object()])
    leave_out(cudagraph_info=none, partition_maps=[])

    skips = [(event.state, event.reason) for event in told if isinstance(event, e.CudaGraph)]
    assert skips[0] == ("skipped", "non-Tensor inputs, mutated inputs")
    assert len(skips) == 2 and "no part of the graph" in (skips[1][1] or "")


def test_that_no_handler_is_left_behind(capture: Capture) -> None:
    names = (TRACE, "torch._inductor", "torch._dynamo.convert_frame")
    during = sum(len(logging.getLogger(name).handlers) for name in names)

    capture.finish()

    assert during - sum(len(logging.getLogger(name).handlers) for name in names) == len(names)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Told, Path]]:
    """A cold process with Inductor that wrote its trace."""
    folder = tmp_path_factory.mktemp("traced")
    script, trace, cache = folder / "model.py", folder / "trace.log", folder / "cache"
    script.write_text(BREAKING)
    from worker.conftest import collect, start

    job = Job(
        run=uuid.uuid4().hex,
        workload=Workload(script=str(script), device="cpu"),
        measurement=Measurement(budget_s=0.2),
        trace=str(trace),
    )
    yield collect(start(job, cache=str(cache))), trace


@pytest.mark.slow
def test_that_a_first_call_says_what_listening_took_of_it(traced: tuple[Told, Path]) -> None:
    (first,) = (event for event in traced[0].all(e.FirstCall) if event.side == "compiled")

    assert first.capture_s is not None
    assert 0 < first.capture_s < first.duration_s


@pytest.mark.slow
def test_that_the_written_trace_tells_the_same_story_as_the_live_one(traced: tuple[Told, Path]) -> None:
    told, trace = traced
    kinds = (e.Compile, e.GraphBreak, e.Recompile, e.Symbol, e.Cache, e.Kernel, e.Text)

    def bare(events: list[e.Event]) -> list[e.Event]:
        return [replace(event, at=0.0, thread=None) for event in events if isinstance(event, kinds)]

    # only a live run knows which frames belong to the program that compiles
    live = [replace(event, stack=()) if isinstance(event, e.GraphBreak) else event for event in bare(told.events)]
    read = [
        replace(event, stack=()) if isinstance(event, e.GraphBreak) else event for event in bare(list(translate(trace)))
    ]
    assert live == read
    assert {type(event) for event in live} == set(kinds)


@pytest.mark.slow
def test_that_every_payload_in_the_written_trace_keeps_its_checksum(traced: tuple[Told, Path]) -> None:
    checked = 0
    for record in read_trace(traced[1]):
        if expected := record.metadata.get("has_payload"):
            assert hashlib.md5(record.payload.encode()).hexdigest() == expected
            checked += 1

    assert checked > 50


@pytest.mark.slow
def test_that_texts_of_a_live_run_are_read_from_where_its_events_point(traced: tuple[Told, Path]) -> None:
    texts = {event.kind: read_text(event.file, event.offset, event.length) for event in traced[0].all(e.Text)}

    assert "def forward(self" in texts["dynamo_graph"]
    assert "async_compile" in texts["output_code"]
    assert texts["guards"].lstrip().startswith("TREE_GUARD_MANAGER")


@pytest.mark.slow
def test_that_a_live_run_tells_break_and_recompile_at_the_scripts_lines(traced: tuple[Told, Path]) -> None:
    told = traced[0]
    (recompile,) = (event for event in told.all(e.Recompile) if event.source == "x" and event.compile_id == "0/1")

    assert {(event.id, event.line, event.function, len(event.stack)) for event in told.all(e.GraphBreak)} == {
        ("GB0170", 15, "forward", 1)
    }
    assert (recompile.dimension, recompile.expected, recompile.actual) == (0, "4", "6")
    kernels = told.all(e.Kernel)
    assert any(event.places and event.places[0].line == 14 for event in kernels)
    assert {event.kind for event in kernels if event.places} == {"cpp", "extern"}
    assert [event.name for event in kernels if event.kind == "cpp" and not event.places] == []


def test_that_breaks_in_a_layer_of_torch_stand_at_the_callers_lines_live_and_in_the_written_trace(
    tmp_path: Path,
) -> None:
    script, trace = tmp_path / "model.py", tmp_path / "trace.log"
    script.write_text(LIBRARY)
    from worker.conftest import collect, start

    job = Job(
        run=uuid.uuid4().hex,
        config=Config(backend="eager"),
        workload=Workload(script=str(script), device="cpu"),
        measurement=Measurement(budget_s=0.2),
        trace=str(trace),
    )
    live = collect(start(job, cache=str(tmp_path / "cache"))).all(e.GraphBreak)
    lines = LIBRARY.splitlines()
    called = {
        (event.compile_id, lines[(event.line or 1) - 1].strip(), event.in_loop, event.frame_skipped) for event in live
    }

    assert called == {
        ("0/0", "x = self.a(x)", False, False),
        ("1/0", "return self.lin(y)", False, False),
        ("2/0", "return self.lin(y)", True, True),
        ("3/0", "return self.b(x * 2)", False, False),
    }
    assert {Path(event.stack[-1].file).name for event in live} == {"linear.py"}
    read = [event for event in translate(trace) if isinstance(event, e.GraphBreak)]
    assert {(event.compile_id, event.line) for event in read} == {(event.compile_id, event.line) for event in live}


STEPPED = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)

    def forward(self, x):
        return self.one(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_optimizer(parameters):
    return torch.optim.Adam(parameters)
"""


def test_that_a_whole_step_brings_breaks_along_that_are_not_the_scripts(worker: Worker) -> None:
    inputs = {"x": ((4, 8), (6, 8))}
    config = Config(backend="aot_eager", scope="step")
    told = worker.run(worker.script(STEPPED), config, budget=0.3, phase="training", inputs=inputs)

    assert told.status == 0, told.log
    breaks = told.all(e.GraphBreak)
    assert {event.origin for event in breaks} == {"worker", "torch"}
    assert {Path(event.file or "").name for event in breaks if event.origin == "worker"} == {"training.py"}
    assert {Path(event.file or "").parent.name for event in breaks if event.origin == "torch"} == {"optim"}
    own = [event for event in told.all(e.Recompile) if not event.origin]
    assert [(event.function, event.source, event.actual) for event in own] == [("forward", "x", "6")]
