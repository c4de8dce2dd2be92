"""Cache keys and ledger, on recorded traces."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fakes.stories import recorded_run

from compilescope.domain import events as e
from compilescope.domain.cachekeys import Component, differences, parse_components, summary
from compilescope.domain.cacheledger import empty_sentence, lookups, process_sentence, rebuilds, saved_s, sentences
from compilescope.domain.keyhistory import Sources, comparable, explain, words
from compilescope.domain.run import Run
from compilescope.domain.trace import read_text
from compilescope.report.blocks import Table
from compilescope.report.machinery import cache_blocks


def components(event: e.Cache) -> tuple[Component, ...]:
    assert event.components is not None
    return parse_components(read_text(event.components.file, event.components.offset, event.components.length))


def part(name: str, value: str) -> Component:
    return Component(digest=value, name=name, value=value)


@pytest.fixture(scope="module")
def plain() -> Run:
    return recorded_run("mlp_default", "mlp_default_warm")


def test_that_a_warm_start_has_the_key_of_the_cold_one(plain: Run) -> None:
    assert plain.cold and plain.warm
    cold = {event.cache: components(event) for event in plain.cold.cache}
    warm = {event.cache: components(event) for event in plain.warm.cache}

    assert {name: differences(cold[name], warm[name]) for name in cold} == {"aot_autograd": (), "fx_graph": ()}


def test_that_another_mode_differs_in_what_the_mode_sets(plain: Run) -> None:
    other = recorded_run("mlp_reduce_overhead")
    assert plain.cold and other.cold

    found = differences(components(plain.cold.cache[0]), components(other.cold.cache[0]))

    assert [difference.words for difference in found] == [
        "argument cudagraphs: False → True",
        "inductor config triton.cudagraphs: False → True",
    ]


def test_that_another_precision_is_told_by_the_inputs(plain: Run) -> None:
    other = recorded_run("mlp_max_autotune")
    assert plain.cold and other.cold

    found = [d.words for d in differences(components(plain.cold.cache[1]), components(other.cold.cache[1]))]

    assert "input 0, dtype float32 → float16" in found
    assert "inductor config max_autotune: False → True" in found
    assert any(text.startswith("the graph differs in ") for text in found)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (part("torch_version", "\x01\ufffd"), part("torch_version", "\x02\ufffd"), "torch version differs."),
        (
            part("example_inputs[0]", "TensorMetadata(dtype=torch.float32, shape=torch.Size([4, 8]), stride=(8, 1))"),
            part("example_inputs[0]", "TensorMetadata(dtype=torch.float32, shape=torch.Size([5, 8]), stride=(8, 1))"),
            "input 0, shape [4, 8] → [5, 8].",
        ),
        (part("gm", "a\nb = 1"), part("gm", "a\nb = 2"), "the graph differs in 1 line, first: b = 1 → b = 2."),
        (part("x", "1"), part("x", "1"), "The two keys are made of the same parts."),
    ],
)
def test_that_a_difference_is_told_in_words(before: Component, after: Component, sentence: str) -> None:
    assert summary(differences([before], [after])) == sentence


def test_that_a_part_that_only_one_key_has_is_new_or_gone() -> None:
    found = differences([part("cache_key_tag", "a")], [part("precompile_enabled", "b")])

    assert [difference.words for difference in found] == ["tag of the cache is gone", "precompile enabled is new"]


@pytest.mark.parametrize("payload", ["", "no json", "[]", json.dumps({"components": ["odd"]})])
def test_that_a_payload_without_components_is_no_key(payload: str) -> None:
    assert parse_components(payload) == ()


def test_that_the_ledger_says_what_was_found_what_it_saved_and_what_remains(plain: Run) -> None:
    assert len(lookups(plain)) == 4
    cold, warm = sentences(plain)
    assert cold == "Cold: 2 misses."
    assert warm.startswith("Warm: 2 hits, first call 2.00 s shorter; what remains after a hit: ")
    assert "Dynamo" in warm


def test_that_no_more_is_said_to_be_saved_than_the_first_call_became_shorter() -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")
    assert run.warm is not None
    # torch's own account of nested and concurrent compiles adds up to more
    run.warm.apply(e.Cache(cache="fx_graph", state="hit", compile_id="7/0", saved_s=6.0))

    assert (saved_s(run.warm.cache) or 0) > 8
    assert "3 hits, first call 2.00 s shorter; " in sentences(run)[1]
    table = next(block for block in cache_blocks(run) if isinstance(block, Table))
    assert max(float(row[5].text) for row in table.rows if row[5].text != "–") <= 2.0


def test_that_without_a_cold_start_beside_it_torch_s_own_account_is_named_as_such(plain: Run) -> None:
    assert plain.warm is not None
    assert "saved 2.06 s by torch's own account" in process_sentence(plain.warm)


def test_that_what_one_hit_saves_within_another_is_counted_once() -> None:
    outer = e.Cache(cache="aot_autograd", state="hit", compile_id="0/0", saved_s=2.0)
    inner = e.Cache(cache="fx_graph", state="hit", compile_id="0/0", saved_s=1.5)
    other = e.Cache(cache="fx_graph", state="hit", compile_id="1/0", saved_s=0.25)

    assert saved_s([outer, inner, other]) == 2.25
    assert saved_s([]) is None


def test_that_hits_after_which_the_cpp_compiler_ran_again_are_caught() -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")
    assert rebuilds(run) == []

    run.apply(e.Phase(name="compile_file", group="kernels", state="begin", at=2.0))
    run.apply(e.Phase(name="compile_file", group="kernels", state="end", at=14.5, duration_s=12.5))

    (found,) = rebuilds(run)
    assert "Every lookup of the warm start was a hit, and yet the C++ compiler ran again: 1 build, 12.5 s." in (
        found.sentence
    )


def test_that_the_header_that_every_process_prepares_is_no_rebuild() -> None:
    run = recorded_run("mlp_default", "mlp_default_warm")

    run.apply(e.Phase(name="compile_file", group="kernels", state="begin", at=2.0))
    run.apply(e.Phase(name="compile_file", group="kernels", state="end", at=2.7, duration_s=0.7))

    assert rebuilds(run) == []


def test_that_a_key_without_parts_is_explained_by_its_neighbour(plain: Run) -> None:
    newer = recorded_run("mlp_default")
    assert newer.cold
    newer.cold.cache[0] = replace(newer.cold.cache[0], components=None)

    assert comparable(newer, lookups(newer)[0]).event is newer.cold.cache[1]
    assert comparable(plain, lookups(plain)[0]) == lookups(plain)[0]


def test_that_a_miss_is_compared_with_the_nearest_earlier_key(plain: Run) -> None:
    far, near = recorded_run("mlp_max_autotune", run_id="far"), recorded_run("mlp_reduce_overhead", run_id="near")
    runs = [plain, far, near]
    row = lookups(near)[0]

    found = explain(runs, near, row, Sources())

    assert found.nearest is not None and found.nearest.origin.startswith("default, ")
    assert "•  inductor config triton.cudagraphs: False → True" in words(row.event, found)


def test_that_a_key_asked_for_before_is_said_to_be_the_same(plain: Run) -> None:
    again = recorded_run("mlp_default", run_id="again")
    row = lookups(again)[0]

    found = explain([plain, again], again, row, Sources())

    assert found.is_same
    assert "with one cache for both, this would have been a hit" in words(row.event, found)


def test_that_the_first_key_of_all_has_nothing_to_be_compared_with(plain: Run) -> None:
    row = lookups(plain)[0]

    found = explain([plain], plain, row, Sources())

    assert "No earlier key of this cache is known" in words(row.event, found)


def test_that_a_miss_in_an_empty_folder_is_told_as_such_and_by_what_the_own_cache_holds(plain: Run) -> None:
    fresh = recorded_run("mlp_reduce_overhead", run_id="fresh")
    fresh.processes[0].hello = replace(fresh.processes[0].hello, cache_was_empty=True)
    row = lookups(fresh)[0]

    def told(held: bool | None, *runs: Run) -> str:
        return words(row.event, explain([*runs, fresh], fresh, row, Sources(in_own_cache=lambda _cache, _key: held)))

    assert "began with an empty cache folder" in told(None)
    assert "with it (cache: mine), this would have been a hit" in told(True)
    assert "Your own cache holds nothing under this key either" in told(False)
    assert "a cache that is kept would not have had it" in told(False, plain)
    assert "triton.cudagraphs: False → True" in told(False, plain)


def test_that_a_key_that_the_same_process_asked_for_in_vain_is_no_hit_missed() -> None:
    twice = recorded_run("graph_break_and_recompile")
    first, second = (row for row in lookups(twice) if row.event.compile_id == "2/1")
    assert first.event.key == second.event.key

    assert "did not find it either" in words(second.event, explain([twice], twice, second, Sources()))


def test_that_a_run_without_lookups_says_why() -> None:
    skipped = recorded_run("lstm_not_compiled")
    skipped.processes[0].cache.clear()

    assert empty_sentence(None) == "Cache lookups appear here while the model is compiled."
    assert empty_sentence(skipped) == "No cache was asked, since no graph was captured."
