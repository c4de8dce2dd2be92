"""Checks the compiled side against the eager one, call by call, from the same state and random streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from compilescope.domain.config import Config
from compilescope.domain.events import Event, Numerics
from compilescope.worker.compiling import compile_model
from compilescope.worker.entries import seed_all
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs, Source, duplicate, mapped, signature
from compilescope.worker.models import copy_state
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.numerics import Accuracy, Difference, accuracy, compare
from compilescope.worker.steps import Recipe, Side

FEWEST_CALLS, MOST_CALLS = 3, 8
SUBJECTS = ("outputs", "inputs", "loss", "gradients")
RANDOM_SEED = 20_000


@dataclass(kw_only=True)
class Outcome:
    """What one call left: its output, its inputs after the call, loss and gradients where it was a training step."""

    outputs: Any
    inputs: Any
    loss: Any = None
    gradients: Any = None

    def part(self, subject: str) -> Any:
        return getattr(self, subject)


@dataclass(kw_only=True)
class Finding:
    """The worst of one subject over all calls. `call`: which one it was, with its inputs for a second look."""

    difference: Difference
    call: int = 0
    inputs: Inputs | None = None


class Checker:
    """Calls both sides with the same new inputs each time, at least three times, until their shapes repeat."""

    def __init__(self, eager: Side, compiled: Side, source: Source, *, seed: int) -> None:
        self._eager = eager
        self._compiled = compiled
        self._source = source
        self._seed = seed + RANDOM_SEED
        self._subjects = SUBJECTS if eager.recipe.training else SUBJECTS[:2]
        self._findings = {subject: Finding(difference=Difference()) for subject in self._subjects}
        self._reference = duplicate_model(eager.model)
        self._spread: dict[str, Difference] = {}
        self.draws_random_numbers = False
        self.calls = 0

    def run(self, first: Inputs) -> None:
        """The calls that belong to the compile story; `first` is what the first calls took."""
        seen = {signature(first)}
        for call in range(MOST_CALLS):
            inputs = self._source.make()
            key = signature(inputs)
            self._check(call, inputs)
            self.calls += 1
            if call + 1 >= FEWEST_CALLS and key in seen:
                return
            seen.add(key)

    def _check(self, call: int, inputs: Inputs) -> None:
        seed = self._seed + call
        self._align()
        if call == 0:
            self._repeat_eager(inputs, seed)
        expected = self._call(self._eager, duplicate(inputs), seed)
        actual = self._call(self._compiled, duplicate(inputs), seed)
        for subject in self._subjects:
            difference = compare(expected.part(subject), actual.part(subject), subject)
            self._note(subject, difference, call, inputs)

    def _align(self) -> None:
        """The same parameters and buffers on both sides, so that errors do not add up over calls."""
        with _stateful(self._eager.recipe):
            copy_state(self._eager.model, self._compiled.model)
            if self._reference is not None:
                copy_state(self._eager.model, self._reference)

    def _repeat_eager(self, inputs: Inputs, seed: int) -> None:
        """Eager twice from the same start tells whether the model is deterministic."""
        if self._reference is None:
            return
        keeper = duplicate_model(self._reference)
        if keeper is None:
            return
        one = self._call(_twin(self._eager, keeper), duplicate(inputs), seed)
        two = self._call(_twin(self._eager, self._reference), duplicate(inputs), seed)
        self._spread = {
            subject: compare(one.part(subject), two.part(subject), subject) for subject in self._subjects
        }
        with _stateful(self._eager.recipe):
            copy_state(self._eager.model, self._reference)

    def _call(self, side: Side, inputs: Inputs, seed: int) -> Outcome:
        seed_all(seed)
        before = _random_state(side.recipe.device)
        with side.ready():
            output = side.bound(inputs)()
        side.synchronize()
        if before != _random_state(side.recipe.device):
            self.draws_random_numbers = True
        return Outcome(
            outputs=output,
            inputs=inputs.tree,
            loss=side.last_loss,
            gradients=side.gradients() if side.recipe.training else None,
        )

    def _note(self, subject: str, difference: Difference, call: int, inputs: Inputs) -> None:
        worst = self._findings[subject]
        if _rank(difference) > _rank(worst.difference):
            self._findings[subject] = Finding(difference=difference, call=call, inputs=inputs)

    def verdicts(self, config: Config, pause: Callable[[], contextlib.AbstractContextManager[None]]) -> Iterator[Event]:
        """One verdict a subject. May compile once more, so this comes after the timing."""
        same_stream: Outcomes | None = None
        for subject, finding in self._findings.items():
            if finding.difference.close:
                yield self._match(subject, finding, config)
                continue
            if self._is_own_spread(subject, finding.difference):
                yield self._nondeterministic(subject, finding, config)
                continue
            if self.draws_random_numbers and finding.inputs is not None:
                with pause():
                    same_stream = same_stream or self._under_one_stream(config, finding.inputs)
                difference = same_stream and compare(
                    same_stream.eager.part(subject), same_stream.compiled.part(subject), subject
                )
                if difference and difference.close:
                    yield _told(subject, config, "match", difference, _OTHER_STREAM)
                    continue
            yield self._second_look(subject, finding, config)

    def _match(self, subject: str, finding: Finding, config: Config) -> Numerics:
        spread = self._spread.get(subject)
        detail = "Bitwise equal." if finding.difference.equal else "Equal within the tolerance of the type."
        if spread is not None and not spread.equal:
            detail += " Eager itself varies from call to call."
        return _told(subject, config, "match", finding.difference, f"{detail} {self.calls} calls compared.")

    def _is_own_spread(self, subject: str, difference: Difference) -> bool:
        """Whether eager differs from itself as much as from the compiled model."""
        spread = self._spread.get(subject)
        if spread is None or spread.equal or not difference.is_rounding:
            return False
        return (difference.max_abs_error or 0.0) <= 3 * (spread.max_abs_error or 0.0)

    def _nondeterministic(self, subject: str, finding: Finding, config: Config) -> Numerics:
        spread = self._spread[subject].max_abs_error or 0.0
        detail = f"Eager differs from itself by up to {spread:.3g}, so the two cannot be told apart."
        return _told(subject, config, "nondeterministic", finding.difference, detail)

    def _under_one_stream(self, config: Config, inputs: Inputs) -> Outcomes | None:
        """Both sides once more, the compiled one with eager's random numbers."""
        models = duplicate_model(self._eager.model), duplicate_model(self._eager.model)
        if config.backend != "inductor" or models[0] is None or models[1] is None:
            return None
        eager = _twin(self._eager, models[0])
        call = compile_model(models[1], config, {"fallback_random": True})
        compiled = Side("compiled", models[1], call, self._eager.recipe)
        return attempt(
            lambda: Outcomes(
                eager=self._call(eager, duplicate(inputs), self._seed),
                compiled=self._call(compiled, duplicate(inputs), self._seed),
            ),
            None,
        )

    def _second_look(self, subject: str, finding: Finding, config: Config) -> Numerics:
        """Rounding is judged by both sides' errors against double precision; anything else is a difference."""
        difference = finding.difference
        if not difference.is_rounding or finding.inputs is None:
            return _told(subject, config, "differ", difference, _sentence(difference))
        judged = attempt(lambda: self._against_double(subject, finding), None)
        if judged is None:
            detail = f"{_sentence(difference)} No reference in double precision could be made."
            return _told(subject, config, "differ", difference, detail)
        nearer = "nearer to" if judged.compiled < judged.eager else "further from"
        detail = (
            f"{_sentence(difference)} Against double precision the errors are {judged.eager:.3g} (eager) and "
            f"{judged.compiled:.3g} (compiled, {nearer} the truth)."
        )
        verdict = "match" if judged.passes else "differ"
        return _told(subject, config, verdict, difference, detail, judged.ratio)

    def _against_double(self, subject: str, finding: Finding) -> Accuracy | None:
        """Three calls from one state: in double precision, eager, and compiled as it was measured."""
        models = [duplicate_model(self._eager.model) for _ in range(2)]
        if finding.inputs is None or models[0] is None or models[1] is None:
            return None
        inputs, seed = finding.inputs, self._seed + finding.call
        exact = _exact_side(self._eager, models[0].double())
        with _stateful(self._eager.recipe):
            copy_state(models[1], self._compiled.model)
        truth = self._call(exact, _doubled(inputs), seed)
        eager = self._call(_twin(self._eager, models[1]), duplicate(inputs), seed)
        compiled = self._call(self._compiled, duplicate(inputs), seed)
        return accuracy(truth.part(subject), eager.part(subject), compiled.part(subject))


@dataclass(kw_only=True)
class Outcomes:
    """Both sides' outcome of one call."""

    eager: Outcome
    compiled: Outcome


_OTHER_STREAM = (
    "Equal when both draw the same random numbers; by default the compiled model draws from another random stream."
)


def _told(
    subject: str, config: Config, verdict: str, difference: Difference, detail: str, ratio: float | None = None
) -> Numerics:
    return Numerics(
        subject=subject,
        backend=config.backend,
        verdict=verdict,
        max_abs_error=difference.max_abs_error,
        reference_ratio=ratio,
        detail=detail,
    )


def _sentence(difference: Difference) -> str:
    return difference.reason[:1].upper() + difference.reason[1:] + "."


def _rank(difference: Difference) -> tuple[int, float]:
    fault = 0 if difference.close else 1 if difference.is_rounding else 2
    return fault, difference.max_abs_error or (0.0 if difference.equal else 1e-300)


def _twin(side: Side, model: nn.Module) -> Side:
    """A side like this one with another, eager model."""
    twin = Side(side.name, model, model, side.recipe)
    twin.stance = side.stance
    return twin


def _exact_side(side: Side, model: nn.Module) -> Side:
    recipe = Recipe(
        training=side.recipe.training,
        precision="fp32",
        device=side.recipe.device,
        loss=side.recipe.loss,
        optimizer=side.recipe.optimizer,
    )
    exact = Side("reference", model, model, recipe)
    exact.stance = side.stance
    return exact


def _doubled(inputs: Inputs) -> Inputs:
    def widened(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.detach().double().requires_grad_(tensor.requires_grad)

    args, kwargs = mapped(duplicate(inputs).tree, widened)
    return Inputs(args=args, kwargs=kwargs)


def _random_state(device: torch.device) -> bytes:
    state = torch.get_rng_state().numpy().tobytes()
    if device.type == "cuda":
        state += torch.cuda.get_rng_state(device).numpy().tobytes()
    return state


def _stateful(recipe: Recipe) -> contextlib.AbstractContextManager[Any]:
    """The mode in which state may be written: inference tensors take no change outside of inference mode."""
    return torch.no_grad() if recipe.training else torch.inference_mode()
