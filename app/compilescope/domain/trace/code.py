"""Graphs and generated code: how many operations a graph holds, which kernels a module defines and launches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compilescope.domain.events import Place
from compilescope.domain.trace.places import function_name

_NODE = re.compile(r"^[ \t]+(\w+)(?:\s*: \"[^\"]*\"|\s*:\s*[\w.\[\], \"]+?)? = (.+)$")
# x += 1 and x[0] = 1, of which the result gets a name behind the semicolon
_IN_PLACE = re.compile(r"^[ \t]+\w+(?:\[.*\] = | \S+= ).*;  (\w+)(?:: \"[^\"]*\")? = (?!None)")
_NESTED = re.compile(r"^[ \t]+class \w+\(", re.MULTILINE)
_ATTRIBUTE = re.compile(r"self(?:\.\w+|\[['\"]?\w+['\"]?\])+(?:;|$)")
_ALIAS = re.compile(r"\w+(?:;.*)?$")
_FILE = re.compile(r"# File: (.+?):(\d+) in (\S+?)(?:,|$)")
_DEFINED = re.compile(r"^(\w+) = async_compile\.(\w+)\(", re.MULTILINE)
_CALL = re.compile(r"^([ \t]*)def call\(.*\):.*$", re.MULTILINE)
_PARTITION = re.compile(r"^def partition_\d+\(.*\):.*$", re.MULTILINE)
_LAUNCH = re.compile(r"^\s+(?:\w+(?:, \w+)* = |with [^\n]*: )?((?:\w+\.)*\w+)\(", re.MULTILINE)
_SORTED = re.compile(r"#.*?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
# extern_kernels.mm, torch.ops.aten.convolution.default, aten.sort: a library's kernel
_EXTERN = re.compile(r"(?:extern_kernels\.(\w+)|(?:torch\.ops\.|aten\.)([\w.]+))$")
_HOUSEKEEPING = frozenset({"inductor._reinterpret_tensor", "inductor._alloc_from_pool"})


@dataclass(frozen=True, kw_only=True)
class KernelUse:
    """A kernel of one generated module. `kind`: triton, cpp, extern, or what else torch calls its language."""

    name: str
    kind: str
    launches: int
    places: tuple[Place, ...] = ()


def count_operations(graph: str) -> int:
    """Calls in a printed graph: its nodes without inputs, attributes and the output. Nested graphs are one call."""
    count = 0
    for line in _NESTED.split(graph, maxsplit=1)[0].splitlines():
        node = _NODE.match(line)
        if node is None:
            count += _IN_PLACE.match(line) is not None
            continue
        value = node[2]
        if _ATTRIBUTE.match(value) or (_ALIAS.match(value) and not value[0].isdigit()):
            # inputs are taken over under another name, and an in-place result is an alias of its target
            continue
        count += 1
    return count


def node_places(graph: str) -> dict[str, Place]:
    """Where each node of a printed Dynamo graph comes from."""
    places: dict[str, Place] = {}
    place: Place | None = None
    for line in graph.splitlines():
        if found := _FILE.search(line):
            place = Place(file=found[1], line=int(found[2]), function=function_name(found[3]))
        elif place and (node := _NODE.match(line) or _IN_PLACE.match(line)):
            places[node[1]] = place
    return places


def parse_kernels(code: str, nodes: Mapping[str, Place]) -> list[KernelUse]:
    """The kernels of a generated module, in the order in which they are first launched."""
    defined = {name: _kind(kind) for name, kind in _DEFINED.findall(code)}
    launches: Counter[str] = Counter()
    kinds: dict[str, str] = dict(defined)
    places: dict[str, dict[Place, None]] = {}
    for body in _bodies(code):
        sources: list[str] = []
        for line in body.splitlines():
            if found := _SORTED.search(line):
                sources = found[1].split(", ")
                continue
            called = _LAUNCH.match(line)
            name = _launched(called[1], defined) if called else None
            if name is None:
                continue
            kinds.setdefault(name, "extern")
            launches[name] += 1
            places.setdefault(name, {}).update(dict.fromkeys(_places(sources, nodes)))
            # a C++ kernel has no comment of its own, and must not take over its neighbour's
            sources = []
    return [
        KernelUse(name=name, kind=kind, launches=launches[name], places=tuple(places.get(name, ())))
        for name, kind in kinds.items()
    ]


def _kind(kind: str) -> str:
    return "cpp" if kind.startswith("cpp") else kind


def _bodies(code: str) -> Iterable[str]:
    """The function that runs the module, and the parts that CUDA graph partitions took out of it."""
    for start in (*_CALL.finditer(code), *_PARTITION.finditer(code)):
        indent = len(start.group().expandtabs()) - len(start.group().expandtabs().lstrip())
        end = re.compile(rf"^[ \t]{{0,{indent}}}\S", re.MULTILINE).search(code, start.end())
        yield code[start.end() : end.start() if end else len(code)]


def _launched(called: str, defined: Mapping[str, str]) -> str | None:
    name = called.removesuffix(".run")
    if name in defined:
        return name
    library = _EXTERN.search(called)
    if library is None or (library[2] or "") in _HOUSEKEEPING:
        return None
    return f"extern_kernels.{library[1]}" if library[1] else library[2].removeprefix("aten.").removesuffix(".default")


def _places(sources: Iterable[str], nodes: Mapping[str, Place]) -> Iterable[Place]:
    return (nodes[name] for name in sources if name in nodes)
