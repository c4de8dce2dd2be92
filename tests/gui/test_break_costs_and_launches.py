"""What a break costs and what a call launches, in the panes' own words."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fakes.stories import recorded_run
from PySide6.QtWidgets import QPlainTextEdit

from compilescope.domain import events as e
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.run import Run
from compilescope.domain.workload import Workload
from compilescope.ui.compiler.kernels import KernelRow, kernel_rows, launches_sentence
from compilescope.ui.panels.breaks_pane import BreaksPane, empty_text
from compilescope.ui.selection import Selection
from compilescope.ui.state import AppState
from compilescope.ui.theme import Scheme, Theme

KERNELS = [
    e.Kernel(name="cpp_fused_relu_0", kind="cpp", launches=2, compile_id="0/0"),
    e.Kernel(name="extern_kernels.mm", kind="extern", launches=3, compile_id="0/0"),
]


def sentence(*events: e.Event) -> str:
    run = Run("one", config=Config(), workload=Workload(script="model.py"))
    run.apply_all([e.Hello(), *KERNELS, *events])
    return launches_sentence(run, kernel_rows(run))


def test_that_nothing_is_said_of_eager_where_no_profiler_counted() -> None:
    assert sentence() == "In the generated code: 2 kernels (1 generated), 5 launches."
    assert "eager" not in sentence(e.GpuBusy(side="eager", launches=12.0))


def test_that_launches_on_the_gpu_are_told_beside_eagers() -> None:
    counted = [e.GpuBusy(side="eager", launches=12.0), e.GpuBusy(side="compiled", launches=5.0)]

    assert sentence(*counted).startswith("A call launches 5 kernels on the GPU, in eager 12. ")


def test_that_on_a_cpu_operators_are_told_and_no_launches() -> None:
    counted = [e.Profile(side=side, clock="cpu", launches=number) for side, number in (("eager", 9), ("compiled", 4))]

    assert sentence(*counted).startswith("A call runs 4 operators and generated kernels, in eager 9 operators. ")


def test_that_launches_of_several_versions_of_the_code_are_not_those_of_a_call() -> None:
    again = [replace(kernel, compile_id="0/1") for kernel in KERNELS]

    assert sentence(*again).endswith("10 launches, of all 2 compiles together.")


def test_that_lines_of_one_file_name_it_once() -> None:
    places = [("/m/model.py", 12), ("/m/model.py", 14), ("/m/layers.py", 3)]
    event = e.Kernel(name="cpp", places=tuple(e.Place(file=file, line=line) for file, line in places))

    assert KernelRow(event=event).places == "model.py:12, 14; layers.py:3"


def test_that_the_break_that_is_selected_says_what_it_costs(qtbot: Any) -> None:
    state = AppState(Selection())
    pane = BreaksPane(state, Theme(Scheme.LIGHT))
    qtbot.addWidget(pane)

    state.set_comparison(Comparison(id="c", created=time.time(), runs=[recorded_run("graph_break_and_recompile")]))

    explanation = pane.findChild(QPlainTextEdit, "explanation")
    assert explanation is not None
    assert "What it costs\n•  A call that comes here leaves compiled code" in explanation.toPlainText()
    assert "5 compiled pieces" in explanation.toPlainText()


def test_that_a_run_that_fullgraph_ended_is_not_said_to_have_no_break() -> None:
    run = Run("r", config=Config(fullgraph=True), workload=Workload(script="/m.py"))
    run.apply(e.Hello())
    assert empty_text(run) == "No graph breaks so far."

    error = e.RunError(stage="compile", type="Unsupported", message="Data-dependent branching")
    run.apply(e.Ended(outcome="failed", error=error))

    assert empty_text(run).startswith("With fullgraph a graph break is an error")
