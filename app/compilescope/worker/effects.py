"""What a call changes beyond what it returns: by path, and the values there afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from compilescope.worker import reach
from compilescope.worker.changes import apply
from compilescope.worker.inputs import Inputs, mapped
from compilescope.worker.reach import Path
from compilescope.worker.state import State, all_but_parameters, every
from compilescope.worker.steps import Side

_NUMBERS = (bool, int, float, complex, type(None))
# of one place, such as a list that a call fills
MOST_VALUES = 1_000
# what the optimizer writes is a subject of its own
OF_STEP = ("optimizer", "scaler")


class Before:
    """What one side can change, as it was before a call. `state` is None where there was no room to keep it.

    Weights are copied where a step changes them, and to the host's memory where there is a device.
    """

    def __init__(self, side: Side, inputs: Inputs) -> None:
        self.side = side
        training, device = side.recipe.training, side.recipe.device.type
        self.inputs = inputs
        self.state: State | None = None
        try:
            self.state = State(
                side.roots(inputs),
                copies=every if training else all_but_parameters,
                follows=side.follows,
                on_host=training and device != "cpu",
            )
        except (torch.OutOfMemoryError, MemoryError):
            return

    def put_back(self, leaves_out: tuple[str, ...] = ()) -> bool:
        """Whether all is as it was, but for some roots."""
        if self.state is None:
            return False
        rows = self.state.changes()
        # parameters may be met first where the optimizer lists them
        changes = [row for row in rows if row.path[0] not in leaves_out or isinstance(row.tensor, torch.nn.Parameter)]
        apply(changes)
        return all(change.restore is not None for change in changes)

    def changed(self) -> list[Path]:
        """Where values differ now; but for weights in training, what the optimizer writes, and random generators, which
        are no results."""
        if self.state is None:
            return []
        rows = self.state.changes(self._is_looked_at)
        places = [path for row in rows if not row.is_random_state for path in row.places]
        return [path for path in places if path[0] not in OF_STEP]

    def _is_looked_at(self, path: Path, tensor: torch.Tensor) -> bool:
        is_weight = self.side.recipe.training and isinstance(tensor, torch.nn.Parameter)
        return not is_weight and path[0] not in OF_STEP

    def parameters(self) -> dict[str, torch.Tensor]:
        """The values that parameters had."""
        found = {} if self.state is None else self.state.befores()
        named = self.side.model.named_parameters()
        return {name: found[id(parameter)] for name, parameter in named if id(parameter) in found}


def values(side: Side, inputs: Inputs, paths: Iterable[Path]) -> dict[str, Any]:
    """Tensors, arrays and numbers at some paths, by the paths in words; buffers and tensors of inputs left out, which
    are compared as such."""
    roots, found = side.roots(inputs), {}
    for path in dict.fromkeys(path for path in paths if "_buffers" not in path):
        try:
            value = reach.at(roots, path, side.follows)
        except KeyError:
            continue
        rows = _values(value, side.follows)
        for _, (where, leaf) in zip(range(MOST_VALUES), rows, strict=False):
            if not (path[0] == "inputs" and isinstance(leaf, torch.Tensor)):
                found[reach.words((*path, *where))] = leaf
    return found


def _values(value: Any, follows: Callable[[type], bool] | None) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, _NUMBERS):
        yield (), value
    for path, obj in reach.walk(value, follows):
        if isinstance(obj, torch.Tensor) or reach.is_array(obj):
            yield path, obj
            continue
        for index, (key, part) in enumerate(reach.parts(obj, follows)):
            if isinstance(part, _NUMBERS) and not reach.is_passed_over(key):
                yield (*path, reach.name_of(key, index)), part


def align(eager: Side, compiled: Side, *, numbers: bool = False) -> bool:
    """Give the compiled side eager's values, in place, at the same paths and of equal form; whether any were others.

    Tensors alone, so that errors do not add up over calls. With `numbers`, what else is plain data too: counters are
    guarded, so that this is for calls that belong to no compile story.
    """
    # of one model for both, each side has its own optimizer
    only = ("optimizer",) if eager.model is compiled.model else tuple(eager.roots())
    mine, theirs = ({name: side.roots().get(name) for name in only} for side in (compiled, eager))
    targets = dict(reach.walk(mine, compiled.follows))
    changed = False
    with torch.no_grad() if eager.recipe.training else eager.recipe.without_gradients():
        for path, source in reach.walk(theirs, eager.follows):
            target = targets.get(path)
            if target is None or target is source or type(target) is not type(source):
                continue
            if isinstance(source, torch.Tensor):
                if eager.recipe.training or not isinstance(source, torch.nn.Parameter):
                    changed |= _aligned(source, target)
            elif numbers and path and "param_groups" not in path:
                changed |= _same_numbers(source, target)
    return changed


def _aligned(source: torch.Tensor, target: torch.Tensor) -> bool:
    pairs = list(zip(reach.inner_tensors(source), reach.inner_tensors(target), strict=False))
    changed = False
    for theirs, mine in pairs:
        if mine.shape == theirs.shape and mine.dtype == theirs.dtype and not reach.same_values(mine, theirs):
            mine.detach().copy_(theirs)
            changed = True
    return changed


def _same_numbers(source: Any, target: Any) -> bool:
    """Plain data in a container. What has other keys is filled anew where all of it is plain data."""
    mine, theirs = _items(target), _items(source)
    if mine.keys() != theirs.keys():
        if not all(map(_is_plain, theirs.values())) or any(str(key).startswith("<") for key in theirs):
            return False
        content = mapped(source, lambda tensor: tensor.detach().clone())
        target.clear()
        target.update(content) if isinstance(source, dict) else target.extend(content)
        return True
    rows = [key for key, value in theirs.items() if _is_other_number(mine[key], value)]
    for key in rows:
        target[key] = theirs[key]
    return bool(rows)


def _items(value: Any) -> dict[Any, Any]:
    """What a dict or a list holds, but for what the compiler writes."""
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict):
        return {}
    rows = enumerate(value.items())
    return {reach.name_of(key, i): item for i, (key, item) in rows if not reach.is_passed_over(key)}


def _is_other_number(mine: Any, theirs: Any) -> bool:
    return isinstance(mine, _NUMBERS) and isinstance(theirs, _NUMBERS) and mine is not theirs and mine != theirs


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (*_NUMBERS, str, torch.Tensor))
