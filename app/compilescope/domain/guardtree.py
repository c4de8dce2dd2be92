"""A guard tree as torch prints it, as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NODE = re.compile(r"^((?:\| )*)\+- (.*)$")
_MANAGER = re.compile(r"^(\w*Manager): source=(.*?), accessed_by=(.*?), type=(.*?)(?:, tag_safe=.*)?$")
_KIND = re.compile(r"^(\w+): (.*)$", re.DOTALL)
_LATENCY = re.compile(r"Guard latency = ([\d.]+) us")
_LOCAL = re.compile(r"L\['(\w+)'\]")
_WHERE = re.compile(r"\s+#\s(?=.*\bin \S+\s*$|.*\.py:\d+|.*$)")
_PLACE = re.compile(r"(\S+\.py):(\d+)(?: in (\S+))?")


@dataclass(kw_only=True)
class GuardNode:
    """A source that is looked at (`kind` Manager …), or a guard on it. `origin`: the code that asked for it."""

    kind: str
    text: str
    origin: str = ""
    is_guard: bool = True
    children: list[GuardNode] = field(default_factory=list)
    parent: GuardNode | None = None

    def walk(self) -> Iterator[GuardNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def guards(self) -> int:
        """Guards at and under this node."""
        return sum(node.is_guard for node in self.walk())

    @property
    def place(self) -> tuple[str, int] | None:
        match = _PLACE.search(self.origin)
        return (match[1], int(match[2])) if match else None


@dataclass(frozen=True, kw_only=True)
class GuardTree:
    """All guards of one compile; `latency_us` is what checking them takes a call."""

    root: GuardNode
    latency_us: float | None = None

    @property
    def count(self) -> int:
        return self.root.guards


def parse_guards(text: str) -> GuardTree:
    """The tree in a `TREE_GUARD_MANAGER` text. What is no node continues the line above it."""
    root = GuardNode(kind="", text="", is_guard=False)
    stack: list[GuardNode] = [root]
    for line in text.splitlines():
        match = _NODE.match(line)
        if match is None:
            continue
        depth = len(match[1]) // 2
        node = _node(match[2])
        del stack[depth + 1 :]
        node.parent = stack[-1]
        stack[-1].children.append(node)
        stack.append(node)
    latency = _LATENCY.search(text)
    return GuardTree(root=root, latency_us=float(latency[1]) if latency else None)


def matches(node: GuardNode, words: list[str]) -> bool:
    """Whether a node holds all words, in any case."""
    held = f"{node.kind} {node.text} {node.origin}".lower()
    return all(word in held for word in words)


def _node(text: str) -> GuardNode:
    manager = _MANAGER.match(text)
    if manager:
        return GuardNode(kind="", text=f"{_plain(manager[2])}   {_type(manager[4])}", is_guard=False)
    if ":" not in text:
        return GuardNode(kind="", text=text, is_guard=False)
    body, *origin = _WHERE.split(text, maxsplit=1)
    kind = _KIND.match(body.strip())
    where = origin[0].strip() if origin else ""
    if kind is None:
        return GuardNode(kind="", text=_plain(body.strip()), origin=where)
    return GuardNode(kind=kind[1], text=_plain(kind[2].strip()), origin=where, is_guard=kind[1] != "GuardManager")


def _plain(source: str) -> str:
    """A source as the person wrote it."""
    return _LOCAL.sub(r"\1", source)


def _type(text: str) -> str:
    match = re.match(r"<class '(.*)'>", text)
    return match[1] if match else text
