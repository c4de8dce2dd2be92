"""The comparison as a file or on the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QLocale, QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from compilescope.domain.comparison import Comparison
from compilescope.domain.keyhistory import Sources, with_keys
from compilescope.ui.background import Background
from compilescope.ui.state import AppState

KINDS = {".json": "JSON", ".csv": "CSV", ".md": "Markdown", ".pdf": "PDF report"}


class ExportCommands(QObject):
    """Asks where to, writes in a thread, and says what was written."""

    said = Signal(str)
    failed = Signal(str, str)  # sentence, hint
    written = Signal(str, str, object)  # sentence, what the button says, what it does

    def __init__(self, state: AppState, window: QWidget) -> None:
        super().__init__(window)
        self._state = state
        self._window = window
        self._background = Background("exports", self)
        self._background.failed.connect(self.failed)
        # where the JSON finds what explains a cache key, besides the comparison itself
        self.key_sources: Callable[[], Sources] = Sources

    def close(self) -> None:
        """Finish what is being written."""
        self._background.close()

    def export_pdf(self) -> None:
        self._export(".pdf")

    def export_json(self) -> None:
        self._export(".json")

    def export_csv(self) -> None:
        self._export(".csv")

    def export_markdown(self) -> None:
        self._export(".md")

    def copy_markdown(self) -> None:
        comparison = self._comparison()
        self._background.do(partial(_markdown, comparison), self._put_on_clipboard)

    def _export(self, suffix: str) -> None:
        kinds = f"{KINDS[suffix]} (*{suffix})"
        name, _ = QFileDialog.getSaveFileName(self._window, f"Export {KINDS[suffix]}", self._proposal(suffix), kinds)
        if not name:
            return
        path = Path(name)
        # a name without an ending would be a file that no program opens
        path = path if path.suffix else path.with_suffix(suffix)
        if suffix == ".pdf":
            self.said.emit("Writing the report…")
        self._background.do(partial(self._write, suffix, path, self._comparison()), self._tell)

    def _proposal(self, suffix: str) -> str:
        """A name that says what is in the file, beside the script."""
        script, comparison = self._state.script, self._comparison()
        folder = script.parent if script and script.parent.is_dir() else Path.home()
        stem = script.stem if script else "comparison"
        return str(folder / f"{stem}-comparison-{comparison.id[:8]}{suffix}")

    def _write(self, suffix: str, path: Path, comparison: Comparison) -> Path:
        """In the thread; what writes is imported here, since the window opens without it."""
        if suffix == ".pdf":
            from compilescope.report.pdf import write_pdf

            measurement = self._state.measurement or self._state.selection.measurement
            write_pdf(comparison, path, _page(), source=self._state.source, measurement=measurement)
        else:
            _write_table(suffix, comparison, path, self.key_sources())
        return path

    def _tell(self, path: Path) -> None:
        self.written.emit(f"Written: {path}", "Open", partial(_open, path))

    def _put_on_clipboard(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.said.emit("The comparison is on the clipboard, as Markdown.")

    def _comparison(self) -> Comparison:
        """As it is now: what writes is another thread, and runs may be going on."""
        comparison = self._state.comparison
        assert comparison is not None, "exports are enabled only once there is a comparison"
        runs = [run if run.is_over else run.snapshot() for run in comparison.runs]
        return replace(comparison, runs=runs)


def _page() -> str:
    """The paper that people have where the user lives."""
    is_american = QLocale.system().measurementSystem() is QLocale.MeasurementSystem.ImperialUSSystem
    return "Letter" if is_american else "A4"


def _open(path: Path) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


def _markdown(comparison: Comparison) -> str:
    from compilescope.domain.results import comparison_json
    from compilescope.report.markdown import markdown

    return markdown(comparison_json(comparison))


def _write_table(suffix: str, comparison: Comparison, path: Path, sources: Sources) -> None:
    from compilescope.domain.results import comparison_json
    from compilescope.report.tables import write_csv, write_json, write_markdown

    result = comparison_json(comparison)
    if suffix == ".json":
        result = with_keys(result, comparison, sources)
    {".json": write_json, ".csv": write_csv, ".md": write_markdown}[suffix](result, path)
