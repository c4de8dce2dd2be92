"""What two runs share and in what they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from fakes.comparisons import run_events

from compilescope.domain import events as e
from compilescope.domain.config import Config
from compilescope.domain.difference import difference
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload


def run(config: Config, speedup: float = 1.5, script: str = "model.py", **options: Any) -> Run:
    result = Run("r" + config.label, config=config, workload=Workload(script=f"/somewhere/{script}"))
    return result.apply_all(run_events(config, speedup, script=script, **options))


def rows(found: Any, section: str) -> dict[str, tuple[str, str, str]]:
    return {row.name: (row.before, row.after, row.tone) for row in found.rows if row.section == section}


def test_that_options_breaks_and_timing_are_set_side_by_side() -> None:
    before = run(Config(mode="default"), breaks=3)
    after = run(Config(mode="reduce-overhead", dynamic=True), 1.9, breaks=1)

    found = difference(before, after)

    assert found.cautions == ()
    assert "The second is faster" in found.summary
    assert rows(found, "Options")["mode"] == ("default", "reduce-overhead", "")
    assert rows(found, "Options")["dynamic"] == ("auto", "on", "")
    breaks = rows(found, "Graph breaks")
    assert [change for change in breaks.values() if change == ("1×", "none", "good")] and len(breaks) == 3
    assert rows(found, "Timing")["Speedup"][2] == "good"
    assert rows(found, "Checks")["CUDA graphs"] == ("not asked for", "1 recorded", "")
    assert rows(found, "Compiler")["Graph breaks"] == ("3", "1", "good")
    assert any(name.startswith("Dynamo") for name in rows(found, "Compiler"))


def test_that_a_difference_within_the_noise_floor_is_no_gain() -> None:
    before, after = run(Config(), 1.5), run(Config(mode="reduce-overhead"), 1.9)

    found = difference(before, after, noise_floor=0.5)

    assert found.summary.startswith("No provable difference in speed")
    assert rows(found, "Timing")["Speedup"][2] == ""


def test_that_runs_are_told_apart_by_their_ratio_although_their_intervals_overlap(make_run: Callable[..., Run]) -> None:
    before, after = make_run("a", interval=(1.50, 1.45, 1.55)), make_run("b", interval=(1.58, 1.54, 1.62))

    found = difference(before, after)

    assert found.summary.startswith("The second is faster: 1.580× ± 0.040 against eager, 1.500× ± 0.050 for the first")
    assert found.summary.endswith("that is 1.053× ± 0.044 between them.")
    assert rows(found, "Timing")["Speedup"][2] == "good"


def test_that_a_first_call_with_the_users_own_cache_stands_beside_no_cold_one(make_run: Callable[..., Run]) -> None:
    found = rows(difference(make_run("fresh"), make_run("own", cache_was_empty=None)), "Timing")

    assert found["First call, cold"][:2] == ("8.00 s", "–")
    assert found["First call, your own cache"][:2] == ("–", "8.00 s")
    assert found["Break-even, calls"][1] == "–"


def test_that_a_gain_within_the_noise_floor_has_no_break_even(make_run: Callable[..., Run]) -> None:
    one = make_run("a", interval=(1.03, 1.02, 1.04))

    assert rows(difference(one, one, noise_floor=0.04), "Timing")["Break-even, calls"][:2] == ("–", "–")


def test_that_equal_runs_differ_in_nothing_and_no_speed_is_claimed() -> None:
    found = difference(run(Config()), run(Config()))

    assert not [row for row in found.rows if row.is_changed]
    assert found.summary.startswith("No provable difference in speed")


def test_that_another_torch_size_or_script_is_a_caution() -> None:
    def changed(event: e.Event) -> e.Event:
        if isinstance(event, e.Environment):
            return dataclasses.replace(event, torch="2.9.0")
        if isinstance(event, e.WorkloadReady):
            return dataclasses.replace(event, inputs=(e.Input(name="tokens", shape=(8, 4), dtype="float32"),))
        return event

    before = run(Config())
    after = Run("after", config=Config(), workload=Workload(script="other.py", precision="bf16"))
    after.apply_all(changed(event) for event in run_events(Config(), 1.5))

    cautions = " ".join(difference(before, after).cautions)

    assert "Different scripts: model.py and other.py." in cautions
    assert "torch differs: 2.11.0+cu130 and 2.9.0." in cautions
    assert "The precision differs: fp32 and bf16." in cautions
    assert "tokens 8×4 float32" in cautions


def test_that_an_edited_script_is_a_caution() -> None:
    found = difference(run(Config()), run(Config()), sources=("x = 1", "x = 2"))

    assert found.cautions == ("model.py was edited between the two runs.",)


def test_that_a_run_that_failed_has_no_speed_to_compare() -> None:
    found = difference(run(Config()), run(Config(fullgraph=True), 0.0))

    assert found.summary == "No speed to compare: default · fullgraph was not measured to the end."
    assert rows(found, "Checks")["Outcome"] == ("finished", "failed", "")
