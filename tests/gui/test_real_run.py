"""From dropping a script to the filled table, with real torch on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

SCRIPT = '''"""A tiny MLP."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
example_inputs = torch.randn(8, 16)
'''


@pytest.mark.slow
def test_that_a_dropped_script_ends_in_a_filled_table(real_desk: Any, tmp_path: Path) -> None:
    script = tmp_path / "tiny_mlp.py"
    script.write_text(SCRIPT)
    real_desk.drop(script)
    environment = real_desk.state.environment
    assert environment is not None
    assert "reduce-overhead" in environment.modes

    real_desk.qtbot.keyClick(real_desk.window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    real_desk.wait(real_desk.is_over, 400)
    real_desk.window.workspace.comparison.refresh()

    run = real_desk.state.runs[0]
    assert run.outcome == "finished", run.error
    (eager, default) = real_desk.cells("comparison")
    assert eager[1].split()[-1] in ("ms", "µs")
    assert default[1].split()[-1] in ("ms", "µs")
    assert default[2].split()[-1] in ("ms", "µs")
    assert "×" in default[4]
    assert default[7:9] == ["1", "0"]
    assert default[-1] in ("faster", "slower", "no difference", "too noisy")
    states = {step.name: step.state.value for step in real_desk.window.findChild(object, "pipeline_strip").steps}
    assert states["Measured"] == "done"
    assert states["Inductor"] == "done"
    assert real_desk.state.inspection.inputs[0].shape == (8, 16)
