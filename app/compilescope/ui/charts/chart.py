"""What every chart has: a title with its key, and a sentence in its place while there is nothing to draw."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from compilescope.ui.charts.legend import Keys
from compilescope.ui.theme import Theme
from compilescope.ui.widgets import label


class Chart(QWidget):
    """A frame around `view`, which draws. Subclasses override `restyle` and `fit_range`."""

    def __init__(self, theme: Theme, title: str, view: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.is_fitted = True
        self._view = view
        view.setAccessibleName(title)
        self._build(title)
        theme.changed.connect(self.restyle)

    @property
    def is_empty(self) -> bool:
        return self._pages.currentWidget() is self._empty

    def show_empty(self, sentence: str) -> None:
        """Show a sentence instead of axes without data."""
        self._empty.setText(sentence)
        self._pages.setCurrentWidget(self._empty)
        self.keys.setVisible(False)
        self._note.clear()
        self._view.setAccessibleDescription(sentence)

    def show_view(self, summary: str) -> None:
        """Show the drawing; `summary` says in words what it shows."""
        self._pages.setCurrentWidget(self._view)
        self.keys.setVisible(True)
        self._view.setAccessibleDescription(summary)

    def add_control(self, control: QWidget) -> None:
        """Put a control at the right end of the title's row."""
        self._top.insertWidget(self._top.indexOf(self._fit), control)

    def show_note(self, text: str) -> None:
        self._note.setText(text)

    def note_zoom(self) -> None:
        """The user has chosen what to see: leave it so, and offer the way back."""
        self.is_fitted = False
        self._fit.show()

    def fit(self) -> None:
        """Show all data, and follow it as it grows."""
        self.is_fitted = True
        self._fit.hide()
        self.fit_range()

    def fit_range(self) -> None:
        """Choose the range so that all data is seen."""

    def restyle(self) -> None:
        """Take the theme's colours; called when it has changed."""

    def _build(self, title: str) -> None:
        self.keys = Keys()
        self._note = label(role="muted")
        self._note.setObjectName("chart.note")
        self._fit: QToolButton = QToolButton()
        self._fit.setText("Fit")
        self._fit.setToolTip("Show all data again")
        self._fit.setObjectName("chart.fit")
        self._fit.setAccessibleName(f"Fit {title.lower()}")
        self._fit.clicked.connect(self.fit)
        # the row keeps its height when the button comes
        self.keys.setMinimumHeight(self._fit.sizeHint().height())
        self._fit.hide()
        self._empty = label(role="muted", wrap=True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setObjectName("chart.empty")
        self._empty.setMargin(16)
        self._pages: QStackedWidget = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(self._view)
        self._lay_out(label(title, "heading"))

    def _lay_out(self, heading: QLabel) -> None:
        self._top = QHBoxLayout()
        self._top.setContentsMargins(12, 4, 8, 2)
        self._top.setSpacing(18)
        self._top.addWidget(heading)
        self._top.addWidget(self.keys, 1)
        self._top.addWidget(self._note)
        self._top.addWidget(self._fit)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._top)
        layout.addWidget(self._pages, 1)
