"""What a model script offers, read from its source. Nothing of the script runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compilescope.domain.events import Entry

MODEL_CLASS, FACTORY, MODULE = "model class", "factory", "module"
FACTORIES = ("build_model", "get_model", "make_model")
INPUT_FUNCTIONS = ("get_inputs", "make_inputs", "example_inputs")
INPUT_VALUES = ("example_inputs", "inputs")
MODEL_NAMES = ("model", "net", "network", "module")
LARGEST_SOURCE = 20_000_000

_FITTING = (
    "a class Model with get_inputs(), a function build_model() with get_inputs(), "
    "or a module-level model with example_inputs"
)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """`problem` is a sentence, empty where the script offers something; `docstring` is the script's own."""

    entries: tuple[Entry, ...] = ()
    problem: str = ""
    docstring: str = ""


def scan(path: str | Path) -> Scan:
    """Read a script and list its entries, in the order in which they are preferred."""
    path = Path(path)
    try:
        tree = ast.parse(_source(path), filename=str(path))
    except _UnreadableError as error:
        return Scan(problem=str(error))
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "an unknown line"
        return Scan(problem=f"{path.name} is no valid Python: {error.msg} at {where}.")
    except (ValueError, RecursionError, MemoryError) as error:
        return Scan(problem=f"{path.name} is no valid Python: {error}.")
    script = _Script(tree)
    entries = tuple(script.entries())
    return Scan(
        entries=entries,
        problem="" if entries else script.problem(path.name),
        docstring=(ast.get_docstring(tree) or "").strip(),
    )


class _UnreadableError(Exception):
    """The file cannot be read as a script; the message is the sentence."""


def _source(path: Path) -> str | bytes:
    if path.is_dir():
        raise _UnreadableError(f"{path.name or path} is a folder; choose a Python file in it.")
    try:
        raw = path.read_bytes() if path.stat().st_size <= LARGEST_SOURCE else None
    except OSError as error:
        raise _UnreadableError(f"{path.name} cannot be read: {error.strerror or error}.") from None
    if raw is None:
        raise _UnreadableError(f"{path.name} is too large to be a script.")
    if not raw.strip():
        raise _UnreadableError(f"{path.name} is empty.")
    if b"\0" in raw:
        raise _UnreadableError(f"{path.name} is not a Python script: it holds binary data.")
    _check_encoding(path, raw)
    return raw


def _check_encoding(path: Path, raw: bytes) -> None:
    head = b"\n".join(raw.splitlines()[:2])
    if b"coding" in head:
        # the file names its own encoding, and ast reads it
        return
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _UnreadableError(
            f"{path.name} is not UTF-8 (line {line}); save it as UTF-8 or name its encoding in its first line."
        ) from None


class _Script:
    """The module level of a script, branches of `if` and `try` included, main guards left out."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.values: dict[str, tuple[int, ast.expr | None]] = {}
        self.imported: set[str] = set()
        self.has_main_guard = False
        for statement in self._statements(tree.body):
            self._record(statement)

    def entries(self) -> Iterator[Entry]:
        yield from self._model_class()
        yield from self._factories()
        yield from self._modules()

    def problem(self, name: str) -> str:
        """Why nothing fits, as a sentence that says what would."""
        models = [title for title, node in self.classes.items() if self._is_module_class(node)]
        if models:
            return f"{name} defines {models[-1]}, but no inputs for it; CompileScope looks for {_FITTING}."
        if self.has_main_guard:
            return f"{name} does its work under its main guard; CompileScope looks for {_FITTING}."
        return f"{name} offers no model; CompileScope looks for {_FITTING}."

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            match statement:
                case ast.If(test=test):
                    if _is_main_guard(test):
                        self.has_main_guard = True
                    else:
                        yield from self._statements(statement.body)
                        yield from self._statements(statement.orelse)
                case ast.Try():
                    for part in (statement.body, statement.orelse, statement.finalbody):
                        yield from self._statements(part)
                    for handler in statement.handlers:
                        yield from self._statements(handler.body)
                case ast.With():
                    yield from self._statements(statement.body)
                case _:
                    yield statement

    def _record(self, statement: ast.stmt) -> None:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.functions[name] = statement
            case ast.ClassDef(name=name):
                self.classes[name] = statement
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                self.imported |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, statement.lineno)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, value, statement.lineno)

    def _assign(self, target: ast.expr, value: ast.expr, line: int) -> None:
        if isinstance(target, ast.Name):
            self.values[target.id] = (line, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            aligned = len(parts) == len(target.elts)
            for index, item in enumerate(target.elts):
                if isinstance(item, ast.Name):
                    self.values[item.id] = (line, parts[index] if aligned else None)

    def _model_class(self) -> Iterator[Entry]:
        has_inputs = self._defines("get_inputs")
        if "Model" in self.classes and has_inputs and self._is_module_class(self.classes["Model"]):
            detail = "get_inputs()" + (", get_init_inputs()" if self._defines("get_init_inputs") else "")
            yield Entry(name="Model", kind=MODEL_CLASS, line=self.classes["Model"].lineno, detail=detail)

    def _factories(self) -> Iterator[Entry]:
        inputs = self._inputs(*INPUT_FUNCTIONS, "inputs")
        for name in FACTORIES:
            function = self.functions.get(name)
            if function is None or isinstance(function, ast.AsyncFunctionDef):
                continue
            if inputs or _returns_pair(function):
                yield Entry(name=name, kind=FACTORY, line=function.lineno, detail=inputs or "returns its inputs")

    def _modules(self) -> Iterator[Entry]:
        inputs = self._inputs(*INPUT_VALUES, "get_inputs", "make_inputs")
        if not inputs:
            return
        for name, (line, value) in self.values.items():
            if name not in INPUT_VALUES and self._may_be_model(name, value):
                yield Entry(name=name, kind=MODULE, line=line, detail=inputs)

    def _defines(self, name: str) -> bool:
        return name in self.functions or name in self.imported

    def _inputs(self, *names: str) -> str:
        for name in names:
            if self._defines(name):
                return f"{name}()"
            if name in self.values:
                return name
        return ""

    def _is_module_class(self, node: ast.ClassDef, seen: frozenset[str] = frozenset()) -> bool:
        for base in node.bases:
            title = _last_name(base)
            if title.endswith("Module") or title in ("Sequential", "PreTrainedModel"):
                return True
            if title in self.classes and title not in seen:
                if self._is_module_class(self.classes[title], seen | {title}):
                    return True
            elif title in self.imported or isinstance(base, ast.Attribute):
                # a base from elsewhere may well be a module; the worker will know
                return True
        return False

    def _may_be_model(self, name: str, value: ast.expr | None) -> bool:
        if value is None:
            return name in MODEL_NAMES
        if not isinstance(value, ast.Call):
            return False
        return name in MODEL_NAMES or name.endswith("_model") or self._makes_module(value)

    def _makes_module(self, call: ast.Call) -> bool:
        """Whether a call looks like `Net(…)`, `nn.Linear(…)`, `torch.compile(…)`, or one of these with `.eval()` …"""
        function = call.func
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Call):
                return self._makes_module(function.value)
            owner = _last_name(function.value)
            return (owner == "nn" and function.attr[:1].isupper()) or (owner == "torch" and function.attr == "compile")
        title = _last_name(function)
        return title in self.classes and self._is_module_class(self.classes[title])


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(side, ast.Name) and side.id == "__name__" for side in (test.left, *test.comparators)
    )


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _returns_pair(function: ast.FunctionDef) -> bool:
    own = _own_nodes(function)
    return any(isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in own)


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes within."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
