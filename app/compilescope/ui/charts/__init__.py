"""Charts. Importing this package costs nothing; `load` brings in the plotting library, which takes half a second."""

import importlib
import os


def load() -> None:
    """Import all that charts need: in a plain thread, once the window stands. Charts themselves come afterwards."""
    # pyqtgraph takes whatever binding it finds first
    os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")
    importlib.import_module("pyqtgraph").setConfigOptions(useOpenGL=False, antialias=False)
    for chart in ("latency", "comparison", "timeline"):
        importlib.import_module(f"{__name__}.{chart}")
