"""The panes that explain a run, as the workspace's tabs: which are wanted, and what their tabs say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from compilescope.domain import cudagraphs
from compilescope.domain.run import Run
from compilescope.domain.shapes import dimensions
from compilescope.ui.compiler.autotune_pane import AutotunePane
from compilescope.ui.compiler.cache_pane import CachePane
from compilescope.ui.compiler.code_pane import CodePane
from compilescope.ui.compiler.cudagraphs_pane import CudaGraphsPane
from compilescope.ui.compiler.guards_pane import GuardsPane
from compilescope.ui.compiler.run_pane import RunPane
from compilescope.ui.compiler.shapes_pane import ShapesPane
from compilescope.ui.state import AppState
from compilescope.ui.theme import Theme


@dataclass(frozen=True, kw_only=True)
class PaneTab:
    """A pane and its tab. `is_wanted`: it has something to say of this run; `count` stands beside the title."""

    pane: RunPane
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
        self.shapes = ShapesPane(state, theme)
        self.cache = CachePane(state, theme)
        self.cudagraphs = CudaGraphsPane(state, theme)
        self.autotune = AutotunePane(state, theme)
        self.code = CodePane(state, theme)
        self.guards = GuardsPane(state, theme)
        self.tabs = (
            PaneTab(pane=self.shapes, title="Shapes", is_wanted=_has_symbols, count=_dimensions),
            PaneTab(pane=self.cache, title="Cache", is_wanted=_has_lookups, count=_nothing),
            PaneTab(pane=self.cudagraphs, title="CUDA graphs", is_wanted=cudagraphs.is_wanted, count=_nothing),
            PaneTab(pane=self.autotune, title="Autotune", is_wanted=_has_autotunes, count=_autotunes),
            PaneTab(pane=self.code, title="Code", is_wanted=_has_texts, count=_nothing),
            PaneTab(pane=self.guards, title="Guards", is_wanted=_has_guards, count=_nothing),
        )
        for tab in self.tabs:
            tab.pane.line_wanted.connect(self.line_wanted)
        self.cache.question_asked.connect(self.question_asked)
        self.cache.said.connect(self.said)
        self.code.said.connect(self.said)
        self.code.failed.connect(self.failed)

    def close(self) -> None:
        """End the threads that read texts."""
        self.cache.close_reader()
        self.code.close_reader()
        self.guards.close_reader()


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
    return any(text.kind == "guards" for text in run.story.texts) if run.story else False


def _nothing(_run: Run) -> int:
    return 0
