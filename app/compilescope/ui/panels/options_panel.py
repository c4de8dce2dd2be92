"""What to compare: every option may be ticked several times, and their product runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QVBoxLayout,
    QWidget,
)

from compilescope.domain.availability import backend_note, mode_note, precision_note
from compilescope.domain.config import Scope
from compilescope.domain.workload import PRECISIONS, Phase
from compilescope.ui.panels.advanced_options import AdvancedOptions
from compilescope.ui.panels.choices import ChipRow, TickList
from compilescope.ui.panels.form import Form, combo, say
from compilescope.ui.state import AppState
from compilescope.ui.widgets import Section, label, plain_tip

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
SCOPES: dict[str, Scope] = {"model": "model", "whole step": "step"}
PHASE_NAMES: dict[Phase, str] = {"inference": "inference", "training": "training step"}


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
        offers = device_offers(devices)
        if [self._devices.itemData(i) for i in range(self._devices.count())] == [cards for cards, _ in offers]:
            return
        self._devices.clear()
        for cards, text in offers:
            self._devices.addItem(text, cards)
            self._devices.setItemData(self._devices.count() - 1, plain_tip(text), Qt.ItemDataRole.ToolTipRole)
        self._devices.setEnabled(True)
        self._choose_device()

    def _choose_device(self) -> None:
        selection = self._state.selection
        known = [self._devices.itemData(index) for index in range(self._devices.count())]
        wanted = selection.cards or (str(selection.device),)
        self._devices.setCurrentIndex(known.index(wanted) if wanted in known else 0)

    def _show_notes(self) -> None:
        environment = self._state.environment
        device = self._device
        self._modes.explain({name: mode_note(name, device) for name in self._modes.names})
        self._backends.explain({name: backend_note(name, device) for name in self._backends.names})
        self._scopes.setEnabled(PHASE_NAMES["training"] in self._phases.chosen)
        needs_inductor = "inductor" not in self._backends.chosen
        self._modes.setEnabled(not needs_inductor)
        capability = environment.device_capability if environment else None
        notes = dict.fromkeys(precision_note(name, device, capability) for name in self._precisions.chosen)
        say(self._precision_note, " ".join(note for note in notes if note))
        problem = self._state.environment_problem
        # that a torch has no CUDA is no problem, but a missing compiler is
        missing = [text for text in (environment.missing if environment else ()) if "cannot build" in text]
        say(self._problem, problem or " ".join(missing))

    @property
    def _device(self) -> str | None:
        """Of several, the first: they are of one kind."""
        chosen = self._devices.currentData()
        return str(chosen[0]) if chosen else None

    @property
    def _cards(self) -> tuple[str, ...]:
        """The devices that share the rows; none where one device does it all."""
        chosen = self._devices.currentData()
        return tuple(chosen) if chosen and len(chosen) > 1 else ()

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
            device="cuda" if self._cards else self._device,
            cards=self._cards,
            phases=tuple(phase for phase, name in PHASE_NAMES.items() if name in self._phases.chosen),
            precisions=tuple(precision for precision in PRECISIONS if precision in self._precisions.chosen),
            budget_s=self._budget.value(),
            scopes=tuple(SCOPES[name] for name in self._scopes.chosen),
        )
        self._show_notes()
        self._is_showing = True  # it says what the controls say
        self._state.set_selection(selection)
        self._is_showing = False

    def _adopt(self) -> None:
        """Show a selection that came from elsewhere."""
        if not self._is_showing:
            self._show_selection()
            self._show_notes()

    def _show_selection(self) -> None:
        selection = self._state.selection
        self._is_showing = True
        names = {None: "auto", True: "on", False: "off"}
        self._modes.choose(selection.modes)
        self._backends.choose(selection.backends)
        self._dynamics.choose([names[value] for value in selection.dynamics])
        self._fullgraphs.choose([names[value] for value in selection.fullgraphs])
        self._phases.choose([PHASE_NAMES[phase] for phase in selection.phases])
        self._precisions.choose(selection.precisions)
        self._budget.setValue(selection.budget_s)
        self._scopes.choose([name for name, scope in SCOPES.items() if scope in selection.scopes])
        self._choose_device()
        self._is_showing = False

    def _connect(self) -> None:
        compared = (self._modes, self._backends, self._dynamics, self._fullgraphs, self._scopes)
        for chips in (*compared, self._phases, self._precisions):
            chips.changed.connect(self._choose)
        self._devices.currentIndexChanged.connect(self._choose)
        self._budget.valueChanged.connect(self._choose)
        self._advanced.python_chosen.connect(self.python_chosen)
        self._state.environment_changed.connect(self.refresh)
        self._state.selection_changed.connect(self._adopt)

    def _build(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        self._problem = label("", "note", wrap=True)
        layout.addWidget(self._problem)
        layout.addWidget(Section("Compare", self._compared_part()))
        layout.addWidget(Section("Workload", self._workload_part()))
        self._advanced = AdvancedOptions(self._state)
        layout.addWidget(Section("Advanced", self._advanced, is_open=False))
        layout.addStretch(1)

    def _compared_part(self) -> QWidget:
        self._modes = TickList("Mode", ["default"])
        self._modes.setObjectName("modes")
        self._dynamics = ChipRow("dynamic", ("auto", "on", "off"))
        self._dynamics.setToolTip("torch.compile(dynamic=…): auto turns shapes symbolic once they change.")
        self._fullgraphs = ChipRow("fullgraph", ("off", "on"))
        self._fullgraphs.setToolTip("torch.compile(fullgraph=True) makes a graph break an error.")
        self._scopes = ChipRow("compile", tuple(SCOPES))
        self._scopes.setToolTip(
            "In training: the model with its backward pass, or the step as one function: forward, loss, backward and "
            "optimizer."
        )
        self._backends = TickList("Backend", ["inductor"], columns=2)
        self._backends.setObjectName("backends")
        grid = Form()
        grid.add("mode", self._modes)
        grid.add("dynamic", self._dynamics)
        grid.add("fullgraph", self._fullgraphs)
        grid.add("backend", self._backends)
        grid.add("compile", self._scopes)
        return grid

    def _workload_part(self) -> QWidget:
        self._devices = combo("Device")
        self._phases = ChipRow("phase", tuple(PHASE_NAMES.values()))
        self._phases.setToolTip("Each phase is compared with its own eager.")
        self._precisions = ChipRow("precision", PRECISIONS)
        self._precisions.setToolTip("Each precision is compared with its own eager; bf16 and fp16 by autocast.")
        self._precision_note = label("", "note", wrap=True)
        self._budget = QDoubleSpinBox()
        self._budget.setAccessibleName("Seconds of timing per configuration")
        self._budget.setToolTip("Timed seconds per configuration, half in each process; fewer where it is sure sooner.")
        self._budget.setRange(0.5, 3600)
        self._budget.setDecimals(1)
        self._budget.setSuffix(" s")
        self._budget.lineEdit().setTextMargins(5, 0, 0, 0)
        grid = Form()
        grid.add("device", self._devices)
        grid.add("phase", self._phases)
        grid.add("precision", self._precisions, self._precision_note)
        grid.add("timing", self._budget)
        return grid


def device_offers(devices: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[str, ...], str]]:
    """What can carry the rows, and its name: each device alone, and the cards of one kind together.

    Cards of two kinds are not put together: the same row would be two measurements.
    """
    listed = [(str(device["id"]), str(device.get("name") or device["id"])) for device in devices]
    offers = [((identity,), "CPU" if identity == "cpu" else f"{name} ({identity})") for identity, name in listed]
    kinds: dict[str, list[str]] = {}
    for identity, name in listed:
        if identity.startswith("cuda"):
            kinds.setdefault(name, []).append(identity)
    together = [(tuple(cards), f"{len(cards)} × {name} at once") for name, cards in kinds.items() if len(cards) > 1]
    return [*offers, *together]


def _mode_rank(name: str) -> int:
    """The documented modes first, in the order of what they cost."""
    return _MODES.index(name) if name in _MODES else len(_MODES)
