"""How often a call enters compiled code: told of calls that nobody times, at no cost to those that are timed.

Dynamo keeps each compiled graph as a global of the function that it was captured from, by a name that begins with
`__compiled_fn` (OutputGraph.install_global_unsafe). Where these are is noted as they are made; for a counted call each
is replaced by one that counts, and put back afterwards.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.worker.environment import attempt

_PREFIX = "__compiled_fn"


@dataclass(kw_only=True)
class Seen:
    """`entered`: how often compiled graphs were entered; None where this torch does not let it be known."""

    entered: int | None = None


class Entries:
    """Where the compiled graphs of this process are. Called from the thread that compiles."""

    def __init__(self) -> None:
        self._noted: list[tuple[dict[str, Any], str]] = []
        self._is_known = False

    def install(self) -> None:
        """Note graphs from now on; without Dynamo, or with one that keeps them elsewhere, none are."""
        module = sys.modules.get("torch._dynamo.output_graph")
        graph = getattr(module, "OutputGraph", None)
        original = getattr(graph, "install_global_unsafe", None)
        if graph is None or original is None:
            return

        def install_global_unsafe(output: Any, name: str, value: Any) -> Any:
            result = original(output, name, value)
            if name.startswith(_PREFIX) and isinstance(scope := getattr(output, "global_scope", None), dict):
                self._noted.append((scope, name))
            return result

        graph.install_global_unsafe = install_global_unsafe

    @contextlib.contextmanager
    def counted(self) -> Iterator[Seen]:
        """Count while this holds; the number is there afterwards."""
        seen, count = Seen(), [0]
        replaced = []
        if self._can_tell():
            for scope, name in self._noted:
                if name in scope:  # else the code that called it is gone
                    replaced.append((scope, name, scope[name], _counting(scope[name], count)))
        for scope, name, _, counting in replaced:
            scope[name] = counting
        try:
            yield seen
        finally:
            for scope, name, original, counting in replaced:
                if scope.get(name) is counting:
                    scope[name] = original
        seen.entered = count[0] if self._is_known else None

    def _can_tell(self) -> bool:
        """Whether graphs are noted at all: where there is none, one is compiled that would be."""
        if not self._noted and not self._is_known and "torch._dynamo" in sys.modules:
            probe: Callable[[Any], Any] = torch.compile(lambda x: x + 1, backend="eager")
            attempt(lambda: probe(torch.zeros(1)), None)
            self._is_known = bool(self._noted)
            self._noted.clear()
        self._is_known |= bool(self._noted)
        return self._is_known


def _counting(function: Callable[..., Any], count: list[int]) -> Callable[..., Any]:
    def entered(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return function(*args, **kwargs)

    # else Dynamo would look into this function, and tell a graph break of ours
    disabled: Callable[..., Any] = torch.compiler.disable(entered)  # type: ignore[no-untyped-call]
    return disabled
