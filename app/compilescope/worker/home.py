"""The modules of a script that is loaded twice: each load has its own, and sys.modules holds those of one of them.

Dynamo, pickle and lazy imports find modules by name, so what runs must find those of its own load there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from compilescope.worker.environment import attempt

Own = dict[str, types.ModuleType]

_INSTALLED = ("site-packages", "dist-packages")
# with a build of their own these may lie anywhere, also beside the script
_NEVER_OWN = ("torch", "functorch", "torchgen", "triton", "numpy", "compilescope", "__main__", "__mp_main__")
# hooks of these are meant to be set, and to set them again does no harm
_NOT_PATCHED = ("sys", "threading", "warnings", "logging", "signal", "atexit", "compilescope", "__main__")
# hooks for the modules and optimizers of all, where each load would add its own
_WITH_GLOBAL_HOOKS = ("torch.nn.modules.module", "torch.optim.optimizer")
_HOLD_FUNCTIONS = {types.FunctionType, types.MethodType, staticmethod, classmethod, property, functools.partial}
_MODULES = {types.ModuleType, type(torch.backends), type(torch.backends.cudnn), type(torch.nn.functional)}


class Home:
    """Says which modules are a script's own, and puts those of one load into sys.modules.

    Own are those from beneath `root` that were imported since this was made, and are written in Python: libraries and
    compiled modules stay, for both loads.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        places = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._installed = tuple(os.path.realpath(place) + os.sep for place in places)
        self._foreign = set(sys.modules)
        self._own: Own = {}
        self._within: dict[Any, bool] = {}
        self._count = len(sys.modules)

    @contextlib.contextmanager
    def of(self, own: Own) -> Iterator[None]:
        """While this holds, the modules of this load are found by name, and new ones are added to it."""
        before = self._own
        self.move_in(own)
        try:
            yield
        finally:
            self.move_in(before)

    def move_in(self, own: Own) -> None:
        """From now on the modules of this load are found by name."""
        self.collect()
        if own is self._own:
            return
        for name in self._own.keys() - own.keys():
            sys.modules.pop(name, None)
        sys.modules.update(own)
        self._own, self._count = own, len(sys.modules)

    def collect(self) -> None:
        """Note which own modules have been imported since the last time."""
        for name in self._own:
            # a module may put another object in its place
            self._own[name] = sys.modules.get(name, self._own[name])
        if len(sys.modules) == self._count:
            return
        for name in sys.modules.keys() - self._foreign - self._own.keys():
            module = sys.modules.get(name)
            if module is not None and self._is_own(name, module):
                self._own[name] = module
            else:
                self._foreign.add(name)
        self._count = len(sys.modules)

    def _is_own(self, name: str, module: types.ModuleType) -> bool:
        top = name.partition(".")[0]
        if top in _NEVER_OWN or top in self._foreign:
            return False
        space: dict[str, Any] = attempt(lambda: vars(module), {})
        file = space.get("__file__")
        places = [file] if file else attempt(lambda: list(space.get("__path__") or ()), [])
        return bool(places) and all(map(self.is_within, places))

    def is_within(self, file: Any) -> bool:
        """Whether a file is one of the script's own folder: Python, and not installed there."""
        if file not in self._within:
            self._within[file] = self._find_within(file)
        return self._within[file]

    def _find_within(self, file: Any) -> bool:
        if not isinstance(file, str) or file.startswith("<") or file.endswith((".so", ".pyd")):
            return False
        # most files are a library's, and can be told without a look at the disk
        is_installed = file.startswith(self._installed) and not file.startswith(self._root)
        if is_installed or not Path(file).is_absolute():
            return False
        place = os.path.realpath(file)
        inside = place.removeprefix(self._root.rstrip(os.sep) + os.sep)
        if inside == place or set(_INSTALLED) & set(Path(inside).parts):
            return False
        return not any(place.startswith(library) and not self._root.startswith(library) for library in self._installed)

    def patches(self) -> Iterator[str]:
        """Functions and classes of the script's that stand in a library's class or module, or among its hooks for all,
        by their names there.

        A second load would replace them again, and what one load put there would serve the other.
        """
        self.collect()
        for where, space in self._library_spaces():
            for name, value in list(space.items()):
                # by type: some objects act on any other question
                if type in type(value).__mro__:
                    is_own = str(type.__getattribute__(value, "__module__")) in self._own
                else:
                    is_own = type(value) in _HOLD_FUNCTIONS and self._is_from_script(value)
                if is_own or (where in _WITH_GLOBAL_HOOKS and name.startswith("_global_") and self._holds_own(value)):
                    yield f"{where}.{name}"

    def _library_spaces(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name, module in list(sys.modules.items()):
            if name in self._foreign and name.partition(".")[0] not in _NOT_PATCHED and type(module) in _MODULES:
                yield name, vars(module)
        for cls in _classes():
            if cls.__module__ not in self._own:
                yield f"{cls.__module__}.{cls.__qualname__}", vars(cls)

    def _holds_own(self, hooks: Any) -> bool:
        values = list(hooks.values()) if isinstance(hooks, dict) else []
        return any(
            type(value).__module__ in self._own or (type(value) in _HOLD_FUNCTIONS and self._is_from_script(value))
            for value in values
        )

    def _is_from_script(self, value: Any) -> bool:
        while type(value) is not types.FunctionType:
            if type(value) in (types.MethodType, staticmethod, classmethod):
                value = value.__func__
            elif type(value) is functools.partial:
                value = value.func
            elif type(value) is property:
                value = value.fget
            else:
                return False
        wrapped = value.__dict__.get("__wrapped__")
        return self.is_within(value.__code__.co_filename) or (wrapped is not None and self._is_from_script(wrapped))


def _classes() -> Iterator[type]:
    """The classes that scripts patch: of modules, tensors, optimizers and functions with a gradient of their own."""
    todo: list[type] = [nn.Module, torch.Tensor, torch.optim.Optimizer, torch.autograd.Function]
    seen = set(todo)
    while todo:
        cls = todo.pop()
        yield cls
        subclasses: list[type] = type.__subclasses__(cls)
        for sub in subclasses:
            if sub not in seen:
                seen.add(sub)
                todo.append(sub)
