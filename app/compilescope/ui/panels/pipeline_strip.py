"""The strip at the top: how the run in progress, or the one shown, goes through the compiler."""

from __future__ import annotations

import time
from itertools import pairwise

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFont, QFontMetrics, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from compilescope.domain import units
from compilescope.domain.pipeline import NAMES, State, Step, pipeline
from compilescope.domain.run import Run
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme, Tokens
from compilescope.ui.widgets import plain_tip

TICK_MS = 100
HEIGHT = 52
MARK = 12

TIPS = {
    "Script": "Imports the script, builds model and inputs, and calls the model once without the compiler.",
    "Dynamo": "Reads the model's Python code and captures it as graphs. Where it has to leave one, that is a break.",
    "AOTAutograd": "Traces forward and backward together and reduces them to basic operations.",
    "Inductor": "Fuses operations, plans loops and writes the kernels' code.",
    "Kernels": "Builds the kernels (Triton, or C++ on a CPU), and tries variants where autotuning is on.",
    "CUDA graphs": "Records all launches of a call once, to replay them together.",
    "Measured": "Checks the results against eager, warms up, and times eager and compiled in turns.",
}


class PipelineStrip(QWidget):
    """Painted as a whole, so that it never changes its layout while numbers come in."""

    def __init__(self, state: AppState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._theme = theme
        self._steps: tuple[Step, ...] = pipeline(None)
        self._revision: tuple[object, ...] = ()
        self._seen: dict[str, tuple[float, float]] = {}
        self.setObjectName("pipeline_strip")
        self.setMinimumWidth(7 * 78)
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.refresh)
        state.run_changed.connect(self.refresh)
        state.shown_run_changed.connect(self.refresh)
        state.activity_changed.connect(self._follow_activity)
        theme.changed.connect(self.update)
        self.refresh()

    @property
    def run(self) -> Run | None:
        """The run in progress, else the one shown."""
        return self._state.run(self._state.running_id) or self._state.shown

    @property
    def steps(self) -> tuple[Step, ...]:
        return self._steps

    def refresh(self) -> None:
        run = self.run
        revision = (run.id, run.revision["all"]) if run else ()
        if revision != self._revision:
            self._revision = revision
            self._steps = pipeline(run)
            self._note_clocks(run)
            self.setAccessibleName("Pipeline: " + "; ".join(_spoken(step) for step in self._steps))
        self.update()

    def _follow_activity(self) -> None:
        if self._state.running_id:
            self._timer.start()
        else:
            self._timer.stop()
        self.refresh()

    def _note_clocks(self, run: Run | None) -> None:
        """Remember when each step that is on was last heard of, so that its time goes on between events."""
        now = time.monotonic()
        self._seen = {
            step.name: (now, step.duration_s or 0.0) for step in self._steps if run and step.state is State.ON
        }

    def _elapsed(self, step: Step) -> float | None:
        if step.state is State.ON and step.name in self._seen and self._state.running_id:
            since, before = self._seen[step.name]
            return before + time.monotonic() - since
        return step.duration_s

    def _cells(self) -> list[QRect]:
        edges = [round(i * self.width() / len(NAMES)) for i in range(len(NAMES) + 1)]
        return [QRect(left, 0, right - left, self.height()) for left, right in pairwise(edges)]

    def _draw(self, painter: QPainter, cell: QRect, step: Step) -> None:
        tokens = self._theme.tokens
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold if step.state is State.ON else QFont.Weight.Normal)
        left, width = cell.left() + 9, cell.width() - 12
        if width > 104:
            _mark(painter, QPointF(left + MARK / 2, 17), step.state, tokens)
            left, width = left + MARK + 5, width - MARK - 5
        painter.setFont(bold)
        painter.setPen(QColor(_name_color(step.state, tokens)))
        name = QFontMetrics(bold).elidedText(step.name, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(left, 7, width, 20), int(Qt.AlignmentFlag.AlignVCenter), name)
        self._draw_result(painter, QRect(left, 25, width, 18), step)
        bar = QRectF(cell.left() + 3, cell.height() - 3, cell.width() - 6, 2)
        painter.fillRect(bar, QColor(_bar_color(step.state, tokens)))

    def _draw_result(self, painter: QPainter, place: QRect, step: Step) -> None:
        tokens = self._theme.tokens
        small = QFont(self.font())
        small.setPointSizeF(small.pointSizeF() - 0.75)
        painter.setFont(small)
        elapsed = self._elapsed(step)
        clock = _clock(elapsed) if step.state is not State.ABSENT and elapsed is not None else ""
        painter.setPen(QColor(tokens.muted))
        painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), clock)
        used = QFontMetrics(small).horizontalAdvance(clock) + (7 if clock else 0)
        detail = "stopped" if step.state is State.STOPPED else step.detail
        detail = detail or ("not used" if step.state is State.ABSENT else "")
        has_breaks = step.name == "Dynamo" and "break" in step.detail
        painter.setPen(QColor(tokens.warn if has_breaks else tokens.faint))
        rest = place.adjusted(used, 0, 0, 0)
        painter.drawText(rest, int(Qt.AlignmentFlag.AlignVCenter), _fitting(detail, QFontMetrics(small), rest.width()))

    # Qt overrides

    def sizeHint(self) -> QSize:
        return QSize(7 * 120, HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for cell, step in zip(self._cells(), self._steps, strict=True):
            self._draw(painter, cell, step)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            for cell, step in zip(self._cells(), self._steps, strict=True):
                if cell.contains(event.pos()):
                    QToolTip.showText(event.globalPos(), plain_tip(f"{_spoken(step)}\n{TIPS[step.name]}"), self, cell)
            return True
        return super().event(event)


def _mark(painter: QPainter, centre: QPointF, state: State, tokens: Tokens) -> None:
    """A tick, a dot, a square, a cross or a ring: the state must not hang on colour alone."""
    x, y = centre.x(), centre.y()
    if state is State.DONE:
        path = QPainterPath(QPointF(x - 4.5, y))
        path.lineTo(x - 1.5, y + 3.2)
        path.lineTo(x + 4.5, y - 3.5)
        painter.strokePath(path, QPen(QColor(tokens.good), 1.6))
    elif state is State.FAILED:
        painter.setPen(QPen(QColor(tokens.bad), 1.6))
        painter.drawLine(QPointF(x - 3.5, y - 3.5), QPointF(x + 3.5, y + 3.5))
        painter.drawLine(QPointF(x - 3.5, y + 3.5), QPointF(x + 3.5, y - 3.5))
    elif state is State.STOPPED:
        painter.fillRect(QRectF(x - 3.5, y - 3.5, 7, 7), QColor(tokens.warn))
    elif state is State.ON:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.accent))
        painter.drawEllipse(centre, 4, 4)
    elif state is State.ABSENT:
        painter.setPen(QPen(QColor(tokens.faint), 1.4))
        painter.drawLine(QPointF(x - 4, y), QPointF(x + 4, y))
    else:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(tokens.strong_border), 1.2))
        painter.drawEllipse(centre, 3.5, 3.5)


def _fitting(detail: str, metrics: QFontMetrics, width: int) -> str:
    """As much of a list as there is room for; what matters most stands last. The tooltip has it all."""
    parts = detail.split(", ")
    while len(parts) > 1 and metrics.horizontalAdvance(", ".join(parts)) > width:
        del parts[0]
    return metrics.elidedText(", ".join(parts), Qt.TextElideMode.ElideRight, width) if width > 24 else ""


def _name_color(state: State, tokens: Tokens) -> str:
    if state is State.FAILED:
        return tokens.bad
    return tokens.text if state in (State.ON, State.DONE, State.STOPPED) else tokens.faint


def _bar_color(state: State, tokens: Tokens) -> str:
    colors = {State.ON: tokens.accent, State.DONE: tokens.good, State.FAILED: tokens.bad, State.STOPPED: tokens.warn}
    return colors.get(state, tokens.border)


def _clock(seconds: float) -> str:
    """Tenths are enough here, and keep the digits from dancing."""
    return f"{seconds:.1f} s" if seconds < 100 else units.duration(round(seconds))


def _spoken(step: Step) -> str:
    words = {State.ON: "in progress", State.ABSENT: "" if step.detail else "not used"}
    parts = [word] if (word := words.get(step.state, step.state.value)) else []
    if step.duration_s is not None and step.state is not State.ABSENT:
        parts.append(units.duration(step.duration_s))
    if step.detail:
        parts.append(step.detail)
    return f"{step.name}: {', '.join(parts)}"
