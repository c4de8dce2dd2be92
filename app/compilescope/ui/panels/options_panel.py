"""What to compare: every option may be ticked several times, and their product runs."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from compilescope.domain.availability import backend_note, mode_note, precision_note
from compilescope.domain.workload import PHASES, PRECISIONS
from compilescope.ui.panels.choices import ChipRow, TickList
from compilescope.ui.state import AppState
from compilescope.ui.widgets import Section, label, plain_tip

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_PHASE_NAMES = {"inference": "inference", "training": "training step"}


class OptionsPanel(QWidget):
    """Writes the selection, and shows what the worker's environment offers."""

    python_chosen = Signal()

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._is_showing = False
        self._build()
        self._connect()
        self._show_selection()
        self.refresh()

    def refresh(self) -> None:
        """Show what can be chosen, and what to know about it."""
        environment = self._state.environment
        self._is_showing = True
        if environment is None:
            self._devices.clear()
            self._devices.addItem((self._state.environment_problem and "unknown") or "asking torch…")
            self._devices.setEnabled(False)
        else:
            self._show_devices(environment.devices)
            self._modes.offer(sorted(environment.modes or ["default"], key=_mode_rank))
            self._backends.offer(list(environment.backends))
        self._is_showing = False
        self._show_notes()

    def choose_modes(self, modes: Sequence[str]) -> None:
        """Tick these modes and no others."""
        self._modes.choose(modes)

    def _show_devices(self, devices: Sequence[Mapping[str, Any]]) -> None:
        listed = [(str(device["id"]), str(device.get("name") or device["id"])) for device in devices]
        if [self._devices.itemData(i) for i in range(self._devices.count())] == [name for name, _ in listed]:
            return
        self._devices.clear()
        for identity, name in listed:
            text = name if identity == "cpu" else f"{name} ({identity})"
            self._devices.addItem("CPU" if identity == "cpu" else text, identity)
            self._devices.setItemData(self._devices.count() - 1, plain_tip(text), Qt.ItemDataRole.ToolTipRole)
        self._devices.setEnabled(True)
        self._devices.setCurrentIndex(max(self._devices.findData(self._state.selection.device), 0))

    def _show_notes(self) -> None:
        environment = self._state.environment
        device = self._device
        self._modes.explain({name: mode_note(name, device) for name in self._modes.names})
        self._backends.explain({name: backend_note(name, device) for name in self._backends.names})
        needs_inductor = "inductor" not in self._backends.chosen
        self._modes.setEnabled(not needs_inductor)
        capability = environment.device_capability if environment else None
        _say(self._precision_note, precision_note(self._precision.currentText(), device, capability))
        problem = self._state.environment_problem
        # that a torch has no CUDA is no problem, but a missing compiler is
        missing = [text for text in (environment.missing if environment else ()) if "cannot build" in text]
        _say(self._problem, problem or " ".join(missing))

    @property
    def _device(self) -> str | None:
        data = self._devices.currentData()
        return str(data) if data else None

    def _choose(self) -> None:
        """Take what the controls say."""
        if self._is_showing:
            return
        dynamics = {"auto": None, "on": True, "off": False}
        selection = dataclasses.replace(
            self._state.selection,
            modes=self._modes.chosen,
            dynamics=tuple(dynamics[name] for name in self._dynamics.chosen),
            fullgraphs=tuple(name == "on" for name in self._fullgraphs.chosen),
            backends=self._backends.chosen,
            device=self._device,
            phase=self._phase.currentData(),
            precision=self._precision.currentData(),
            train_mode=self._train_mode.isChecked(),
            budget_s=self._budget.value(),
        )
        self._train_mode.setEnabled(selection.phase == "inference")
        self._show_notes()
        self._state.set_selection(selection)

    def _choose_arguments(self) -> None:
        try:
            words = tuple(shlex.split(self._arguments.text()))
        except ValueError as error:
            _say(self._arguments_note, f"{error}.")
            return
        _say(self._arguments_note, "")
        self._state.set_selection(dataclasses.replace(self._state.selection, arguments=words))

    def _choose_python(self) -> None:
        python = self._python.text().strip()
        if python != self._state.selection.python:
            self._state.set_selection(dataclasses.replace(self._state.selection, python=python))
            self.python_chosen.emit()

    def _show_selection(self) -> None:
        selection = self._state.selection
        self._is_showing = True
        names = {None: "auto", True: "on", False: "off"}
        self._modes.choose(selection.modes)
        self._backends.choose(selection.backends)
        self._dynamics.choose([names[value] for value in selection.dynamics])
        self._fullgraphs.choose([names[value] for value in selection.fullgraphs])
        self._phase.setCurrentIndex(self._phase.findData(selection.phase))
        self._precision.setCurrentIndex(self._precision.findData(selection.precision))
        self._train_mode.setChecked(selection.train_mode)
        self._budget.setValue(selection.budget_s)
        self._python.setText(selection.python)
        self._arguments.setText(shlex.join(selection.arguments))
        self._is_showing = False

    def _connect(self) -> None:
        for chips in (self._modes, self._backends, self._dynamics, self._fullgraphs):
            chips.changed.connect(self._choose)
        for box in (self._devices, self._phase, self._precision):
            box.currentIndexChanged.connect(self._choose)
        self._budget.valueChanged.connect(self._choose)
        self._train_mode.toggled.connect(self._choose)
        self._arguments.editingFinished.connect(self._choose_arguments)
        self._python.editingFinished.connect(self._choose_python)
        self._state.environment_changed.connect(self.refresh)

    def _build(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        self._problem = label("", "note", wrap=True)
        layout.addWidget(self._problem)
        layout.addWidget(Section("Compare", self._compared_part()))
        layout.addWidget(Section("Workload", self._workload_part()))
        layout.addWidget(Section("Advanced", self._advanced_part(), is_open=False))
        layout.addStretch(1)

    def _compared_part(self) -> QWidget:
        self._modes = TickList("Mode", ["default"])
        self._modes.setObjectName("modes")
        self._dynamics = ChipRow("dynamic", ("auto", "on", "off"))
        self._dynamics.setToolTip("torch.compile(dynamic=…): auto turns shapes symbolic once they change.")
        self._fullgraphs = ChipRow("fullgraph", ("off", "on"))
        self._fullgraphs.setToolTip("torch.compile(fullgraph=True) makes a graph break an error.")
        self._backends = TickList("Backend", ["inductor"], columns=2)
        self._backends.setObjectName("backends")
        grid = _Grid()
        grid.add("mode", self._modes)
        grid.add("dynamic", self._dynamics)
        grid.add("fullgraph", self._fullgraphs)
        grid.add("backend", self._backends)
        return grid

    def _workload_part(self) -> QWidget:
        self._devices = _combo("Device")
        self._phase = _combo("Phase")
        for phase in PHASES:
            self._phase.addItem(_PHASE_NAMES[phase], phase)
        self._precision = _combo("Precision")
        for precision in PRECISIONS:
            self._precision.addItem(precision, precision)
        self._precision_note = label("", "note", wrap=True)
        self._budget = QDoubleSpinBox()
        self._budget.setAccessibleName("Seconds of timing per configuration")
        self._budget.setToolTip("Timed seconds per configuration, half in each process; fewer where it is sure sooner.")
        self._budget.setRange(0.5, 3600)
        self._budget.setDecimals(1)
        self._budget.setSuffix(" s")
        self._budget.lineEdit().setTextMargins(5, 0, 0, 0)
        grid = _Grid()
        grid.add("device", self._devices)
        grid.add("phase", self._phase)
        grid.add("precision", self._precision, self._precision_note)
        grid.add("timing", self._budget)
        return grid

    def _advanced_part(self) -> QWidget:
        self._python = QLineEdit()
        self._python.setObjectName("python")
        self._python.setAccessibleName("Interpreter that runs the script")
        self._python.setPlaceholderText("the one CompileScope runs in")
        self._python.setToolTip("Path of the Python that has your torch. It is asked again when you leave the field.")
        self._arguments = QLineEdit()
        self._arguments.setAccessibleName("Arguments of the script")
        self._arguments.setPlaceholderText("none")
        self._arguments.setToolTip("What the script finds in sys.argv, as in a shell.")
        self._arguments_note = label("", "note", wrap=True)
        self._train_mode = QCheckBox("Keep training mode in inference")
        self._train_mode.setToolTip("Measure inference without calling eval() first.")
        grid = _Grid()
        grid.add("python", self._python)
        grid.add("arguments", self._arguments, self._arguments_note)
        grid.add("", self._train_mode)
        return grid


class _Grid(QWidget):
    """Rows of a name and a control, with an optional note under it."""

    def __init__(self) -> None:
        super().__init__()
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(2, 2, 0, 0)
        self._layout.setHorizontalSpacing(10)
        self._layout.setVerticalSpacing(7)
        self._layout.setColumnMinimumWidth(0, 64)
        self._layout.setColumnStretch(1, 1)

    def add(self, name: str, control: QWidget, note: QLabel | None = None) -> None:
        row = self._layout.rowCount()
        if name:
            title = label(name, "muted")
            title.setBuddy(control)
            title.setContentsMargins(0, 4, 0, 0)
            self._layout.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
        self._layout.addWidget(control, row, 1 if name else 0, 1, 1 if name else 2)
        if note is not None:
            self._layout.addWidget(note, row + 1, 1)


def _mode_rank(name: str) -> int:
    """The documented modes first, in the order of what they cost."""
    return _MODES.index(name) if name in _MODES else len(_MODES)


def _combo(name: str) -> QComboBox:
    box = QComboBox()
    box.setObjectName(name.lower())
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(10)
    return box


def _say(note: QLabel, text: str) -> None:
    note.setText(text)
    note.setVisible(bool(text))
