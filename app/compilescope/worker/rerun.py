"""Makes a call that differed once more, from one state: eager twice, compiled, and in double precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from compilescope.domain.config import Config
from compilescope.worker import reference
from compilescope.worker.accuracy import Accuracy, accuracy
from compilescope.worker.allowance import Allowance
from compilescope.worker.check import COMMON_SCALE, Call, Checker, Outcome, perform, stateful, twin
from compilescope.worker.compiling import compiled_side
from compilescope.worker.models import copy_state, state
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.reference import NoReferenceError
from compilescope.worker.steps import Side

Pause = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came out; `why_no_truth`: a clause that says why there is no result in double precision."""

    eagers: tuple[Outcome, Outcome]
    compiled: Outcome
    truth: Outcome | None
    why_no_truth: str = ""

    def judged(self, subject: str, limits: Allowance, actual: Outcome | None = None) -> Accuracy | None:
        """The errors of the compiled outcome, or of another one, and whether they are allowed."""
        if self.truth is None:
            return None
        eagers = [outcome.part(subject) for outcome in self.eagers]
        compiled = (actual or self.compiled).part(subject)
        return accuracy(self.truth.part(subject), eagers, compiled, limits, common=subject in COMMON_SCALE)


class Rerun:
    """Calls both sides again, from the state that a call with a difference began from."""

    def __init__(self, eager: Side, compiled: Side, config: Config, pause: Pause) -> None:
        self._eager = eager
        self._compiled = compiled
        self._config = config
        self._pause = pause
        self._last: tuple[Call, Trial] | None = None

    def of(self, checker: Checker, call: Call) -> Trial:
        """The trial of one call; kept, since several subjects may ask for it. Raises where models cannot be copied."""
        if self._last is None or self._last[0] is not call:
            self._last = None
            with self._pause():
                self._last = call, self._tried(checker, call)
        return self._last[1]

    def on_backend(self, backend: str, checker: Checker, call: Call) -> Outcome:
        """The call with the model compiled by another backend, which draws eager's random numbers."""
        model = self._restored(checker)
        with self._pause(), _eager_s_random_numbers():
            config = Config(backend=backend, dynamic=self._config.dynamic, scope=self._config.scope)
            return perform(compiled_side(model, config, self._eager.recipe), call)

    def draws(self, checker: Checker) -> bool:
        """Whether the compiled model draws other random numbers than eager."""
        return checker.draws_random_numbers and self._config.backend == "inductor"

    def _tried(self, checker: Checker, call: Call) -> Trial:
        one, two = (perform(twin(self._eager, self._restored(checker)), call) for _ in range(2))
        if self.draws(checker):
            model = self._restored(checker)
            side = compiled_side(model, self._config, self._eager.recipe, {"fallback_random": True})
            compiled = perform(side, call)
        else:
            with stateful(self._eager.recipe):
                copy_state(self._restored(checker), self._compiled.model)
            compiled = perform(self._compiled, call)
        try:
            truth = self._exact(checker, call)
        except NoReferenceError as why:
            return Trial(eagers=(one, two), compiled=compiled, truth=None, why_no_truth=str(why))
        return Trial(eagers=(one, two), compiled=compiled, truth=truth)

    def _exact(self, checker: Checker, call: Call) -> Outcome:
        """The call in double precision."""
        reference.need_room(self._eager.recipe, self._eager.model, call.inputs, self._eager.peak_bytes)
        model = self._restored(checker).double()
        exact = twin(self._eager, model, reference.widened_recipe(self._eager.recipe))
        model.zero_grad(set_to_none=True)
        inputs = reference.widened_inputs(call.inputs)
        outcome: Outcome = reference.attempted(lambda: perform(exact, Call(inputs=inputs, seed=call.seed)))
        return outcome

    def _restored(self, checker: Checker) -> nn.Module:
        """A copy of the eager model in the state that the first call with a difference began from."""
        model = duplicate_model(self._eager.model)
        if model is None:
            raise RuntimeError("The model cannot be copied.")
        with stateful(self._eager.recipe):
            for tensor, kept in zip(state(model), checker.state or (), strict=False):
                if tensor.shape == kept.shape:
                    tensor.copy_(kept)
        return model


def _eager_s_random_numbers() -> contextlib.AbstractContextManager[Any]:
    import torch._inductor.config

    patch: contextlib.AbstractContextManager[Any] = torch._inductor.config.patch(fallback_random=True)
    return patch
