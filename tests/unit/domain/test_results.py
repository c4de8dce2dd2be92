"""The JSON of a comparison: by the schema, with null for what is not known."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes.comparisons import comparison
from fakes.profiles import on_gpu
from fakes.stories import recorded_run, transcript

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.figures import FIGURES
from compilescope.domain.playoff import PlayOff
from compilescope.domain.results import comparison_json, finite
from compilescope.domain.run import Run
from compilescope.domain.savedtraces import read_saved, saved_json
from compilescope.domain.statistics import Interval
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]

SCHEMA = Path(__file__).parents[3] / "resources" / "schema" / "comparison.schema.json"
STORY = (
    e.GraphBreak(id="GB0124", kind="item", reason="Tensor.item()", file="m.py", line=3, function="forward"),
    e.GraphBreak(id="GB0124", kind="item", reason="Tensor.item()", file="m.py", line=3, function="forward"),
    e.Recompile(guard="L['x'].size()[0] == 8", reason="size mismatch", file="m.py", line=2, function="forward"),
    e.RecompileLimit(limit=8),
    e.Phase(name="inductor", group="inductor", at=1.0),
    e.Phase(name="inductor", group="inductor", at=3.0, state="end"),
    e.Phase(name="open", at=3.5),
    e.Cache(cache="fx_graph", state="miss", reason="first"),
    e.Cache(cache="fx_graph", state="hit"),
    e.CudaGraph(state="skipped", reason="mutated inputs", file="m.py", line=4),
    e.Kernel(name="triton_0"),
    e.Memory(side="eager", rss_bytes=1000),
    e.Warning(code="cache", message="The cache folder is large.", hint="Clear it."),
    e.Warning(code="cache", message="The cache folder is large.", hint="Clear it."),
)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def results(*runs: Run) -> dict[str, Any]:
    return comparison_json(Comparison(id="c", created=1_795_953_600.0, runs=list(runs)))


def test_that_every_kind_of_run_fits_the_schema(validator: jsonschema.Draft202012Validator, make_run: RunMaker):
    error = e.RunError(stage="compile", type="ValueError", message="bad", traceback="Traceback …", file="m.py", line=3)
    runs = [
        make_run("full", extra=STORY),
        make_run("gpu", device="cuda:0", config=Config(mode="reduce-overhead", dynamic=True)),
        make_run("options", config=Config(options={"max_autotune": True}, fullgraph=True)),
        make_run("going", ended=None, starts=("cold",)),
        make_run("failed", ended=e.Ended(outcome="failed", error=error)),
        make_run("crashed", blocks=0, ended=e.Ended(outcome="crashed", signal="SIGSEGV")),
        Run("new", config=Config(), workload=Workload(script="model.py")),
    ]

    value = results(*runs)

    validator.validate(value)
    json.dumps(value, allow_nan=False)


def of_kind(kind: str, make_run: RunMaker) -> dict[str, Any]:
    """A comparison as the window, the command line or a trace makes it, through the text of its file."""
    if kind == "full":
        value = comparison_json(comparison(samples=20))
    elif kind == "trace":
        value = saved_json(read_saved(transcript("graph_break_and_recompile")))
    elif kind == "sweep":
        more = [e.Samples(side=side, shape=1, block=0, seconds=(2e-3,) * 20) for side in ("eager", "compiled")]
        value = results(
            make_run("sweep", workload=Workload(script="m.py", inputs={"x": [(8, 16), (4, 16)]}), extra=more)
        )
    elif kind == "profiled":
        value = results(make_run(kind, device="cuda:0", extra=on_gpu()))
    elif kind == "training":
        training = Workload(script="m.py", phase="training", precision="bf16")
        value = results(make_run("training", workload=training), make_run("inference"))
    else:
        value = results(make_run(kind, ended=e.Ended(outcome=kind)))
    return dict(json.loads(json.dumps(value, allow_nan=False)))


@pytest.mark.parametrize(
    "kind", ["full", "trace", "sweep", "profiled", "training", "stopped", "timed_out", "crashed", "failed"]
)
def test_that_the_schema_describes_every_key_of_every_kind_of_comparison(
    kind: str, validator: jsonschema.Draft202012Validator, make_run: RunMaker
):
    value = of_kind(kind, make_run)

    validator.validate(value)
    assert sorted(undescribed(value, validator.schema, validator.schema)) == []


def test_that_the_published_schema_says_of_figures_what_their_table_says():
    published = SCHEMA.read_text(encoding="utf-8")
    maker = runpy.run_path(str(SCHEMA.parents[2] / "packaging" / "schema.py"))

    assert maker["text"](maker["with_figures"](json.loads(published))) == published
    run = json.loads(published)["$defs"]["run"]["properties"]
    for part in ("timing", "memory", "numerics", "break_even"):
        told = {path.removeprefix(f"{part}.") for path in (figure.path for figure in FIGURES)}
        assert set(run[part]["properties"]) - told <= {"process_speedups"}


def undescribed(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> Iterator[str]:
    """Keys of which the schema says nothing; what may hold any key says so by its type alone."""
    schema = resolved(schema, whole)
    if isinstance(value, list):
        for item in value:
            yield from undescribed(item, schema.get("items", {}), whole)
    elif isinstance(value, dict) and "properties" in schema:
        for key, item in value.items():
            if key not in schema["properties"]:
                yield key
            else:
                yield from undescribed(item, schema["properties"][key], whole)


def resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        found: Any = whole
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return resolved(found, whole)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return resolved(choices[0], whole) if choices else schema


def test_that_play_offs_fit_the_schema(validator: jsonschema.Draft202012Validator, make_run: RunMaker):
    played = PlayOff(one="a", two="b", ratio=Interval(value=1.03, low=1.02, high=1.04))
    failed = PlayOff(one="b", two="a", problem="it crashed")
    runs = [make_run(name) for name in "ab"]
    value = comparison_json(Comparison(id="c", created=0.0, runs=runs, play_offs=[played, failed]))

    validator.validate(value)
    assert list(undescribed(value, validator.schema, validator.schema)) == []
    assert [(row["ratio"] is None, row["problem"]) for row in value["play_offs"]] == [
        (False, None),
        (True, "it crashed"),
    ]


def test_that_an_empty_comparison_fits_the_schema(validator: jsonschema.Draft202012Validator):
    validator.validate(results())


def test_that_what_is_not_known_is_null():
    run = results(Run("new", config=Config(), workload=Workload(script="model.py")))["runs"][0]

    assert run["outcome"] is None and run["verdict"] is None and run["error"] is None
    assert {run["compile"][key] for key in ("cold_first_call_s", "graphs", "ops", "kernels")} == {None}
    assert run["timing"]["eager_ms"] is None and run["timing"]["speedup"] is None
    assert set(run["memory"].values()) == {None}
    assert run["cudagraphs"]["captured"] is None
    assert run["numerics"]["verdict"] == "not_checked"
    assert set(run["break_even"].values()) == {None}
    assert results()["recommendation"] is None


def test_that_the_story_is_in_the_json(make_run: RunMaker):
    run = results(make_run(extra=STORY))["runs"][0]

    assert [(row["id"], row["line"], row["count"]) for row in run["graph_breaks"]] == [("GB0124", 3, 2)]
    assert run["recompiles"][0]["count"] == 1
    assert run["cache"]["fx_graph"] == {"hits": 1, "misses": 1, "bypasses": 0, "reasons": ["first"]}
    assert run["cudagraphs"] == {
        "captured": False,
        "skips": [{"reason": "mutated inputs", "file": "m.py", "line": 4}],
    }
    assert run["compile"]["kernels"] == 1
    assert [(row["name"], row["start_s"], row["duration_s"]) for row in run["compile"]["phases"]] == [
        ("inductor", 1.0, 2.0),
        ("open", 3.5, None),
    ]
    assert len(run["warnings"]) == 1
    assert "recompile_limit" in [row["code"] for row in run["advice"]]


def test_that_what_was_autotuned_is_in_the_json_with_its_winner(validator: jsonschema.Draft202012Validator):
    found = results(recorded_run("mlp_max_autotune"))

    validator.validate(found)
    first, second = found["runs"][0]["autotunes"]
    assert (first["operation"], first["inputs"][0], first["winner"]) == ("addmm", "64x512", "triton_mm_17")
    assert first["choices"][0] == {"name": "triton_mm_17", "seconds": pytest.approx(28.7e-6, rel=0.01)}
    assert first["duration_s"] == pytest.approx(0.449, abs=1e-3)
    assert second["winner"] == "triton_mm_34"


def test_that_times_are_in_milliseconds_where_the_name_says_so(make_run: RunMaker):
    run = results(make_run(eager_s=3e-3, speedup=1.5))["runs"][0]

    assert run["timing"]["eager_ms"]["median"] == pytest.approx(3.0, rel=0.01)
    assert run["timing"]["compiled_ms"]["median"] == pytest.approx(2.0, rel=0.01)
    assert run["timing"]["speedup"]["confidence"] == 0.95
    assert run["compile"]["cold_first_call_s"] == 8.0


def test_that_a_first_call_with_the_users_own_cache_is_not_told_as_a_cold_one(
    make_run: RunMaker, validator: jsonschema.Draft202012Validator
):
    value = results(make_run(cache_was_empty=None, interval=(1.5, 1.49, 1.51)))
    run = value["runs"][0]

    validator.validate(value)
    assert run["compile"]["cold_first_call_s"] is None and run["compile"]["own_cache_first_call_s"] == 8.0
    assert run["break_even"]["cold_calls"] is None and run["break_even"]["warm_calls"] > 0
    assert results(make_run())["runs"][0]["compile"]["own_cache_first_call_s"] is None


def test_that_a_break_even_is_null_where_the_verdict_is_not_faster(
    make_run: RunMaker, validator: jsonschema.Draft202012Validator
):
    runs = [make_run("small", interval=(1.03, 1.02, 1.04)), make_run("none", interval=(1.5, 1.49, 1.51), graphs=0)]
    value = comparison_json(Comparison(id="c", created=0.0, runs=runs, noise_floor=0.04))

    validator.validate(value)
    assert [run["verdict"]["kind"] for run in value["runs"]] == ["no_difference", "not_compiled"]
    assert {even for run in value["runs"] for even in run["break_even"].values()} == {None}


@pytest.mark.parametrize("options", [{"interval": (1.09, 0.995, 1.19)}, {"blocks": 0}])
def test_that_what_is_not_known_to_be_alike_is_too_noisy_by_the_schema(
    make_run: RunMaker, validator: jsonschema.Draft202012Validator, options: dict[str, Any]
):
    value = results(make_run(**options))

    validator.validate(value)
    assert value["runs"][0]["verdict"]["kind"] == "too_noisy"


def test_that_entries_and_failed_compiles_are_in_the_json(
    make_run: RunMaker, validator: jsonschema.Draft202012Validator
):
    failed = e.Compile(compile_id="1/0", state="failed", file="model.py", line=3, function="head", reason="IndexError")
    value = results(make_run(extra=[e.Entered(calls=2, entries=3), failed]))

    validator.validate(value)
    found = value["runs"][0]["compile"]
    assert found["entries_per_call"] == 1.5
    assert found["failures"] == [{"function": "head", "file": "model.py", "line": 3, "reason": "IndexError"}]
    assert results(make_run())["runs"][0]["compile"]["entries_per_call"] is None


def test_that_the_words_given_to_the_script_are_in_the_json(make_run: RunMaker):
    value = results(make_run(workload=Workload(script="model.py", arguments=("small", "--fast"))))

    assert value["workload"]["arguments"] == ["small", "--fast"]


def test_that_a_run_tells_its_workload_only_where_it_differs(make_run: RunMaker):
    same, other = make_run("a"), make_run("b")
    other.apply(e.Hello(start="warm"))
    trained = Run("t", config=Config(), workload=Workload(script="model.py", phase="training"))

    value = results(same, other, trained)

    assert value["workload"]["inputs"] == [{"name": "x", "shape": [8, 16], "dtype": "float32"}]
    assert [run["workload"] is None for run in value["runs"]] == [True, True, False]
    assert value["runs"][2]["workload"]["phase"] == "training"


def test_that_the_instant_is_utc_and_the_recommendation_names_its_run(make_run: RunMaker):
    value = results(make_run("best", speedup=2.0))

    assert value["created"] == "2026-11-29T12:00:00Z"
    assert value["recommendation"]["run"] == "best"
    assert value["recommendation"]["config"] == value["runs"][0]["config"]


def test_that_numbers_that_json_lacks_become_null():
    assert finite({"a": float("nan"), "b": [float("inf"), 1.5], "c": ("x", None)}) == {
        "a": None,
        "b": [None, 1.5],
        "c": ["x", None],
    }


def test_that_a_warning_of_both_processes_is_told_once_although_its_figures_differ(make_run: RunMaker):
    loads = [
        e.Warning(code="busy_machine", message=f"The machine was busy: load {load} on 2 cores.") for load in (8.4, 3)
    ]
    other = e.Warning(code="cache", message="The cache folder is large.")

    (run,) = results(make_run("noisy", extra=(*loads, other)))["runs"]

    told = [row["message"] for row in run["warnings"] if row["code"] in ("busy_machine", "cache")]
    assert told == ["The machine was busy: load 8.4 on 2 cores.", "The cache folder is large."]


def test_that_a_fault_in_judging_or_advice_does_not_lose_what_was_measured(
    make_run: RunMaker, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("compilescope.domain.verdict._judge", fail)
    monkeypatch.setattr("compilescope.domain.comparison._recommend", fail)
    monkeypatch.setattr("compilescope.domain.advice.timing.RULES", (fail,))

    result = results(make_run("kept"))

    (run,) = result["runs"]
    assert run["timing"]["eager_ms"]["median"] > 0
    assert run["verdict"] is None
    told = [row["message"] for row in run["warnings"] if row["code"] == "internal"]
    assert [message.split(" is missing")[0] for message in told] == ["The verdict", "A piece of advice"]
    assert "CompileScope failed (KeyError" in result["recommendation"]["summary"]
