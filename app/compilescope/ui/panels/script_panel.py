"""The script: where it is, what it offers, and the inputs that a worker found."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from compilescope.domain import units
from compilescope.domain.events import Entry, Input
from compilescope.ui.state import AppState
from compilescope.ui.widgets import ElidedLabel, button, label, plain_tip, set_role


class ScriptPanel(QWidget):
    """Entries come from the script's text at once; inputs from the worker, after Inspect or Run."""

    open_wanted = Signal()
    inspect_wanted = Signal()

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._build()
        state.script_changed.connect(self.refresh)
        state.inspection_changed.connect(self.refresh)
        state.activity_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        script, scan = self._state.script, self._state.scan
        set_role(self._target, "filled", "true" if script else "false")
        self._name.setText(script.name if script else "No script yet")
        folder = _short(script.parent) if script else "Drop a Python file"
        self._folder.setText(folder)
        self._folder.setToolTip(plain_tip(str(script) if script else ""))
        lesson = scan.docstring.partition("\n")[0] if scan else ""
        self._lesson.setText(lesson)
        self._lesson.setVisible(bool(lesson))
        problem = scan.problem if scan else ""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self._details.setVisible(script is not None)
        self._show_entries(self._entries())
        self._show_inputs()
        self._open.setEnabled(not self._state.is_busy)
        self._inspect.setEnabled(self._state.is_idle)
        self._inspect.setText("Inspecting…" if self._state.is_inspecting else "Inspect")

    def set_dragged(self, is_dragged: bool) -> None:
        """Show that a file which hangs over the window may fall."""
        set_role(self._target, "dragged", "true" if is_dragged else "false")

    def _entries(self) -> tuple[Entry, ...]:
        """The worker's word where there is one, else what the text says."""
        if self._state.inspection and self._state.inspection.entries:
            return self._state.inspection.entries
        return self._state.scan.entries if self._state.scan else ()

    def _show_entries(self, entries: tuple[Entry, ...]) -> None:
        listed = [self._entry.itemData(i) for i in range(self._entry.count())]
        self._entry.setEnabled(len(entries) > 1 and not self._state.is_busy)
        if listed == [entry.name for entry in entries]:
            return
        self._entry.blockSignals(True)
        self._entry.clear()
        for entry in entries:
            self._entry.addItem(f"{entry.name}   {entry.kind}", entry.name)
            tip = f"{entry.detail}, line {entry.line}" if entry.line else entry.detail
            self._entry.setItemData(self._entry.count() - 1, plain_tip(tip), Qt.ItemDataRole.ToolTipRole)
        wanted = self._entry.findData(self._state.selection.entry)
        self._entry.setCurrentIndex(max(wanted, 0))
        self._entry.blockSignals(False)

    def _show_inputs(self) -> None:
        inspection, scan = self._state.inspection, self._state.scan
        # to a file that offers nothing there are no inputs to be seen
        self._inputs.setVisible(inspection is not None or not (scan and scan.problem))
        if inspection is None:
            self._inputs.setText("Inspect runs the script to see its inputs; so does a comparison.")
            set_role(self._inputs, "role", "faint")
            return
        lines = [_input_text(item) for item in inspection.inputs] or ["no inputs"]
        if inspection.parameters is not None:
            size = f", {units.size(inspection.parameter_bytes)}" if inspection.parameter_bytes else ""
            lines.append(f"{units.count(inspection.parameters)} parameters{size}")
        set_role(self._inputs, "role", "")
        self._inputs.setText("\n".join(lines))

    def _choose_entry(self, index: int) -> None:
        self._state.set_selection(dataclasses.replace(self._state.selection, entry=self._entry.itemData(index)))

    def _build(self) -> None:
        self._target = QFrame()
        self._target.setObjectName("drop_target")
        self._name = ElidedLabel("", "heading", Qt.TextElideMode.ElideMiddle)
        self._folder = ElidedLabel("", "muted", Qt.TextElideMode.ElideMiddle)
        self._open = button("Open…")
        self._open.setObjectName("open_button")
        self._open.setAccessibleName("Open a model script")
        self._open.clicked.connect(self.open_wanted)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self._name)
        words.addWidget(self._folder)
        inside = QHBoxLayout(self._target)
        inside.setContentsMargins(11, 8, 8, 8)
        inside.addLayout(words, 1)
        inside.addWidget(self._open)
        self._lesson = label("", "muted", wrap=True)
        self._problem = label("", "bad", wrap=True)
        self._details = self._details_part()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(7)
        for part in (self._target, self._problem, self._lesson, self._details):
            layout.addWidget(part)

    def _details_part(self) -> QWidget:
        self._entry = QComboBox()
        self._entry.setObjectName("entry")
        self._entry.setAccessibleName("Entry of the script")
        self._entry.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._entry.setMinimumContentsLength(8)
        self._entry.currentIndexChanged.connect(self._choose_entry)
        self._inspect = button("Inspect")
        self._inspect.setObjectName("inspect_button")
        self._inspect.setToolTip("Run the script to see its entries and inputs. Nothing is compiled.")
        self._inspect.clicked.connect(self.inspect_wanted)
        self._inputs = label("", "faint", wrap=True)
        self._inputs.setObjectName("inputs")
        self._inputs.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self._entry, 1)
        row.addWidget(self._inspect)
        details = QWidget()
        layout = QVBoxLayout(details)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(row)
        layout.addWidget(self._inputs)
        return details


def _short(folder: Path) -> str:
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except ValueError:
        return str(folder)


def _input_text(item: Input) -> str:
    if item.shape is None:
        return f"{item.name}  {item.detail}".rstrip()
    shape = " × ".join(str(size) for size in item.shape) or "scalar"
    return f"{item.name}  {(item.dtype or '').removeprefix('torch.')}  {shape}"
