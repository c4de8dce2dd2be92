"""What a comparison may say of several configurations: ties, what is open, the winner's curse, the same code."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection
from typing import Any

import pytest

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison, Recommendation, recommend
from compilescope.domain.config import Config
from compilescope.domain.playoff import PlayOff, outcome
from compilescope.domain.prose import headline, sentences, summary
from compilescope.domain.ranking import allowing_for, is_apart, pooled, relative
from compilescope.domain.rematch import next_pair
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.statistics import Interval, Pairs
from compilescope.domain.workload import Workload

RunMaker = Callable[..., Run]

MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def code(name: str) -> list[e.Event]:
    return [e.Text(kind="output_code", compile_id="0/0", digest=name)]


def said(*runs: Run) -> Recommendation:
    found = recommend(Comparison(id="c", created=0.0, runs=list(runs)))
    assert found is not None
    return found


def made(make_run: RunMaker, *intervals: tuple[float, float, float], **options: Any) -> list[Run]:
    return [
        make_run(mode, config=Config(mode=mode), interval=interval, **options)
        for mode, interval in zip(MODES, intervals, strict=False)
    ]


def test_that_a_tie_is_named_and_the_simpler_one_used(make_run: RunMaker):
    found = said(*made(make_run, (1.42, 1.40, 1.44), (1.43, 1.40, 1.46)))

    assert (found.run_id, [row.run_id for row in found.ties]) == ("default", ["reduce-overhead"])
    assert headline(found).startswith("Use default: 1.42") and headline(found).endswith(" against eager")
    assert "reduce-overhead measured 1.430× ± 0.030, which is not a provable gain." in sentences(found)


def test_that_several_ties_are_all_named(make_run: RunMaker):
    found = said(*made(make_run, (1.42, 1.37, 1.47), (1.43, 1.38, 1.48), (1.41, 1.36, 1.46)))

    text = "(1.430× ± 0.050) and max-autotune-no-cudagraphs (1.410× ± 0.050) cannot be told apart from it"
    assert text in summary(found) and "best of" not in summary(found)


def test_that_options_count_as_what_they_turn_on_when_the_simplest_is_sought(make_run: RunMaker):
    alike = (1.42, 1.40, 1.44)
    by_options = {"max_autotune": True, "epilogue_fusion": True}
    configs = (Config(options=by_options), Config(options={"epilogue_fusion": True}), Config(mode="reduce-overhead"))
    runs = [make_run(config.label, config=config, interval=alike) for config in configs]

    assert said(*runs).run_id == "epilogue_fusion=True"
    assert said(runs[0], runs[2]).run_id == "reduce-overhead"


def test_that_the_best_is_called_so_only_where_it_is_apart_from_all_others(make_run: RunMaker):
    apart = made(make_run, (1.2, 1.18, 1.22), (1.1, 1.08, 1.12), (1.8, 1.77, 1.83))

    found = said(*apart)

    assert found.is_best and "against eager, the best of 3" in headline(found)


def test_that_nothing_is_the_best_while_another_is_too_noisy_to_tell(make_run: RunMaker):
    # as four configurations of one encoder came out
    measured = ((1.03, 0.92, 1.15), (1.03, 1.00, 1.06), (1.09, 1.075, 1.105), (1.02, 0.99, 1.05))

    found = said(*made(make_run, *measured))

    assert found.run_id == "max-autotune-no-cudagraphs" and not found.is_best
    assert "default" in [row.run_id for row in found.undecided]
    assert "best of" not in summary(found) and "Still open: default (1.03× ± 0.11)" in summary(found)


def test_that_what_was_not_timed_leaves_the_best_open(make_run: RunMaker):
    found = said(make_run("a", interval=(1.5, 1.48, 1.52)), make_run("b", blocks=0, config=Config(dynamic=True)))

    assert not found.is_best and [row.run_id for row in found.undecided] == ["b"]


def test_that_the_luckiest_of_several_is_not_called_faster_for_that(make_run: RunMaker):
    alone = said(*made(make_run, (1.03, 1.01, 1.05)))
    of_four = said(*made(make_run, (1.03, 1.01, 1.05), *[(1.0, 0.98, 1.02)] * 3))

    assert alone.kind == "use" and of_four.kind == "no_answer"
    assert "default measured 1.030× ± 0.020, but one of 4 may do so by chance." in summary(of_four)


def test_that_the_interval_of_the_chosen_one_allows_for_the_choice(make_run: RunMaker):
    found = said(*made(make_run, (1.8, 1.75, 1.85), (1.2, 1.15, 1.25), (1.1, 1.05, 1.15)))

    assert found.speedup is not None and found.allowing is not None
    assert found.allowing.low < found.speedup.low and found.allowing.confidence == pytest.approx(1 - 0.05 / 3)
    assert "Allowing for the choice among 3, its speedup lies between" in summary(found)
    assert "Allowing" not in summary(said(*made(make_run, (1.8, 1.75, 1.85))))


def test_that_more_intervals_at_once_must_be_wider():
    one = Interval(value=1.5, low=1.4, high=1.6)
    widths = [allowing_for(one, count).half_width for count in (1, 2, 4, 8)]

    assert allowing_for(one, 1) == one and widths == sorted(set(widths))


def test_that_measurements_of_one_thing_say_more_together_unless_they_contradict_each_other():
    one, two, far = (Interval(value=v, low=v - 0.02, high=v + 0.02) for v in (1.10, 1.11, 1.40))

    assert pooled([one, two]).half_width < one.half_width
    assert pooled([one, far]).half_width > one.half_width


def test_that_runs_of_the_same_code_are_one_entry(make_run: RunMaker):
    measured = ((1.03, 0.92, 1.15), (1.042, 1.024, 1.060), (1.3, 1.28, 1.32))
    runs = made(make_run, *measured[:2], extra=code("a"))
    runs.append(make_run("tuned", config=Config(mode="max-autotune"), interval=measured[2], extra=code("b")))

    small, large = said(*runs[:2]), said(*runs)

    assert (small.run_id, small.count) == ("default", 1)
    assert "It runs the same generated code as reduce-overhead; together they come to 1.042× ±" in summary(small)
    assert (large.run_id, large.is_best) == ("tuned", True)
    assert "the best of 2 that run different code" in headline(large)


def test_that_the_json_holds_the_choice_as_data(make_run: RunMaker):
    runs = made(make_run, (1.42, 1.40, 1.44), (1.43, 1.40, 1.46), extra=code("a"))
    value = comparison_json(Comparison(id="c", created=0.0, runs=runs))

    told = value["recommendation"]
    assert (told["kind"], told["count"], told["is_best"], told["ties"]) == ("use", 1, False, [])
    assert [row["label"] for row in told["same_code"]] == ["reduce-overhead"]
    assert len({run["compile"]["code"] for run in value["runs"]}) == 1


def comparisons(
    make_run: RunMaker, noisy_process: Callable[..., Pairs], extra: list[e.Event], seed: int, ratio: float
) -> list[Run]:
    """Three configurations of one code, each measured in two processes of its own."""
    rng = random.Random(seed)
    runs = []
    for mode in MODES[:3]:
        run = make_run(mode, config=Config(mode=mode), extra=extra, blocks=0, ended=None)
        for process in run.processes:
            pairs = noisy_process(rng, ratio=ratio, blocks=30, differential=0.004)
            for side, seconds in (("eager", pairs.eager), ("compiled", pairs.compiled)):
                process.apply(e.Samples(side=side, block=0, clock="wall", seconds=tuple(seconds)))
        run.apply(e.Ended(outcome="finished"))
        runs.append(run)
    return runs


@pytest.mark.parametrize("ratio", [1.0, 1.04, 1.5])
def test_that_of_50_comparisons_of_the_same_code_none_is_ranked_above_another(
    make_run: RunMaker, noisy_process: Callable[..., Pairs], ratio: float
):
    answers = [said(*comparisons(make_run, noisy_process, code("a"), seed, ratio)) for seed in range(50)]

    assert {found.run_id for found in answers} <= {"default", None}
    assert not any(found.is_best or "best of" in summary(found) for found in answers)
    assert all(found.count == 1 and not found.undecided and not found.ties for found in answers)


@pytest.mark.parametrize("ratio", [1.0, 1.04, 1.5])
def test_that_of_50_comparisons_whose_code_is_not_known_hardly_any_is_ranked(
    make_run: RunMaker, noisy_process: Callable[..., Pairs], ratio: float
):
    answers = [said(*comparisons(make_run, noisy_process, [], seed, ratio)) for seed in range(50)]

    # at most 5 in 100, and a little luck
    assert sum(found.is_best for found in answers) <= 3
    if ratio == 1.0:
        assert sum(found.kind == "use" for found in answers) <= 3


def test_that_a_pair_is_apart_more_seldom_among_many():
    one, two = Interval(value=1.2, low=1.18, high=1.22), Interval(value=1.15, low=1.13, high=1.17)

    assert is_apart(one, two, 0.005) and not is_apart(one, two, 0.005, comparisons=6)
    assert relative(one, two).value == pytest.approx(1.2 / 1.15)


def played(one: str, two: str, value: float, half: float = 0.005, **options: Any) -> PlayOff:
    ratio = Interval(value=value, low=value - half, high=value + half)
    return PlayOff(one=one, two=two, ratio=ratio, **options)


def after(runs: list[Run], *play_offs: PlayOff) -> Recommendation:
    found = recommend(Comparison(id="c", created=0.0, runs=runs, play_offs=list(play_offs)))
    assert found is not None
    return found


TIED = ((1.42, 1.38, 1.46), (1.43, 1.38, 1.48))


def test_that_a_play_off_tells_apart_what_two_runs_could_not(make_run: RunMaker):
    runs = made(make_run, *TIED)

    found = after(runs, played("reduce-overhead", "default", 1.03))

    assert said(*runs).run_id == "default"
    assert (found.run_id, found.is_best, found.ties) == ("reduce-overhead", True, ())
    assert "In a play-off reduce-overhead took 0.971 of default's time (0.966 to 0.976)." in sentences(found)


def test_that_a_play_off_is_the_same_seen_from_the_other_side(make_run: RunMaker):
    found = after(made(make_run, *TIED), played("default", "reduce-overhead", 1 / 1.03))

    assert (found.run_id, found.is_best) == ("reduce-overhead", True)


def test_that_two_that_tie_in_a_play_off_are_still_a_tie(make_run: RunMaker):
    found = after(made(make_run, *TIED), played("reduce-overhead", "default", 1.002))

    assert (found.run_id, [row.label for row in found.ties]) == ("default", ["reduce-overhead"])
    assert "In a play-off reduce-overhead took 0.998 of default's time (0.993 to 1.003)." in summary(found)


def test_that_a_play_off_counts_against_the_speedups_that_contradict_it(make_run: RunMaker):
    # the simplest has the lower speedup, and wins all the same
    found = after(made(make_run, *TIED), played("default", "reduce-overhead", 1.04))

    assert (found.run_id, found.is_best, found.ties) == ("default", True, ())


def test_that_the_loser_of_a_play_off_is_out_also_where_others_tie(make_run: RunMaker):
    runs = made(make_run, *TIED, (1.41, 1.37, 1.45))

    found = after(runs, played("reduce-overhead", "default", 1.03))

    assert "default" not in [found.run_id, *(row.label for row in found.ties)]
    assert not found.is_best and found.ties


def test_that_play_offs_in_a_circle_decide_nothing(make_run: RunMaker):
    runs = made(make_run, *TIED, (1.41, 1.37, 1.45))
    circle = (MODES[0], MODES[1]), (MODES[1], MODES[2]), (MODES[2], MODES[0])

    found = after(runs, *(played(one, two, 1.03) for one, two in circle))

    assert found.run_id == "default" and len(found.ties) == 2


def test_that_a_play_off_that_came_to_nothing_changes_nothing_and_is_told(make_run: RunMaker):
    runs = made(make_run, *TIED)

    found = after(runs, PlayOff(one="reduce-overhead", two="default", problem="The model is out of memory"))

    assert found.ties == said(*runs).ties
    text = "A play-off of reduce-overhead against default came to nothing: The model is out of memory."
    assert text in summary(found)


def pair(runs: list[Run], *play_offs: PlayOff, among: Collection[str] | None = None) -> tuple[str, str] | None:
    comparison = Comparison(id="c", created=0.0, runs=runs, play_offs=list(play_offs))
    found = next_pair(comparison, [run.id for run in runs] if among is None else among)
    return (found[0].id, found[1].id) if found else None


def test_that_the_strongest_of_those_that_tie_challenges_the_simplest(make_run: RunMaker):
    runs = made(make_run, (1.41, 1.37, 1.45), (1.42, 1.38, 1.46), (1.43, 1.38, 1.48), (1.2, 1.19, 1.21))

    assert pair(runs) == ("max-autotune-no-cudagraphs", "default")
    assert pair(runs[:2]) == ("reduce-overhead", "default")


def test_that_there_are_two_play_offs_at_most_and_one_to_two_runs(make_run: RunMaker):
    runs = made(make_run, *[(1.42, 1.38, 1.46)] * 4)
    first = played("reduce-overhead", "default", 1.001)
    failed = PlayOff(one="max-autotune-no-cudagraphs", two="default", problem="it crashed")

    assert pair(runs[:3]) and pair(runs[:3], first) is None
    assert pair(runs, first) == ("max-autotune-no-cudagraphs", "default")
    assert pair(runs, first, failed) is None


def test_that_two_that_have_met_do_not_meet_again(make_run: RunMaker):
    runs = made(make_run, *TIED) + made(make_run, (1.2, 1.19, 1.21), (1.1, 1.09, 1.11))

    assert pair(runs, played("default", "reduce-overhead", 1.001)) is None


@pytest.mark.parametrize(
    "intervals",
    [
        [(1.8, 1.78, 1.82), (1.42, 1.40, 1.44)],  # apart
        [(1.42, 1.41999, 1.42001), (1.42, 1.41999, 1.42001)],  # within the noise floor
        [(1.42, 1.38, 1.46), (1.03, 0.92, 1.15)],  # one is not shown to be faster than eager
        [(1.0, 0.99, 1.01), (1.0, 0.99, 1.01)],
    ],
)
def test_that_nothing_is_played_for_where_it_cannot_matter(
    make_run: RunMaker, intervals: list[tuple[float, float, float]]
):
    assert pair(made(make_run, *intervals)) is None


def test_that_runs_of_the_same_code_do_not_meet(make_run: RunMaker):
    assert pair(made(make_run, *TIED, extra=code("a"))) is None


def test_that_a_run_past_its_recompile_limit_or_of_another_day_does_not_play(make_run: RunMaker):
    runs = made(make_run, *TIED)

    assert pair(runs, among=["default"]) is None
    assert pair(made(make_run, *TIED, extra=[e.RecompileLimit(limit=8)])) is None


def test_that_runs_of_different_workloads_do_not_meet(make_run: RunMaker):
    training = Workload(script="model.py", phase="training")
    runs = [make_run("one", interval=TIED[0]), make_run("two", interval=TIED[1], workload=training)]

    assert pair(runs) is None


def test_that_a_stopped_play_off_counts_as_none_and_a_failed_one_says_why(make_run: RunMaker):
    one, two = made(make_run, *TIED)
    error = e.RunError(stage="load", type="ValueError", message="No such table.\nAnd more.")

    assert outcome(make_run("p", ended=e.Ended(outcome="stopped")), one, two) is None
    failed = outcome(make_run("p", ended=e.Ended(outcome="failed", error=error)), one, two)
    assert failed == PlayOff(one="default", two="reduce-overhead", problem="No such table")
    empty = outcome(make_run("p", blocks=0), one, two)
    assert empty is not None and empty.ratio is None and empty.problem
    found = outcome(make_run("p", interval=(1.1, 1.05, 1.15)), one, two)
    assert found == PlayOff(one="default", two="reduce-overhead", ratio=Interval(value=1.1, low=1.05, high=1.15))


@pytest.mark.parametrize(
    "value", [{}, [], {"one": "a"}, {"one": 1, "two": "b"}, {"one": "a", "two": "b", "ratio": {"value": -1.0}}]
)
def test_that_what_is_no_play_off_is_refused(value: Any):
    with pytest.raises((ValueError, TypeError)):
        PlayOff.from_json(value)


def test_that_a_play_off_survives_its_json():
    for row in (played("a", "b", 1.1), PlayOff(one="a", two="b", problem="it crashed")):
        assert PlayOff.from_json(json.loads(json.dumps(row.to_json()))) == row
