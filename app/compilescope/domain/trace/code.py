"""Graphs and generated code: how many operations a graph holds, which kernels a module defines and launches."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compilescope.domain.events import Place
from compilescope.domain.trace.places import function_name, parse_stack

_NODE = re.compile(r"^[ \t]+(\w+)(?:\s*: \"[^\"]*\"|\s*:\s*[\w.\[\], \"]+?)? = (.+)$")
# x += 1 and x[0] = 1, of which the result gets a name behind the semicolon
_IN_PLACE = re.compile(r"^[ \t]+\w+(?:\[.*\] = | \S+= ).*;  (\w+)(?:: \"[^\"]*\")? = (?!None)")
_NESTED = re.compile(r"^[ \t]+class \w+\(", re.MULTILINE)
_ATTRIBUTE = re.compile(r"self(?:\.\w+|\[['\"]?\w+['\"]?\])+(?:;|$)")
_ALIAS = re.compile(r"\w+(?:;.*)?$")
_FILE = re.compile(r"# File: (.+?):(\d+) in (\S+?)(?:,|$)")
_NO_PLACE = "# No stacktrace found for following nodes"
_DEFINED = re.compile(r"^(\w+) = async_compile\.(\w+)\(", re.MULTILINE)
_CALL = re.compile(r"^([ \t]*)def call\(.*\):.*$", re.MULTILINE)
_PARTITION = re.compile(r"^def partition_\d+\(.*\):.*$", re.MULTILINE)
_LAUNCH = re.compile(r"^\s+(?:\w+(?:, \w+)* = |with [^\n]*: )?((?:\w+\.)*\w+)\(", re.MULTILINE)
_SORTED = re.compile(r"#.*?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
# the number under which torch tells the stack of the launch that follows
_HANDLE = re.compile(r"^\s*# \[Provenance debug handles\] \S+:(\d+)\s*$")
_BACKWARD = re.compile(r"\btangents_\d")
# extern_kernels.mm, torch.ops.aten.convolution.default, aten.sort: a library's kernel
_EXTERN = re.compile(r"(?:extern_kernels\.(\w+)|(?:torch\.ops\.|aten\.)([\w.]+))$")
# what differs between two writings of the same code: a comment (C++ has # without a space), and checks that a mode may
# leave out, at a tenth of a microsecond each
_SAYS_NOTHING = re.compile(r"^[ \t]*(?:#(?: .*)?|assert_(?:size_stride|alignment)\(.*\))?[ \t]*$\n?", re.MULTILINE)
_PATH = re.compile(r"""(["'])(?:[A-Za-z]:)?[\\/][^"'\n]*[\\/]([^"'\\/\n]+)\1""")
_HOUSEKEEPING = frozenset({"inductor._reinterpret_tensor", "inductor._alloc_from_pool"})


@dataclass(frozen=True, kw_only=True)
class KernelUse:
    """A kernel of one generated module. `kind`: triton, cpp, extern, or what else torch calls its language.

    `places` are those that the module's comments name. `handles`: where torch tells each launch's places apart.
    """

    name: str
    kind: str
    launches: int
    places: tuple[Place, ...] = ()
    handles: tuple[int, ...] = ()

    def placed(self, traced: Mapping[int, Iterable[Place]]) -> tuple[Place, ...]:
        """Its places by the handles of its launches; those of the comments where torch tells none."""
        places = {place for handle in self.handles for place in traced.get(handle, ())}
        return tuple(sorted(places, key=lambda place: (place.file, place.line or 0))) or self.places


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
        elif _NO_PLACE in line:
            place = None
        elif place and (node := _NODE.match(line) or _IN_PLACE.match(line)):
            places[node[1]] = place
    return places


def digest(code: str) -> str:
    """The same for modules that run the same: without comments, folders, and checks of sizes and alignment."""
    return hashlib.sha256(_PATH.sub(r"\1\2\1", _SAYS_NOTHING.sub("", code)).encode(errors="replace")).hexdigest()[:16]


def is_backward(code: str) -> bool:
    """Whether a generated module runs a backward graph, which takes the gradients of the outputs."""
    return _BACKWARD.search(code) is not None


def either(nodes: Mapping[str, Place], backward: Mapping[str, Place]) -> dict[str, Place]:
    """The nodes that a backward module's comments may name: Dynamo's and its own, without names that mean two lines."""
    return {
        name: place
        for name, place in {**nodes, **backward}.items()
        if nodes.get(name, place) == place and backward.get(name, place) == place
    }


def traced_places(payload: str) -> dict[int, tuple[Place, ...]]:
    """Where each launch comes from, by its handle: the innermost frame of every stack that torch tells."""
    try:
        stacks = json.loads(payload)
    except ValueError:
        return {}
    places: dict[int, tuple[Place, ...]] = {}
    for name, texts in stacks.items() if isinstance(stacks, dict) else ():
        handle = str(name).rpartition(":")[2]
        if handle.isdigit():
            frames = (parse_stack(str(text))[-1:] for text in texts)
            places[int(handle)] = tuple(dict.fromkeys(frame for last in frames for frame in last))
    return places


def parse_kernels(code: str, nodes: Mapping[str, Place]) -> list[KernelUse]:
    """The kernels of a generated module, in the order in which they are first launched."""
    defined = {name: _kind(kind) for name, kind in _DEFINED.findall(code)}
    launches: Counter[str] = Counter()
    kinds: dict[str, str] = dict(defined)
    places: dict[str, dict[Place, None]] = {}
    handles: dict[str, list[int]] = {}
    for body in _bodies(code):
        sources: list[str] = []
        handle: list[int] = []
        for line in body.splitlines():
            if found := _SORTED.search(line):
                sources = found[1].split(", ")
                continue
            if found := _HANDLE.match(line):
                handle = [int(found[1])]
                continue
            called = _LAUNCH.match(line)
            name = _launched(called[1], defined) if called else None
            if name is None:
                continue
            kinds.setdefault(name, "extern")
            launches[name] += 1
            places.setdefault(name, {}).update(dict.fromkeys(_places(sources, nodes)))
            handles.setdefault(name, []).extend(handle)
            # a C++ kernel has no comment of its own, and must not take over its neighbour's
            sources, handle = [], []
    return [
        KernelUse(
            name=name,
            kind=kind,
            launches=launches[name],
            places=tuple(places.get(name, ())),
            handles=tuple(handles.get(name, ())),
        )
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
