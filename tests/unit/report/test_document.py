"""The report's content, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from fakes.comparisons import SCRIPT, comparison
from fakes.profiles import on_gpu

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import SCOPES, Choices, Config
from compilescope.domain.firstcall import first_call_parts
from compilescope.domain.run import Run
from compilescope.domain.workload import Measurement, Workload
from compilescope.report import blocks, chart_blocks, method, numbers
from compilescope.report.document import build_document
from compilescope.report.kernels import kernel_blocks

OWN_CALL = e.FirstCall(side="compiled", at=8.0, duration_s=8.0)


@pytest.fixture(scope="module")
def full() -> Comparison:
    return comparison(samples=60)


@pytest.fixture(scope="module")
def document(full: Comparison) -> blocks.Document:
    return build_document(full, source=SCRIPT, measurement=Measurement(budget_s=10.0))


def texts(section: blocks.Section) -> Iterator[str]:
    """Every text of a section."""
    for block in section.blocks:
        match block:
            case blocks.Paragraph(text=text) | blocks.Code(text=text):
                yield text
            case blocks.Bullets(items=items):
                yield from items
            case blocks.Facts(rows=rows):
                yield from (part for row in rows for part in row)
            case blocks.Table(rows=cells):
                yield from (cell.text for row in cells for cell in row)
            case blocks.Card():
                yield from (block.title, block.text, block.code, *block.points)
            case blocks.ChartBlock(caption=caption):
                yield caption


def section(document: blocks.Document, title: str) -> blocks.Section:
    return next(found for found in document.sections if found.title == title)


def of_type(blocks_: Sequence[blocks.Block], kind: type) -> list[blocks.Block]:
    return [block for block in blocks_ if isinstance(block, kind)]


def test_that_the_first_page_asks_and_answers(document: blocks.Document) -> None:
    first = document.sections[0]

    said = list(texts(first))
    (card,) = of_type(first.blocks, blocks.Card)
    (figure,) = of_type(first.blocks, blocks.ChartBlock)

    assert any("Which of 8 configurations" in text and "NVIDIA H200" in text for text in said)
    assert isinstance(card, blocks.Card)
    assert card.title == "Use reduce-overhead"
    assert card.code == 'model = torch.compile(model, mode="reduce-overhead")'
    assert any("first call of" in point for point in card.points)
    assert isinstance(figure, blocks.ChartBlock)
    assert isinstance(figure.chart, blocks.SpeedupChart)
    assert [bar.label for bar in figure.chart.bars if bar.is_chosen] == ["reduce-overhead"]


def test_that_leaving_it_eager_is_a_full_answer() -> None:
    slow = comparison([Config()], speedups=(0.8,), samples=60)

    (card,) = of_type(build_document(slow).sections[0].blocks, blocks.Card)

    assert isinstance(card, blocks.Card)
    assert card.title == "Leave it eager"
    assert "Slower than eager" in card.text


def test_that_nothing_is_advised_where_no_configuration_ran_to_its_end(make_run: Callable[..., Run]) -> None:
    broken = Comparison(id="c", created=0.0, runs=[make_run(ended=e.Ended(outcome="crashed"))])

    (card,) = of_type(build_document(broken).sections[0].blocks, blocks.Card)

    assert isinstance(card, blocks.Card)
    assert card.title == "Nothing can be recommended"


def test_that_every_configuration_has_its_pages_and_its_row(document: blocks.Document, full: Comparison) -> None:
    titles = [found.title for found in document.sections if found.level == 2]
    table = of_type(section(document, "All configurations").blocks, blocks.Table)[0]

    assert titles == [run.label for run in full.runs]
    assert isinstance(table, blocks.Table)
    assert [row[0].text for row in table.rows] == titles
    anchors = {found.anchor for found in document.sections}
    assert all(row[0].link in anchors for row in table.rows)


def test_that_a_break_is_shown_at_its_line_with_what_to_do(document: blocks.Document) -> None:
    pages = section(document, "default")

    codes = [block for block in of_type(pages.blocks, blocks.Code) if isinstance(block, blocks.Code) and block.marked]

    assert [(code.marked, code.first_line) for code in codes] == [(17, 15), (19, 17), (20, 18)]
    assert "if hidden.abs().mean() > 0.5:" in codes[0].text
    assert any("torch.cond" in text for text in texts(pages))


def test_that_a_break_told_before_is_named_and_not_told_again(document: blocks.Document) -> None:
    pages = section(document, "max-autotune")

    assert not [code for code in of_type(pages.blocks, blocks.Code) if getattr(code, "marked", None)]
    assert "GB0170 · Data-dependent branching" in list(texts(pages))
    assert "default" in list(texts(pages))


def test_that_a_failed_run_tells_where_and_why(document: blocks.Document) -> None:
    pages = section(document, "default · static · fullgraph")

    assert pages.badge == "failed"
    assert any("Data-dependent branching" in text for text in texts(pages))
    assert any(isinstance(block, blocks.Code) and block.marked == 17 for block in pages.blocks)


def test_that_the_script_is_shown_as_it_was_when_it_ran(document: blocks.Document) -> None:
    said = "\n".join(texts(section(document, "Environment and method")))

    assert "class Model(nn.Module):" in said
    assert "32 × 128 × 512 float32" in said
    assert "AMD EPYC 9654 96-Core Processor" in said


def test_that_what_was_not_checked_is_said(document: blocks.Document) -> None:
    said = "\n".join(texts(section(document, "What was not checked")))

    assert "default · static · fullgraph" in said
    assert "Training" in said
    assert "One set of input sizes" in said


def test_that_a_comparison_without_any_figure_has_a_report() -> None:
    run = Run("r", config=Config(), workload=Workload(script="a.py"))

    document = build_document(Comparison(id="c", created=0.0, runs=[run]))

    assert document.created == "1 January 1970, 00:00 UTC"
    assert "No answer yet" in list(texts(document.sections[0]))


def test_that_runs_of_several_precisions_have_names_of_their_own() -> None:
    runs = [
        Run(f"r{i}", config=Config(), workload=Workload(script="a.py", precision=precision))
        for i, precision in enumerate(("fp32", "bf16", "bf16"))
    ]

    document = build_document(Comparison(id="c", created=0.0, runs=runs))

    assert [found.title for found in document.sections if found.level == 2] == [
        "default (fp32)",
        "default (bf16)",
        "default (bf16) #2",
    ]


def test_that_a_product_is_one_command_line() -> None:
    configs = Choices(modes=("default", "max-autotune"), dynamics=(None, True)).product()
    runs = [Run(str(i), config=config, workload=Workload(script="my model.py")) for i, config in enumerate(configs)]

    assert method.commands(runs, Measurement(budget_s=5.0)) == [
        "compilescope bench 'my model.py' --phase inference --precision fp32 --budget 5 "
        "--mode default --mode max-autotune --dynamic auto --dynamic on"
    ]


def test_that_a_command_line_says_how_calls_are_made_and_timed() -> None:
    workload = Workload(script="a.py", phase="training", grad_mode="no_grad", threads=3)
    runs = [Run(scope, config=Config(mode="default", scope=scope), workload=workload) for scope in SCOPES]

    (line,) = method.commands(runs, Measurement(budget_s=5.0, l2_flush=True, queued=False))

    assert line.partition("fp32 ")[2] == (
        "--grad-mode no_grad --threads 3 --budget 5 --l2-flush --queue off --mode default --scope model --scope step"
    )


def test_that_the_method_says_what_a_call_is() -> None:
    whole = Run("a", config=Config(scope="step"), workload=Workload(script="a.py", phase="training", precision="fp16"))
    part = Run("b", config=Config(), workload=Workload(script="a.py", grad_mode="no_grad", threads=2))
    for run in (whole, part):
        run.apply_all([e.Hello(), e.Measured(l2_flush=True)])

    text = " ".join(method.method_sentences(Comparison(id="x", created=0.0, runs=[whole, part])))

    assert (
        "backward and optimizer, in fp16 with a gradient scaler. What is compiled is the step as one function" in text
    )
    assert "Inference runs under torch.no_grad()." in text
    assert "this number of threads on the CPU: 2." in text
    assert "The L2 cache was written over before each call" in text


@pytest.mark.parametrize(
    ("restored", "said", "not_said"),
    [
        ((False, False), ("back to back", "without a pause"), "put back"),
        ((True, True), ("The figure compared is the time of a call by itself", "put back before it"), "back to back"),
        ((True, False), ("back to back", "Where calls change their inputs or state, it is"), "flush"),
    ],
)
def test_that_the_method_says_whether_calls_were_timed_alone(
    make_run: Callable[..., Run], restored: tuple[bool, ...], said: tuple[str, ...], not_said: str
) -> None:
    runs = [
        make_run(str(number), extra=[e.Measured(restored=alone, queued=not alone)])
        for number, alone in enumerate(restored)
    ]

    text = " ".join(method.method_sentences(Comparison(id="x", created=0.0, runs=runs)))

    assert all(words in text for words in said)
    assert not_said not in text


def test_that_the_users_own_cache_is_no_cold_start(make_run: Callable[..., Run]) -> None:
    phases = [e.Phase(name="a", at=0.0), e.Phase(name="a", state="end", at=1.0), OWN_CALL]
    run = make_run(cache_was_empty=None, extra=phases)

    document = build_document(Comparison(id="c", created=0.0, runs=[run]), measurement=Measurement(budget_s=5.0))

    said = "\n".join(text for found in document.sections for text in texts(found))
    assert "--budget 5 --cache mine --mode default" in said
    assert "The first one begins with your own compile cache, whatever that holds" in said
    assert "Cost: a first call of 8.00 s with your own cache, 2.00 s in a second process." in said
    assert "The “first” process began with your own cache" in said
    assert "First calls began with your own compiler cache" in said
    assert "not known" in said
    for claim in ("empty compile cache", "“Cold”", "8.00 s cold", "pays off", "cold cache."):
        assert claim not in said.replace("call with a cold cache has paid off", "")
    assert not [block for page in document.sections for block in page.blocks if is_cost(block)]


def test_that_a_shared_model_is_not_said_to_be_two_copies(make_run: Callable[..., Run]) -> None:
    shared = e.WorkloadReady(entry="Model", device="cpu", copies="shared")
    twice = e.WorkloadReady(entry="Model", device="cpu", copies="loaded_twice")
    runs = [make_run("shared", extra=[shared], starts=("cold",)), make_run("twice", extra=[twice])]

    one, both = (
        " ".join(method.method_sentences(Comparison(id="c", created=0.0, runs=part))) for part in (runs[:1], runs)
    )

    assert "Eager and compiled share one model, since it could be neither loaded twice nor copied." in one
    assert "two loads" not in one
    assert "are two models from two loads of the script, or share one" in both


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interval": (1.03, 1.02, 1.04)}, ["never"]),
        ({"interval": (1.5, 1.49, 1.51), "graphs": 0}, []),
        ({"interval": (1.5, 1.49, 1.51), "extra": [e.Numerics(verdict="differ")]}, []),
    ],
    ids=["within the noise floor", "not compiled", "incorrect"],
)
def test_that_a_report_has_no_break_even_of_what_is_not_faster(
    make_run: Callable[..., Run], options: dict[str, Any], words: list[str]
) -> None:
    document = build_document(Comparison(id="c", created=0.0, runs=[make_run(**options)], noise_floor=0.04))

    found = [block for page in document.sections for block in page.blocks]
    facts = [row for block in found if isinstance(block, blocks.Facts) for row in block.rows]
    table = of_type(section(document, "All configurations").blocks, blocks.Table)[0]
    assert not [block for block in found if is_cost(block)]
    assert [value for name, value in facts if name == "Break-even, cold"] == words
    assert isinstance(table, blocks.Table) and table.rows[0][6].text == "–"


def is_cost(block: blocks.Block) -> bool:
    return isinstance(block, blocks.ChartBlock) and isinstance(block.chart, blocks.CostChart)


def test_that_an_interval_that_came_out_wider_than_asked_is_told(make_run: Callable[..., Run]) -> None:
    runs = [make_run("wide", interval=(1.5, 1.45, 1.55)), make_run("narrow", interval=(1.5, 1.49, 1.51))]
    for run in runs:
        run.label = run.id

    said = " ".join(method.not_checked(Comparison(id="c", created=0.0, runs=runs)))

    assert "The interval is wider than the ± 1.0 % that were asked for: wide. More time" in said


def test_that_configurations_that_are_no_product_are_a_line_each() -> None:
    configs = [Config(mode="default"), Config(mode="max-autotune", fullgraph=True), Config(backend="aot_eager")]
    runs = [Run(str(i), config=config, workload=Workload(script="a.py")) for i, config in enumerate(configs)]

    lines = method.commands(runs)

    assert [line.partition("fp32 ")[2] for line in lines] == [
        "--mode default",
        "--mode max-autotune --fullgraph on",
        "--backend aot_eager",
    ]


def test_that_a_phase_is_counted_without_the_phases_inside_it(full: Comparison) -> None:
    story = full.runs[0].cold
    assert story is not None

    found = first_call_parts(story)

    assert found is not None
    assert len(found.parts) > 5
    assert sum(found.parts.values()) == pytest.approx(found.total_s)


def test_that_a_column_has_one_unit_and_the_digits_its_figures_carry() -> None:
    assert numbers.times([0.00125, 0.000954, None]) == ("ms", ["1.250", "0.954", "–"])
    assert numbers.times([13.9, 1.58]) == ("s", ["13.90", "1.58"])
    assert numbers.times([]) == ("s", [])
    assert numbers.sizes([412_000_000, None]) == ("MiB", ["393", "–"])


def test_that_sizes_kernels_and_autotuning_have_tables_of_their_own() -> None:
    run = comparison([Config(), Config(fullgraph=True)], samples=40).runs
    sizes = {"tokens": [(8, 128), (16, 128)]}
    tuned = e.Autotune(
        operation="mm",
        inputs=("8x128", "128x128"),
        choices=(
            {"name": "mm", "seconds": 2e-5},
            {"name": "triton_mm_3", "seconds": 1e-5},
            {"name": "x", "seconds": None},
        ),
        winner="triton_mm_3",
        duration_s=1.5,
    )
    for one in run:
        one.workload = Workload(script="a.py", inputs=sizes)
        story = one.story
        assert story is not None
        story.apply(tuned)
        for shape in (0, 1):
            for side, seconds in (("eager", 2e-3), ("compiled", 1e-3)):
                story.apply(e.Samples(side=side, shape=shape, block=500, seconds=(seconds,) * 12))

    document = build_document(Comparison(id="x", created=0.0, runs=run))

    first, second = (section(document, one.label) for one in run)
    tables = {block.columns[0].title: block for block in first.blocks if isinstance(block, blocks.Table)}
    assert tables["Inputs"].rows[1][0].text == "tokens 16 × 128"
    assert [cell.text for cell in tables["Inputs"].rows[1]][2:5] == ["2.000", "1.000", "2.000"]
    assert [cell.text for cell in tables["Operation"].rows[0]] == [
        *("mm", "8x128, 128x128", "3", "triton_mm_3", "10.0", "20.0", "1.50")
    ]
    assert len(tables["Kernel"].rows) == 5
    # what is the same as in another configuration is listed once
    assert "The same as under default." in list(texts(second))


def test_that_a_fault_in_one_part_leaves_the_rest_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(chart_blocks, "phase_block", fail)
    monkeypatch.setattr(method, "not_checked", fail)
    found = comparison([Config()], samples=20)

    document = build_document(found)

    told = [text for part in document.sections for text in texts(part) if "CompileScope failed (KeyError" in text]
    assert [text.partition(":")[0] for text in told] == ["The first call is missing here", "This part is missing"]
    assert "Speedup" in list(texts(section(document, "default")))


def test_that_launches_in_the_code_are_not_said_to_be_those_of_a_call(make_run: Callable[..., Run]) -> None:
    # a graph in a loop runs its code several times a call
    run = make_run(extra=[e.Kernel(name="triton_poi_fused_add_0", kind="triton", launches=1)])

    (table,) = of_type(list(kernel_blocks(run, "default", {})), blocks.Table)

    assert isinstance(table, blocks.Table)
    assert table.note == "Launches are those that the generated code holds, however often a call runs it."


def test_that_a_saved_trace_is_not_said_to_be_still_running() -> None:
    run = comparison([Config()], samples=20).runs[0]
    run.is_trace = True

    document = build_document(Comparison(id="x", created=0.0, runs=[run]))

    assert section(document, "default").badge == "saved trace"


def test_that_too_few_or_too_noisy_calls_are_not_told_as_no_difference(make_run: Callable[..., Run]) -> None:
    runs = [make_run("noisy", noise=0.8, blocks=20, speedup=1.0), make_run("few", blocks=0)]
    for run in runs:
        run.label = run.id

    document = build_document(Comparison(id="x", created=0.0, runs=runs))

    assert [section(document, name).badge for name in ("noisy", "few")] == ["too noisy", "no speedup"]
    (figure,) = of_type(document.sections[0].blocks, blocks.ChartBlock)
    assert [bar.note for bar in figure.chart.bars] == ["too noisy", "no speedup"]


def test_that_a_profiled_configuration_says_where_its_time_goes() -> None:
    profiled = comparison([Config()], samples=20)
    profiled.runs[0].processes[0].profiles |= {row.side: row for row in on_gpu() if isinstance(row, e.Profile)}

    document = build_document(profiled)
    said = [text for found in document.sections for text in texts(found)]

    assert "Where the time goes" in said
    assert any("180 kernels on the GPU in eager and 30 compiled" in text for text in said)
    assert "triton_poi_fused_addmm_gelu_view_3" in said and "742 TFLOP/s, 75.0 %" in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"noise": 0.8, "blocks": 20, "speedup": 1.0}, "too noisy to tell"), ({"speedup": 0.9}, "never")],
)
def test_that_compiling_never_pays_is_said_only_where_that_was_shown(
    make_run: Callable[..., Run], options: dict[str, float], expected: str
) -> None:
    document = build_document(Comparison(id="c", created=0.0, runs=[make_run("a", **options)]))

    facts = [block for page in document.sections for block in page.blocks if isinstance(block, blocks.Facts)]
    assert [value for block in facts for name, value in block.rows if name == "Break-even, cold"] == [expected]
