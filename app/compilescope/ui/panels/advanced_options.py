"""What few change: the interpreter, the script's arguments, and how exactly a call is made and timed."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QSpinBox, QVBoxLayout, QWidget

from compilescope.domain.availability import l2_flush_note
from compilescope.domain.workload import GRAD_MODES
from compilescope.ui.panels.form import Form, combo, say
from compilescope.ui.selection import Selection
from compilescope.ui.state import AppState
from compilescope.ui.widgets import label

MOST_THREADS = 1024


class AdvancedOptions(QWidget):
    """Writes its part of the selection."""

    python_chosen = Signal()

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._is_showing = False
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._form())
        self._show(state.selection)
        self._connect()
        self.refresh()

    def refresh(self) -> None:
        """What cannot apply to the workload that is chosen is said, or cannot be ticked."""
        is_inference = "inference" in self._state.selection.phases
        self._train_mode.setEnabled(is_inference)
        self._grad_mode.setEnabled(is_inference)
        devices = self._state.environment.devices if self._state.environment else ()
        first = str(devices[0]["id"]) if devices else None
        say(self._l2_note, l2_flush_note(self._state.selection.device or first))

    def _show(self, selection: Selection) -> None:
        self._shown = _own(selection)
        say(self._arguments_note, "")
        self._python.setText(selection.python)
        self._arguments.setText(shlex.join(selection.arguments))
        self._train_mode.setChecked(selection.train_mode)
        self._grad_mode.setCurrentIndex(self._grad_mode.findData(selection.grad_mode))
        self._threads.setValue(selection.threads or 0)
        self._l2_flush.setChecked(selection.l2_flush)

    def _connect(self) -> None:
        self._python.editingFinished.connect(self._choose_python)
        self._arguments.editingFinished.connect(self._choose_arguments)
        self._train_mode.toggled.connect(self._choose)
        self._grad_mode.currentIndexChanged.connect(self._choose)
        self._threads.valueChanged.connect(self._choose)
        self._l2_flush.toggled.connect(self._choose)
        self._state.selection_changed.connect(self._adopt)
        self._state.environment_changed.connect(self.refresh)

    def _adopt(self) -> None:
        """Show a selection that came from elsewhere."""
        if not self._is_showing and _own(self._state.selection) != self._shown:
            self._is_showing = True
            self._show(self._state.selection)
            self._is_showing = False
        self.refresh()

    def _choose(self) -> None:
        if not self._is_showing:
            self._take(
                train_mode=self._train_mode.isChecked(),
                grad_mode=self._grad_mode.currentData(),
                threads=self._threads.value() or None,
                l2_flush=self._l2_flush.isChecked(),
            )

    def _take(self, **chosen: Any) -> None:
        self._is_showing = True  # it says what the controls say
        self._state.set_selection(dataclasses.replace(self._state.selection, **chosen))
        self._shown = _own(self._state.selection)
        self._is_showing = False

    def _choose_arguments(self) -> None:
        try:
            words = tuple(shlex.split(self._arguments.text()))
        except ValueError as error:
            say(self._arguments_note, f"{error}.")
            return
        say(self._arguments_note, "")
        self._take(arguments=words)

    def _choose_python(self) -> None:
        python = self._python.text().strip()
        if python != self._state.selection.python:
            self._take(python=python)
            self.python_chosen.emit()

    def _form(self) -> Form:
        form = Form()
        self._add_script(form)
        self._add_calls(form)
        return form

    def _add_script(self, form: Form) -> None:
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
        form.add("python", self._python)
        form.add("arguments", self._arguments, self._arguments_note)

    def _add_calls(self, form: Form) -> None:
        self._grad_mode = combo("Gradients")
        self._grad_mode.setToolTip("How inference is called: under torch.inference_mode() or torch.no_grad(), or with gradients on.")
        for mode in GRAD_MODES:
            self._grad_mode.addItem(mode, mode)
        self._threads = QSpinBox()
        self._threads.setObjectName("threads")
        self._threads.setAccessibleName("Threads that torch uses on the CPU")
        self._threads.setToolTip("torch.set_num_threads. A thread for each core is torch's own choice.")
        self._threads.setRange(0, MOST_THREADS)
        self._threads.setSpecialValueText("torch's choice")
        self._threads.lineEdit().setTextMargins(5, 0, 0, 0)
        self._train_mode = QCheckBox("Keep training mode in inference")
        self._train_mode.setToolTip("Measure inference without calling eval() first.")
        self._l2_flush = QCheckBox("Flush the L2 cache before each call")
        self._l2_flush.setObjectName("l2_flush")
        self._l2_flush.setToolTip("Writes over the GPU's L2 cache, outside of the time: no call finds its data there.")
        self._l2_note = label("", "note", wrap=True)
        form.add("gradients", self._grad_mode)
        form.add("threads", self._threads)
        form.add("", self._train_mode)
        form.add("", self._l2_flush, self._l2_note)


def _own(selection: Selection) -> tuple[object, ...]:
    """The part that is chosen here: while it stays, what is being typed does too."""
    of_script = (selection.python, selection.arguments)
    return (*of_script, selection.train_mode, selection.grad_mode, selection.threads, selection.l2_flush)
