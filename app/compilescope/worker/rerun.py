"""Makes a call that differed once more, from the state it began from: on both sides, in a wider type, and with moved
numbers. Nothing is copied but state: afterwards both sides are as they were."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import torch

from compilescope.domain.config import Config, OptionValue
from compilescope.worker import reference
from compilescope.worker.accuracy import numbers_in
from compilescope.worker.allowance import Allowance, Types, types_of
from compilescope.worker.check import Call, Checker, Outcome, perform
from compilescope.worker.compiling import compiled_side
from compilescope.worker.effects import Before, align
from compilescope.worker.ensemble import SEEDS, Stochastic, moved, moved_inputs
from compilescope.worker.environment import attempt
from compilescope.worker.norms import as_real
from compilescope.worker.reference import SINGLE, NoReferenceError
from compilescope.worker.steps import Recipe, Side
from compilescope.worker.trial import Trial
from compilescope.worker.updates import with_gradients

MORE_SEEDS = 12
# of slow models a few calls must do
ENOUGH_S = 20.0
_NONE: frozenset[torch.dtype] = frozenset()
_HALVES = frozenset((torch.bfloat16, torch.float16))

Pause = Callable[[], contextlib.AbstractContextManager[None]]


class Rerun:
    """Calls both sides again, from the state that a call with a difference began from."""

    def __init__(self, eager: Side, compiled: Side, config: Config, pause: Pause) -> None:
        self._eager = eager
        self._compiled = compiled
        self._config = config
        self._pause = pause
        self._last: tuple[Call, Trial] | None = None
        self._types: frozenset[torch.dtype] | None = None
        self._device: torch.device | None = None

    def of(self, checker: Checker, call: Call, limits: Allowance) -> Trial:
        """The trial of one call; kept, since several subjects may ask for it."""
        if self._last is None or self._last[0] is not call:
            self._last = None
            with self._aside(call):
                self._last = call, self._tried(checker, call, limits)
        return self._last[1]

    def on_backend(self, backend: str, call: Call) -> Outcome:
        """The call with the model compiled by another backend, which draws eager's random numbers."""
        config = Config(backend=backend, dynamic=self._config.dynamic, scope=self._config.scope)
        with self._aside(call), _eager_s_random_numbers():
            return self._again(self._fresh(config), call)

    def in_wider_type(self, call: Call, types: Mapping[Any, torch.dtype]) -> tuple[Outcome, Outcome]:
        """Eager and compiled in wider types: what then differs was never rounding's."""
        recipe = _without_autocast(self._eager.recipe)
        outcomes = []
        wide = {name: reference.widened_inputs(inputs, types) for name, inputs in call.inputs.items()}
        with self._aside(call), _eager_s_random_numbers():
            for name in ("eager", "compiled"):
                self._restore(call)
                # a shared model is wide by then, and nothing of it is left to widen
                with reference.widened(self._eager.model, types), reference.widened(self._compiled.model, types):
                    side = self._eager.twin(recipe) if name == "eager" else self._fresh(self._config, recipe)
                    outcomes.append(self._performed(side, dataclasses.replace(call, inputs=wide, scale=None)))
        return outcomes[0], outcomes[1]

    def more(self, trial: Trial, call: Call, limits: Allowance) -> None:
        """More calls with moved numbers."""
        with self._aside(call):
            trial.members += self._moved(call, limits, range(SEEDS, SEEDS + MORE_SEEDS))

    def types(self, call: Call) -> frozenset[torch.dtype]:
        """The types that eager's call computes in; none where that cannot be seen."""
        if self._types is None:
            with self._aside(call):
                self._types = attempt(lambda: types_of(lambda: self._again(self._eager, call)), _NONE)
        return self._types

    def draws(self, checker: Checker) -> bool:
        """Whether the compiled model draws other random numbers than eager."""
        return checker.draws_random_numbers and self._config.backend == "inductor"

    @contextlib.contextmanager
    def _aside(self, call: Call) -> Iterator[None]:
        """What both sides hold now is put aside, and comes back at the end; no compile is a part of the story."""
        sides = (self._eager,) if self._eager.model is self._compiled.model else (self._eager, self._compiled)
        held = [Before(side, call.inputs[side.name]) for side in sides]
        with self._pause(), _room_for_compiles():
            try:
                yield
            finally:
                for before in held:
                    before.put_back()
                    before.side.model.zero_grad(set_to_none=True)

    def _restore(self, call: Call) -> bool:
        """Both sides as they were before the call, the compiled one with eager's numbers; whether it had others."""
        for before in call.before.values():
            before.put_back()
        return align(self._eager, self._compiled, numbers=True)

    def _again(self, side: Side, call: Call) -> Outcome:
        self._restore(call)
        return self._performed(side, call)

    def _performed(self, side: Side, call: Call) -> Outcome:
        outcome = perform(side, call)
        if self._device is None:
            self._device = _place(outcome, side.recipe.device)
        return outcome.copied(self._device)

    def _tried(self, checker: Checker, call: Call, limits: Allowance) -> Trial:
        is_unequal = self._restore(call)
        one, two = (self._again(self._eager, call) for _ in range(2))
        side = self._compiled
        if self.draws(checker):
            self._restore(call)
            side = self._fresh(self._config, extra={"fallback_random": True})
        compiled = self._again(side, call)
        trial = Trial(eagers=(one, two), compiled=compiled, is_unequal=is_unequal)
        trial.device = self._device
        trial.overflows = self._eager.scaler is not None and not _are_finite(one.gradients)
        if self._eager.optimizer is not None and compiled.gradients is not None:
            trial.own_update = self._updated(call, one.gradients)
            trial.update = self._updated(call, compiled.gradients)
        self._add_exact(trial, call, limits)
        trial.members = self._moved(call, limits, range(SEEDS))
        return trial

    def _updated(self, call: Call, gradients: Mapping[str, torch.Tensor | None]) -> Any:
        self._restore(call)
        found = attempt(lambda: with_gradients(self._eager, gradients), None)
        return found and {name: value.to(self._device, copy=True) for name, value in found.items()}

    def _fresh(
        self, config: Config, recipe: Recipe | None = None, extra: Mapping[str, OptionValue] | None = None
    ) -> Side:
        """The compiled side's model compiled anew, with the optimizer's state that it has."""
        side = compiled_side(self._compiled.model, config, recipe or self._compiled.recipe, extra)
        if side.optimizer is not None and self._compiled.optimizer is not None:
            side.optimizer.load_state_dict(self._compiled.optimizer.state_dict())
        return side.takes_place_of(self._compiled)

    def _moved(self, call: Call, limits: Allowance, seeds: range) -> list[Outcome]:
        """Eager with inputs and parameters beside where they were; fewer where some cannot be had."""
        found: list[Outcome] = []
        began = perf_counter()
        for seed in seeds:
            if perf_counter() - began > ENOUGH_S:
                break
            self._restore(call)
            inputs = moved_inputs(call.inputs["eager"], limits.eps, seed)
            again = dataclasses.replace(call, inputs={**call.inputs, "eager": inputs})
            try:
                with moved(self._eager.model, limits.eps, seed), Stochastic(limits.eps, seed):
                    found.append(self._performed(self._eager, again))
            except Exception:  # a moved number may lie outside of what a model takes; there may be no room
                break
        return found

    def _add_exact(self, trial: Trial, call: Call, limits: Allowance) -> None:
        """The call in double precision, or else, of a half type, in fp32."""
        recipe = reference.widened_recipe(self._eager.recipe)
        try:
            trial.exact = self._exactly(call, recipe, reference.DOUBLE, reference.doubled)
        except NoReferenceError as why:
            trial.why_not_exact = str(why)
        if trial.exact is not None or not limits.is_half:
            return
        seen = Types()
        with contextlib.suppress(NoReferenceError):
            outcome = self._exactly(call, _without_autocast(recipe), SINGLE, lambda: seen)
            if not seen.types & _HALVES:
                trial.exact, trial.exact_type = outcome, "fp32"

    def _exactly(self, call: Call, recipe: Recipe, types: Any, mode: Any) -> Outcome:
        reference.need_room(self._eager.recipe, self._eager.model, call.inputs["eager"], self._eager.peak_bytes)
        self._restore(call)
        wide = {"eager": reference.widened_inputs(call.inputs["eager"], types)}

        def make() -> Outcome:
            again = dataclasses.replace(call, inputs=wide, scale=None)
            return self._performed(self._eager.twin(recipe), again)

        def within_model() -> Any:
            with reference.widened(self._eager.model, types):
                return reference.attempted(make, mode)

        try:
            outcome: Outcome = within_model()
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise NoReferenceError(f"its weights have no wider type ({type(error).__name__})") from error
        return outcome


def _without_autocast(recipe: Recipe) -> Recipe:
    """Without the optimizer, which says nothing on how results round."""
    return dataclasses.replace(recipe, precision="fp32", optimizer=None)


def _place(outcome: Outcome, device: torch.device) -> torch.device:
    """Where outcomes are kept: on a device with room for a few dozen of them, else in the host's memory."""
    if device.type != "cuda":
        return torch.device("cpu")
    rows = [part for name in vars(outcome) for part in numbers_in(getattr(outcome, name)).values()]
    needed = sum(part.numel() * part.element_size() for part in rows if isinstance(part, torch.Tensor))
    free = attempt(lambda: torch.cuda.mem_get_info(device)[0], 0)
    return device if 40 * needed < free else torch.device("cpu")


def _are_finite(gradients: Mapping[str, torch.Tensor | None]) -> bool:
    return all(bool(as_real(row).isfinite().all()) for row in gradients.values() if row is not None)


@contextlib.contextmanager
def _room_for_compiles() -> Iterator[None]:
    """A function that was compiled often already would run eager from now on, and seem right."""
    import torch._dynamo.config as config

    names = [name for name in ("recompile_limit", "cache_size_limit") if hasattr(config, name)][:1]
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(config.patch(name, 256))
        yield


def _eager_s_random_numbers() -> contextlib.AbstractContextManager[Any]:
    import torch._inductor.config

    patch: contextlib.AbstractContextManager[Any] = torch._inductor.config.patch(fallback_random=True)
    return patch
