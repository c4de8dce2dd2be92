"""Makes a call that differed once more, from one state: eager twice, compiled, and in double precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from compilescope.domain.config import Config
from compilescope.worker import reference
from compilescope.worker.accuracy import Accuracy, accuracy, within
from compilescope.worker.allowance import Allowance, types_of
from compilescope.worker.check import (
    COMMON_SCALE,
    Call,
    Checker,
    Outcome,
    changing,
    gap_of,
    perform,
    stateful,
    twin,
)
from compilescope.worker.compiling import compiled_side
from compilescope.worker.environment import attempt
from compilescope.worker.models import copy_state, put_back
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.numerics import as_real, compare, parts
from compilescope.worker.reference import NoReferenceError
from compilescope.worker.steps import Side

_NONE: frozenset[torch.dtype] = frozenset()

Pause = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came out; `why_no_truth`: a clause that says why there is no result in double precision. `overflows`:
    whether a loss scale made eager's gradients infinite."""

    eagers: tuple[Outcome, Outcome]
    compiled: Outcome
    truth: Outcome | None
    why_no_truth: str = ""
    overflows: bool = False

    def flips_of_eager(self, subject: str, path: str) -> float | None:
        """The share of one part's whole numbers in eager that differ from those in double precision; None where it has
        no reference. `path`: as `compare` names it."""
        exact = dict(parts(self.truth.part(subject), subject)) if self.truth is not None else {}
        own = dict(parts(self.eagers[0].part(subject), subject))
        return compare(exact[path], own[path], path).flipped if path in exact and path in own else None

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
        self._types: frozenset[torch.dtype] | None = None

    def of(self, checker: Checker, call: Call) -> Trial:
        """The trial of one call; kept, since several subjects may ask for it. Raises where models cannot be copied."""
        if self._last is None or self._last[0] is not call:
            self._last = None
            with self._pause():
                self._last = call, self._tried(checker, call)
        return self._last[1]

    def on_backend(self, backend: str, call: Call) -> Outcome:
        """The call with the model compiled by another backend, which draws eager's random numbers."""
        model = self._restored(call)
        with self._pause(), _eager_s_random_numbers():
            config = Config(backend=backend, dynamic=self._config.dynamic, scope=self._config.scope)
            return perform(compiled_side(model, config, self._eager.recipe), call)

    def types(self, call: Call) -> frozenset[torch.dtype]:
        """The types that eager's call computes in; none where that cannot be seen."""
        if self._types is None:
            self._types = attempt(lambda: types_of(lambda: self._eagerly(call)), _NONE)
        return self._types

    def _eagerly(self, call: Call) -> Outcome:
        return perform(twin(self._eager, self._restored(call)), call)

    def remembers(self, subject: str, call: Call, limits: Allowance) -> bool:
        """Whether eager tells another result when it is called again from the same parameters and buffers: it keeps
        something elsewhere, such as in a plain attribute, and no two calls can be compared."""
        copied = attempt(lambda: self._restored(call), None)
        if copied is None and call.state is None:
            return False
        side = self._eager if copied is None else twin(self._eager, copied)
        outcomes = []
        for _ in range(2):
            with stateful(side.recipe):
                put_back(call.state or (), changing(side.model, side.recipe))
            outcomes.append(perform(side, call).copied().part(subject))
        found = compare(outcomes[0], outcomes[1], subject)
        is_rounding = found.is_rounding and within(
            gap_of(outcomes[0], outcomes[1], common=subject in COMMON_SCALE), limits
        )
        return not found.close and not is_rounding

    def draws(self, checker: Checker) -> bool:
        """Whether the compiled model draws other random numbers than eager."""
        return checker.draws_random_numbers and self._config.backend == "inductor"

    def _tried(self, checker: Checker, call: Call) -> Trial:
        one, two = (self._eagerly(call) for _ in range(2))
        if self.draws(checker):
            model = self._restored(call)
            side = compiled_side(model, self._config, self._eager.recipe, {"fallback_random": True})
            compiled = perform(side, call)
        else:
            with stateful(self._eager.recipe):
                copy_state(self._restored(call), self._compiled.model)
            compiled = perform(self._compiled, call)
        truth, why_no_truth = None, ""
        try:
            truth = self._exact(call)
        except NoReferenceError as why:
            why_no_truth = str(why)
        return Trial(
            eagers=(one, two),
            compiled=compiled,
            truth=truth,
            why_no_truth=why_no_truth,
            overflows=self._eager.scaler is not None and not _are_finite(one.gradients),
        )

    def _exact(self, call: Call) -> Outcome:
        """The call in double precision."""
        reference.need_room(self._eager.recipe, self._eager.model, call.inputs, self._eager.peak_bytes)
        model = self._restored(call).double()
        exact = twin(self._eager, model, reference.widened_recipe(self._eager.recipe))
        model.zero_grad(set_to_none=True)
        inputs = reference.widened_inputs(call.inputs)
        outcome: Outcome = reference.attempted(lambda: perform(exact, Call(inputs=inputs, seed=call.seed)))
        return outcome

    def _restored(self, call: Call) -> nn.Module:
        """A copy of the eager model in the state that the call began from."""
        model = duplicate_model(self._eager.model)
        if model is None:
            raise RuntimeError("The model cannot be copied.")
        with stateful(self._eager.recipe):
            put_back(call.state or (), changing(model, self._eager.recipe))
        return model


def _are_finite(gradients: Mapping[str, torch.Tensor | None]) -> bool:
    return all(bool(as_real(row).isfinite().all()) for row in gradients.values() if row is not None)


def _eager_s_random_numbers() -> contextlib.AbstractContextManager[Any]:
    import torch._inductor.config

    patch: contextlib.AbstractContextManager[Any] = torch._inductor.config.patch(fallback_random=True)
    return patch
