"""Sets of options of which several may be on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QWidget

from compilescope.ui.widgets import chip, label, plain_tip


class ChipRow(QWidget):
    """A few short options side by side."""

    changed = Signal()

    def __init__(self, title: str, names: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(5)
        self._chips = {name: chip(name, f"{title} {name}") for name in names}
        for part in self._chips.values():
            part.toggled.connect(self.changed)
            layout.addWidget(part)
        layout.addStretch(1)
        self.setFocusProxy(self._chips[names[0]])

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(name for name, part in self._chips.items() if part.isChecked())

    def choose(self, names: Iterable[str]) -> None:
        wanted = set(names)
        for name, part in self._chips.items():
            part.setChecked(name in wanted)


def _before(parts: Sequence[QWidget]) -> QWidget | None:
    """What Tab leaves for the first of these parts."""
    found = parts[0].previousInFocusChain() if parts else None
    while found is not None and found.focusPolicy() == Qt.FocusPolicy.NoFocus and found is not parts[0]:
        found = found.previousInFocusChain()
    return found


class TickList(QWidget):
    """Options below each other, each with a tick and a note that may stand under it."""

    changed = Signal()

    def __init__(self, title: str, names: Sequence[str], *, columns: int = 1, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self._columns = columns
        self._ticks: dict[str, QCheckBox] = {}
        self._notes: dict[str, QLabel] = {}
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(10)
        self._layout.setVerticalSpacing(0)
        self.offer(names)

    @property
    def names(self) -> list[str]:
        return list(self._ticks)

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(name for name, tick in self._ticks.items() if tick.isChecked())

    def choose(self, names: Iterable[str]) -> None:
        wanted = list(names)
        self.offer([*self._ticks, *(name for name in wanted if name not in self._ticks)])
        for name, tick in self._ticks.items():
            tick.setChecked(name in wanted)

    def offer(self, names: Sequence[str]) -> None:
        """Show these options; what was ticked stays ticked where it is still there."""
        if list(names) == self.names:
            return
        before, place = set(self.chosen), _before(list(self._ticks.values()))
        for part in (*self._ticks.values(), *self._notes.values()):
            self._layout.removeWidget(part)
            part.deleteLater()
        self._ticks, self._notes = {}, {}
        for number, name in enumerate(names):
            tick, note = QCheckBox(name), label("", "faint", wrap=True)
            tick.setAccessibleName(f"{self._title} {name}")
            tick.setChecked(name in before)
            tick.toggled.connect(self.changed)
            note.setContentsMargins(22, 0, 0, 3)
            note.hide()
            self._ticks[name], self._notes[name] = tick, note
            row, column = divmod(number, self._columns)
            self._layout.addWidget(tick, 2 * row, column)
            self._layout.addWidget(note, 2 * row + 1, column)
            if place is not None:
                self.setTabOrder(place, tick)
                place = tick
        if set(self.chosen) != before:
            self.changed.emit()

    def explain(self, notes: Mapping[str, str]) -> None:
        """Say why an option does not do here what it is for; under those that are ticked, as a tooltip elsewhere."""
        for name, note in self._notes.items():
            text = notes.get(name, "")
            note.setText(text)
            note.setVisible(bool(text) and self._ticks[name].isChecked())
            self._ticks[name].setToolTip(plain_tip(text))
