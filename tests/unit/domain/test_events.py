"""Events as lines: whatever a line holds, reading it gives an event that fits its type, or nothing."""

from __future__ import annotations

import json

import pytest

from compilescope.domain import events as e

EXAMPLES = (
    e.Hello(start="warm", time=1.8e9, torch="2.13.0", capabilities=("trace",)),
    e.Environment(devices=({"id": "cpu", "name": "CPU"},), modes={"default": {}}, backends=("inductor",), threads=2),
    e.WorkloadReady(
        entries=(e.Entry(name="Model", kind="model class", line=3),),
        inputs=(e.Input(name="x", shape=(8, 128), dtype="float32"), e.Input(name="n", detail="int 3")),
    ),
    e.GraphBreak(
        file="model.py",
        line=12,
        id="GB0124",
        kind="Tensor.item",
        reason="Unsupported Tensor.item() call",
        hints=("keep it a tensor",),
        stack=(e.Place(file="model.py", line=12, function="forward"),),
        in_loop=False,
    ),
    e.Cache(cache="fx_graph", state="miss", components=e.TextSpan(file="trace.log", offset=10, length=20)),
    e.Samples(side="eager", block=4, seconds=(0.001, 0.002)),
    e.Autotune(operation="mm", choices=({"name": "triton_1", "seconds": 1e-5},), winner="triton_1"),
    e.Ended(outcome="failed", error=e.RunError(stage="eager", type="ValueError", message="bad", hint="look")),
)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_that_an_event_comes_back_from_its_line(event: e.Event):
    line = e.encode(event)

    assert "\n" not in line
    assert e.decode(line) == event


@pytest.mark.parametrize("cls", e.TYPES.values(), ids=lambda cls: cls.type)
def test_that_every_type_comes_back_with_its_defaults(cls: type[e.Event]):
    assert e.decode(e.encode(cls())) == cls()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plain log output",
        "null",
        "3",
        "[]",
        "{}",
        '{"type": "from_the_future", "at": 1}',
        '{"type": []}',
        '{"type": null}',
        '{"type": "phase", "at": "soon"}',
        '{"type": "phase", "at": true}',
        '{"type": "phase", "at": NaN}',
        '{"type": "phase", "at": 1e999}',
        '{"type": "phase", "name": 3}',
        '{"type": "samples", "seconds": "abc"}',
        '{"type": "samples", "seconds": [0.1, null]}',
        '{"type": "samples", "seconds": [0.1, true]}',
        '{"type": "samples", "seconds": [0.1, Infinity]}',
        '{"type": "samples", "block": 1.5}',
        '{"type": "graph_break", "stack": ["model.py"]}',
        '{"type": "graph_break", "stack": [{"line": 3}]}',
        '{"type": "ended", "error": "text"}',
        '{"type": "environment", "modes": []}',
        '{"type": "phase", "at": 1' + "0" * 400 + "}",
        "[" * 100_000,
        b"\xff\xfe\x00",
    ],
    ids=lambda line: repr(line[:30]),
)
def test_that_a_line_that_is_no_sound_event_is_none(line: str | bytes):
    assert e.decode(line) is None


def test_that_unknown_keys_are_skipped_and_null_is_an_absent_key():
    found = e.decode('{"type": "phase", "name": "inductor", "state": null, "colour": "red"}')

    assert found == e.Phase(name="inductor")


def test_that_a_number_without_a_meaning_in_json_is_left_out():
    line = e.encode(e.Numerics(max_abs_error=float("nan"), reference_ratio=float("inf")))

    assert "NaN" not in line and "Infinity" not in line
    assert e.decode(line) == e.Numerics()


def test_that_text_in_any_script_survives():
    event = e.Warning(code="cache", message="Pfad „größer“ 路径 \u2028 \x00")

    assert e.decode(e.encode(event).encode()) == event


def test_that_lines_are_compact_json():
    value = json.loads(e.encode(e.Stage(name="load")))

    assert value == {"type": "stage", "at": 0.0, "name": "load", "state": "begin"}
