"""Whose fault a failed compiled call is: the model's own, the compiler's, or that of the mode we call it in.

Eager is tried from the same state, in the same mode. Gradients are what we switch off and the user may not have, so a
failure under inference_mode or no_grad is tried without these before the script is blamed for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from compilescope.domain.workload import GradMode
from compilescope.worker.entries import seed_all
from compilescope.worker.inputs import Inputs
from compilescope.worker.session import HINT, STAGE
from compilescope.worker.state import State
from compilescope.worker.steps import Recipe, Side

_WORDS: dict[GradMode, str] = {
    "inference_mode": "torch.inference_mode()",
    "no_grad": "torch.no_grad()",
    "enable_grad": "gradients on",
}
# modes to try after the one in force, the closest to it first
_MILDER: dict[GradMode, tuple[GradMode, ...]] = {
    "inference_mode": ("no_grad", "enable_grad"),
    "no_grad": ("enable_grad",),
}


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A way to make the failed call again. `compiled_in`: the compiled side for another recipe, made anew."""

    eager: Side
    inputs: Inputs
    seed: int
    compiled_in: Callable[[Recipe], Side]
    compiled_inputs: Inputs
    paused: Callable[[], contextlib.AbstractContextManager[None]]
    is_interrupted: Callable[[], bool]

    def raised(self, work: Callable[[], Any]) -> BaseException | None:
        """What the work raises, whatever that is, unless the user stops it."""
        try:
            work()
        except BaseException as error:
            if self.is_interrupted():
                raise
            return error
        return None


def blamed(error: BaseException, attempt: Attempt) -> BaseException:
    """The error to tell instead of the compiled call's, with its stage and hint written to it."""
    eager = attempt.eager
    own = attempt.raised(lambda: _call(eager, eager.recipe, attempt.inputs, attempt.seed))
    if own is None:
        mode = next(_modes_in_which_it_compiles(attempt), None)
        if mode is not None:
            _tell(error, "compile", f"{_only_under(eager.recipe)} The compiled model works {_with(mode)}.")
        return error
    mode = next(_modes_in_which_it_runs(attempt), None)
    if mode is None:
        return _tell(own, "eager", "")
    return _tell(
        own,
        "eager",
        f"{_only_under(eager.recipe)} It works {_with(mode)}.",
    )


def _only_under(recipe: Recipe) -> str:
    mode = _WORDS[recipe.grad_mode]
    return f"The model fails under {mode}, which CompileScope calls it in, so this is no fault of the script."


def _with(mode: GradMode) -> str:
    words = "with gradients on, as in a plain call" if mode == "enable_grad" else f"under {_WORDS[mode]}"
    return f"{words} (tried): choose that with --grad-mode {mode}, or under Gradients in the window"


def _tell(error: BaseException, stage: str, hint: str) -> BaseException:
    with contextlib.suppress(AttributeError):  # an exception class of the script's may take no attributes
        setattr(error, STAGE, stage)
        if hint:
            setattr(error, HINT, hint)
    return error


def _modes_in_which_it_runs(attempt: Attempt) -> Iterator[GradMode]:
    eager = attempt.eager
    for recipe in _milder(eager.recipe):
        if attempt.raised(partial(_call, eager, recipe, attempt.inputs, attempt.seed)) is None:
            yield recipe.grad_mode


def _modes_in_which_it_compiles(attempt: Attempt) -> Iterator[GradMode]:
    import torch._dynamo

    for recipe in _milder(attempt.eager.recipe):
        torch._dynamo.reset()
        with attempt.paused():
            side = attempt.compiled_in(recipe)
            if attempt.raised(partial(_call, side, recipe, attempt.compiled_inputs, attempt.seed)) is None:
                yield recipe.grad_mode


def _milder(recipe: Recipe) -> Iterator[Recipe]:
    for mode in () if recipe.training else _MILDER.get(recipe.grad_mode, ()):
        yield dataclasses.replace(recipe, grad_mode=mode)


def _call(side: Side, recipe: Recipe, inputs: Inputs, seed: int) -> None:
    """One call in the recipe's mode, from the state as it is, which is put back afterwards."""
    before = side.recipe
    side.recipe = recipe
    try:
        own = side.take(inputs)
        state = State(side.roots(own))
        try:
            seed_all(seed)
            with side.ready():
                side.bound(own)()
            side.synchronize()
        finally:
            state.put_back()
    finally:
        side.recipe = before
