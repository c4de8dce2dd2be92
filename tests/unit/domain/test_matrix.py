"""Configurations times workloads: every row once, named so that none is mistaken for another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilescope.domain.comparison import Comparison, recommend
from compilescope.domain.config import Choices, Config
from compilescope.domain.matrix import matrix, next_label
from compilescope.domain.prose import summary
from compilescope.domain.results import comparison_json
from compilescope.domain.run import Run
from compilescope.domain.workload import PHASES, PRECISIONS, Workload
from compilescope.report.columns import label
from compilescope.report.names import names

RunMaker = Callable[..., Run]


def test_that_every_set_of_options_is_multiplied_with_every_workload() -> None:
    configs = Choices(modes=("default", "reduce-overhead"), dynamics=(None, True)).product()

    rows = matrix(configs, Workload(script="m.py"), PHASES, PRECISIONS)

    assert len(rows) == 2 * 2 * 2 * 4
    assert len({row.label for row in rows}) == len({row.key for row in rows}) == len(rows)
    assert rows[0].label == "default (inference, fp32)"


@pytest.mark.parametrize(
    ("phases", "precisions", "expected"),
    [
        (("inference",), ("fp32",), ["default"]),
        (("training",), ("bf16",), ["default"]),
        (("inference",), ("fp32", "bf16"), ["default (fp32)", "default (bf16)"]),
        (("inference", "training"), ("bf16",), ["default (inference)", "default (training)"]),
    ],
)
def test_that_a_name_holds_what_the_rows_differ_in(phases: tuple, precisions: tuple, expected: list[str]) -> None:
    rows = matrix([Config()], Workload(script="m.py"), phases, precisions)

    assert [row.label for row in rows] == expected


def test_that_training_mode_is_kept_for_inference_alone() -> None:
    rows = matrix([Config()], Workload(script="m.py", train_mode=True), PHASES, ("fp32",))

    assert [row.workload.train_mode for row in rows] == [True, False]


def test_that_a_repeated_row_gets_the_next_number() -> None:
    assert next_label("default (bf16)", ["default (bf16)"]) == "default (bf16) (2)"
    assert next_label("default (bf16) (2)", ["default (bf16)", "default (bf16) (2)"]) == "default (bf16) (3)"


def two_precisions(make_run: RunMaker, speedups: tuple[float, float, float]) -> Comparison:
    rows = matrix([Config()], Workload(script="m.py"), ("inference",), ("fp32", "bf16"))
    rows.append(matrix([Config(mode="max-autotune")], rows[0].workload, ("inference",), ("fp32",))[0])
    labels = ["default (fp32)", "default (bf16)", "max-autotune (fp32)"]
    runs = []
    for number, (row, name, speedup) in enumerate(zip(rows, labels, speedups, strict=True)):
        # the two precisions take different times in eager
        eager_s = 3e-3 if row.workload.precision == "fp32" else 1e-3
        run = make_run(str(number), config=row.config, workload=row.workload, speedup=speedup, eager_s=eager_s)
        run.label = name
        runs.append(run)
    return Comparison(id="c", created=0.0, runs=runs)


def test_that_each_precision_is_answered_against_its_own_eager(make_run: RunMaker) -> None:
    found = recommend(two_precisions(make_run, (1.5, 2.5, 1.51)))

    # a bf16 run three times as fast as fp32 in absolute time is no argument for or against fp32's configurations
    assert found is not None and found.run_id == "0" and found.scope == "inference in fp32"
    (other,) = found.others
    assert other.run_id == "1" and other.scope == "inference in bf16"
    assert "This holds for inference in fp32. Inference in bf16: use default (bf16): 2.5" in summary(found)


def test_that_one_precision_may_be_left_eager_and_another_not(make_run: RunMaker) -> None:
    found = recommend(two_precisions(make_run, (0.7, 2.5, 0.8)))

    assert found is not None and found.run_id is None
    assert found.others[0].run_id == "1"


def test_that_exports_give_each_row_its_own_eager_and_say_which(make_run: RunMaker) -> None:
    comparison = two_precisions(make_run, (1.5, 2.5, 1.51))

    runs = comparison_json(comparison)["runs"]

    assert [round(run["timing"]["eager_ms"]["median"]) for run in runs] == [3, 1, 3]
    assert [label(run) for run in runs] == list(names(comparison.runs).values())
    assert [label(run) for run in runs] == ["default (fp32)", "default (bf16)", "max-autotune (fp32)"]


def test_that_a_whole_step_is_compiled_in_training_only() -> None:
    configs = [Config(), Config(scope="step")]

    rows = matrix(configs, Workload(script="m.py"), PHASES, ("fp32",))

    assert [row.label for row in rows] == [
        "default (inference)",
        "default (training)",
        "default · whole step (training)",
    ]
