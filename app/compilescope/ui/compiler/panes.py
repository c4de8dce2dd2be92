"""The panes that explain a run, as the workspace's tabs: which are wanted, and what their tabs say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from compilescope.domain import cudagraphs
from compilescope.domain.hotspots import is_profiled
from compilescope.domain.keyhistory import Sources
from compilescope.domain.run import Run
from compilescope.domain.shapes import dimensions
from compilescope.ui.compiler.late import LatePane
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme

if TYPE_CHECKING:
    from compilescope.ui.compiler.run_pane import RunPane


@dataclass(frozen=True, kw_only=True)
class PaneTab:
    """A pane and its tab. `is_wanted`: it has something to say of this run; `count` stands beside the title."""

    pane: LatePane
    title: str
    is_wanted: Callable[[Run], bool]
    count: Callable[[Run], int]


class CompilerPanes(QObject):
    """Builds the panes and hands on what they ask for."""

    line_wanted = Signal(str, int)
    question_asked = Signal(str, str, object)  # sentence, what the button says, what it does
    said = Signal(str)
    failed = Signal(str)

    def __init__(self, state: AppState, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state, self._theme = state, theme
        # where the cache ledger finds earlier keys besides those of the comparison that is shown
        self.key_sources: Callable[[], Sources] = Sources
        self.hotspots = LatePane(self._make_hotspots)
        self.shapes = LatePane(self._make_shapes)
        self.cache = LatePane(self._make_cache)
        self.cudagraphs = LatePane(self._make_cudagraphs)
        self.autotune = LatePane(self._make_autotune)
        self.code = LatePane(self._make_code)
        self.guards = LatePane(self._make_guards)
        self.tabs = (
            PaneTab(pane=self.hotspots, title="Where the time goes", is_wanted=is_profiled, count=_nothing),
            PaneTab(pane=self.shapes, title="Shapes", is_wanted=_has_symbols, count=_dimensions),
            PaneTab(pane=self.cache, title="Cache", is_wanted=_has_lookups, count=_nothing),
            PaneTab(pane=self.cudagraphs, title="CUDA graphs", is_wanted=cudagraphs.is_wanted, count=_nothing),
            PaneTab(pane=self.autotune, title="Autotune", is_wanted=_has_autotunes, count=_autotunes),
            PaneTab(pane=self.code, title="Code", is_wanted=_has_texts, count=_nothing),
            PaneTab(pane=self.guards, title="Guards", is_wanted=_has_guards, count=_nothing),
        )

        # keys of one comparison explain a miss in a later one, also where nobody looked at the pane in between
        state.comparison_changed.connect(self._begin_to_remember)

    def close(self) -> None:
        """End the threads that read texts."""
        for pane in (self.cache, self.code, self.guards):
            pane.close_reader()

    def _begin_to_remember(self) -> None:
        _ = self.cache.pane

    # each is imported when it is first seen: the window opens sooner, and many runs never ask

    def _make_hotspots(self) -> RunPane:
        from compilescope.ui.compiler.hotspots_pane import HotspotsPane

        return self._connected(HotspotsPane(self._state, self._theme))

    def _make_shapes(self) -> RunPane:
        from compilescope.ui.compiler.shapes_pane import ShapesPane

        return self._connected(ShapesPane(self._state, self._theme))

    def _make_cache(self) -> RunPane:
        from compilescope.ui.compiler.cache_pane import CachePane

        pane = CachePane(self._state, self._theme, lambda: self.key_sources())
        pane.question_asked.connect(self.question_asked)
        pane.said.connect(self.said)
        return self._connected(pane)

    def _make_cudagraphs(self) -> RunPane:
        from compilescope.ui.compiler.cudagraphs_pane import CudaGraphsPane

        return self._connected(CudaGraphsPane(self._state, self._theme))

    def _make_autotune(self) -> RunPane:
        from compilescope.ui.compiler.autotune_pane import AutotunePane

        return self._connected(AutotunePane(self._state, self._theme))

    def _make_code(self) -> RunPane:
        from compilescope.ui.compiler.code_pane import CodePane

        pane = CodePane(self._state, self._theme)
        pane.said.connect(self.said)
        pane.failed.connect(self.failed)
        return self._connected(pane)

    def _make_guards(self) -> RunPane:
        from compilescope.ui.compiler.guards_pane import GuardsPane

        return self._connected(GuardsPane(self._state, self._theme))

    def _connected(self, pane: RunPane) -> RunPane:
        pane.line_wanted.connect(self.line_wanted)
        return pane


def _has_symbols(run: Run) -> bool:
    return bool(run.story and run.story.symbols)


def _dimensions(run: Run) -> int:
    return len(dimensions(run.story.symbols)) if run.story else 0


def _has_lookups(run: Run) -> bool:
    return any(process.cache for process in run.processes)


def _has_autotunes(run: Run) -> bool:
    return bool(run.story and run.story.autotunes)


def _autotunes(run: Run) -> int:
    return len(run.story.autotunes) if run.story else 0


def _has_texts(run: Run) -> bool:
    return any(process.texts for process in run.processes)


def _has_guards(run: Run) -> bool:
    return run.story is not None and "guards" in run.story.text_kinds


def _nothing(_run: Run) -> int:
    return 0
