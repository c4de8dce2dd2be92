"""Imports the user's script under its own name, as a module of its folder or package."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from compilescope.worker.errors import WorkerError

# tells the script's spawned children, which look for it by the name that it has here, where it is; see __main__
ALIAS = "COMPILESCOPE_ALIAS"


def load(script: str, arguments: Sequence[str]) -> ModuleType:
    """Run the script's module level and return its module. Whatever it raises goes through."""
    path = Path(script).resolve()
    if not path.is_file():
        raise WorkerError(f"There is no file {path}.", hint="Choose the script again.", type="FileNotFoundError")
    sys.argv = [str(path), *arguments]
    name, roots = _module_name(path)
    if name == f"script_{path.stem}":
        os.environ[ALIAS] = f"{name}={path}"
    os.chdir(path.parent)
    for root in reversed(roots):
        sys.path.insert(0, str(root))
    return _import(name, path)


def root_of(script: str) -> Path:
    """The folder whose modules are the script's own: that of its outermost package, or else its own folder."""
    path = Path(script).resolve()
    return _package_root(path) or path.parent


def _module_name(path: Path) -> tuple[str, list[Path]]:
    """The name to import the script by, and the folders that imports start from."""
    package = _package_root(path)
    if package is not None:
        parts = path.relative_to(package.parent).with_suffix("").parts
        return ".".join(parts), [package.parent, path.parent]
    stem = path.stem
    return (f"script_{stem}" if _is_taken(path) else stem), [path.parent]


def _package_root(path: Path) -> Path | None:
    """The outermost folder of the package that holds the script, if there is one."""
    root: Path | None = None
    for folder in path.parents:
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        root = folder
    return root


def _is_taken(path: Path) -> bool:
    """Whether a library owns the name, so that the script under it would be taken for that library."""
    stem = path.stem
    if stem in sys.modules or stem in sys.stdlib_module_names or stem in sys.builtin_module_names:
        return True
    found = importlib.machinery.PathFinder.find_spec(stem)
    return found is not None and found.origin != str(path)


def _import(name: str, path: Path) -> ModuleType:
    parent, _, _ = name.rpartition(".")
    if parent:
        importlib.import_module(parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WorkerError(f"{path.name} is not a Python script.", hint="Choose a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # as when Python runs a script, its own folder gets no cache of it
    quiet, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = quiet
    return module
