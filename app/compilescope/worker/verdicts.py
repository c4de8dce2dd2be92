"""Judges what the check found: rounding, another random stream, eager's own spread, or a difference."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import Numerics
from compilescope.worker.check import Call, Checker, Finding, Outcome, perform, stateful, twin
from compilescope.worker.compiling import compile_model
from compilescope.worker.environment import attempt
from compilescope.worker.inputs import Inputs, duplicate, mapped
from compilescope.worker.models import copy_state
from compilescope.worker.models import duplicate as duplicate_model
from compilescope.worker.numerics import Accuracy, Difference, accuracy, compare, relative_error
from compilescope.worker.steps import Side

# each leaves out a later part of the compiler
EARLIER_BACKENDS = ("eager", "aot_eager")
# share of the values that rounding may make where no reference in double precision can be had
ROUNDING, HALF_ROUNDING = 1e-4, 2e-2
OWN_SPREADS = 3
Pause = Callable[[], contextlib.AbstractContextManager[None]]
_ONE_STREAM = (
    "when both draw the same random numbers; by default the compiled model draws from another random stream."
)


class Judge:
    """One verdict a subject. Comes after the timing, since it may compile once more, with capture paused."""

    def __init__(self, eager: Side, compiled: Side, config: Config, pause: Pause) -> None:
        self._eager = eager
        self._compiled = compiled
        self._config = config
        self._pause = pause
        self._same_stream: tuple[Outcome, Outcome] | None = None
        self._is_half = eager.recipe.precision in ("bf16", "fp16")

    def verdicts(self, checker: Checker, *, may_compile: bool) -> Iterator[Numerics]:
        """What needs a compile is left out where none may be made."""
        for subject, finding in checker.findings.items():
            difference = finding.difference
            if difference.close or finding.call is None:
                yield self._match(subject, finding, checker.calls)
            elif _is_own_spread(finding):
                yield self._nondeterministic(subject, finding)
            elif checker.draws_random_numbers and self._config.backend == "inductor":
                if may_compile:
                    yield from self._under_one_stream(subject, finding, finding.call)
            else:
                yield from self._second_look(subject, finding, finding.call, may_compile=may_compile)

    def _match(self, subject: str, finding: Finding, calls: int) -> Numerics:
        detail = "Bitwise equal." if finding.difference.equal else "Equal within the tolerance of the type."
        if finding.spread is not None and not finding.spread.equal:
            detail += " Eager itself varies from call to call."
        return self._told(subject, "match", finding.difference, f"{detail} {calls} calls compared.")

    def _nondeterministic(self, subject: str, finding: Finding) -> Numerics:
        spread = (finding.spread and finding.spread.max_abs_error) or 0.0
        detail = f"Eager differs from itself by up to {spread:.3g}, so the two cannot be told apart."
        return self._told(subject, "nondeterministic", finding.difference, detail)

    def _under_one_stream(self, subject: str, finding: Finding, call: Call) -> Iterator[Numerics]:
        """Both sides once more, the compiled one with eager's random numbers."""
        with self._pause():
            if self._same_stream is None:
                self._same_stream = attempt(lambda: self._with_eager_s_numbers(call), None)
        if self._same_stream is None:
            detail = "The model draws random numbers, and could not be compiled to draw the same as eager."
            yield self._told(subject, "not_checked", finding.difference, detail)
            return
        expected, actual = (outcome.part(subject) for outcome in self._same_stream)
        difference = compare(expected, actual, subject)
        if difference.close:
            yield self._told(subject, "match", difference, f"Equal {_ONE_STREAM}")
            return
        share = relative_error(expected, actual) if difference.is_rounding else None
        if share is not None and share <= (HALF_ROUNDING if self._is_half else ROUNDING):
            detail = f"Apart by {share:.2g} of the values, which is rounding, {_ONE_STREAM}"
            yield self._told(subject, "match", difference, detail)
            return
        yield self._told(subject, "differ", difference, f"{_sentence(difference)} This is so even {_ONE_STREAM}")

    def _with_eager_s_numbers(self, call: Call) -> tuple[Outcome, Outcome] | None:
        models = duplicate_model(self._eager.model), duplicate_model(self._eager.model)
        if models[0] is None or models[1] is None:
            return None
        wrapper = compile_model(models[1], self._config, {"fallback_random": True})
        compiled = Side("compiled", models[1], wrapper, self._eager.recipe)
        return perform(twin(self._eager, models[0]), call), perform(compiled, call)

    def _second_look(self, subject: str, finding: Finding, call: Call, *, may_compile: bool) -> Iterator[Numerics]:
        """Rounding is judged by both sides' errors against double precision; anything else is a difference."""
        difference = finding.difference
        judged = attempt(lambda: self._against_double(subject, call), None) if difference.is_rounding else None
        detail = _sentence(difference)
        if judged is not None:
            nearer = "nearer to" if judged.compiled < judged.eager else "further from"
            detail += (
                f" Against double precision the errors are {judged.eager:.3g} (eager) and {judged.compiled:.3g} "
                f"(compiled, {nearer} the truth)."
            )
            if judged.passes:
                yield self._told(subject, "match", difference, detail, judged.ratio)
                return
        elif difference.is_rounding:
            detail += " No reference in double precision could be made."
        yield self._told(subject, "differ", difference, detail, judged.ratio if judged else None)
        if may_compile and self._config.backend == "inductor":
            with self._pause():
                yield from self._by_stage(subject, call)

    def _against_double(self, subject: str, call: Call) -> Accuracy | None:
        """Three calls from one state: in double precision, eager, and compiled as it was measured."""
        models = duplicate_model(self._eager.model), duplicate_model(self._eager.model)
        if models[0] is None or models[1] is None:
            return None
        recipe = dataclasses.replace(self._eager.recipe, precision="fp32")
        double = models[0].double()
        exact = Side("reference", double, double, recipe)
        exact.stance = self._eager.stance
        with stateful(self._eager.recipe):
            copy_state(models[1], self._compiled.model)
        truth = perform(exact, Call(inputs=_doubled(call.inputs), seed=call.seed))
        eager = perform(twin(self._eager, models[1]), call)
        compiled = perform(self._compiled, call)
        return accuracy(truth.part(subject), eager.part(subject), compiled.part(subject), is_half=self._is_half)

    def _by_stage(self, subject: str, call: Call) -> Iterator[Numerics]:
        """The same call on backends that leave out a part of the compiler: the first that differs has the fault."""
        for backend in EARLIER_BACKENDS:
            models = duplicate_model(self._eager.model), duplicate_model(self._eager.model)
            if models[0] is None or models[1] is None:
                return
            config = Config(backend=backend, dynamic=self._config.dynamic)
            partial = Side("compiled", models[1], compile_model(models[1], config), self._eager.recipe)
            try:
                expected = perform(twin(self._eager, models[0]), call).part(subject)
                actual = perform(partial, call).part(subject)
            except Exception as error:  # a backend may fail where another one does not
                detail = f"Failed on this backend: {type(error).__name__}."
                yield Numerics(subject=subject, backend=backend, detail=detail)
                continue
            yield self._stage_verdict(subject, backend, expected, actual)

    def _stage_verdict(self, subject: str, backend: str, expected: object, actual: object) -> Numerics:
        difference = compare(expected, actual, subject)
        share = relative_error(expected, actual) if difference.is_rounding else None
        agrees = difference.close or (share is not None and share <= (HALF_ROUNDING if self._is_half else ROUNDING))
        return Numerics(
            subject=subject,
            backend=backend,
            verdict="match" if agrees else "differ",
            max_abs_error=difference.max_abs_error,
            detail="Agrees on this backend." if agrees else _sentence(difference),
        )

    def _told(
        self, subject: str, verdict: str, difference: Difference, detail: str, ratio: float | None = None
    ) -> Numerics:
        return Numerics(
            subject=subject,
            backend=self._config.backend,
            verdict=verdict,
            max_abs_error=difference.max_abs_error,
            reference_ratio=ratio,
            detail=detail,
        )


def _is_own_spread(finding: Finding) -> bool:
    """Whether eager differs from itself as much as from the compiled model."""
    spread = finding.spread
    if spread is None or spread.equal or not finding.difference.is_rounding:
        return False
    return (finding.difference.max_abs_error or 0.0) <= OWN_SPREADS * (spread.max_abs_error or 0.0)


def _sentence(difference: Difference) -> str:
    return difference.reason[:1].upper() + difference.reason[1:] + "."


def _doubled(inputs: Inputs) -> Inputs:
    def widened(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.detach().double().requires_grad_(tensor.requires_grad)

    args, kwargs = mapped(duplicate(inputs).tree, widened)
    return Inputs(args=args, kwargs=kwargs)
