"""Judges what the check found: rounding, a jump that rounding makes, eager's own spread, or a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import Numerics
from compilescope.worker.accuracy import OWN_SPREADS, Accuracy
from compilescope.worker.allowance import TABLE, allowance
from compilescope.worker.check import Call, Checker, Finding, Outcome, compared
from compilescope.worker.ensemble import SEEDS
from compilescope.worker.environment import attempt
from compilescope.worker.numerics import Difference
from compilescope.worker.reference import DOUBLE, SINGLE
from compilescope.worker.rerun import Pause, Rerun
from compilescope.worker.steps import Side
from compilescope.worker.trial import Trial
from compilescope.worker.updates import compare_updates

# each leaves out a later part of the compiler
STAGES = ("eager", "aot_eager", "aot_eager_decomp_partition")
WORST_FIRST = ("differ", "nondeterministic", "not_checked", "match")
_REMEMBERS = (
    "Eager itself, called again from the same state, tells another result than in the check: something that calls "
    "change can be neither seen nor put back, so that no second call tells whose the difference is."
)
_ONE_STREAM = "when both draw the same random numbers; by default the compiled model draws from another random stream."
_NOTHING = "Its forward returns nothing and changes nothing that can be seen."


class Judge:
    """One verdict a subject and size. Comes after the timing, since it may compile once more, with capture paused."""

    def __init__(self, eager: Side, compiled: Side, config: Config, pause: Pause) -> None:
        self._eager = eager
        self._config = config
        self._rerun = Rerun(eager, compiled, config, pause)
        self._limits = allowance(eager.recipe, eager.model)

    def verdicts(self, checker: Checker, *, may_compile: bool) -> Iterator[Numerics]:
        """What needs a compile is left out where none may be made."""
        for (shape, subject), finding in checker.findings.items():
            for row in self._of(subject, finding, checker, may_compile=may_compile):
                is_own = row.backend == self._config.backend and row.verdict == "match"
                told = _of_what_was_seen(subject, row, finding) if is_own else row
                if told is not None:
                    yield dataclasses.replace(told, shape=shape)

    def _of(self, subject: str, finding: Finding, checker: Checker, *, may_compile: bool) -> Iterator[Numerics]:
        if finding.difference.close or finding.call is None:
            detail = "Bitwise equal." if finding.difference.equal else "Equal within the tolerance of the type."
            calls = finding.calls
            detail = " ".join([detail, f"{calls} call{'' if calls == 1 else 's'} compared.", *finding.layout])
            yield self._told(subject, "match", finding.difference, detail)
        elif may_compile or not self._rerun.draws(checker):
            yield from self._second_look(subject, finding, checker, finding.call, may_compile=may_compile)

    def _second_look(
        self, subject: str, finding: Finding, checker: Checker, call: Call, *, may_compile: bool
    ) -> Iterator[Numerics]:
        """Both sides once more from the same state, with the same random numbers, beside what tells rounding."""
        self._limits = allowance(self._eager.recipe, self._eager.model, self._rerun.types(call))
        draws = self._rerun.draws(checker)
        try:
            trial = self._rerun.of(checker, call, self._limits)
        except Exception as error:  # whatever a model or a backend does when it is called once more
            text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            failure = f"Called again, the model failed ({type(error).__name__}: {text[:160]}).".replace(": )", ")")

            yield self._without_trial(subject, finding, failure)
            return
        verdict = self._of_trial(subject, finding, trial, call, draws=draws, may_compile=may_compile)
        yield verdict
        if verdict.verdict == "differ" and may_compile:
            yield from self._by_stage(subject, call, trial)

    def _of_trial(
        self, subject: str, finding: Finding, trial: Trial, call: Call, *, draws: bool, may_compile: bool
    ) -> Numerics:
        difference = finding.difference
        one = trial.eagers[0]
        again = compared(subject, one, trial.compiled, call)
        if (told := self._of_eager_alone(subject, finding, trial, call, again)) is not None:
            return told
        if subject == "gradients" and trial.overflows:
            detail = "Eager's gradients overflow fp16 at this loss scale, so that the step is skipped."
            return self._told(subject, "not_checked", difference, detail)
        if again.close and draws:
            return self._told(subject, "match", again, f"Equal {_ONE_STREAM}")
        if again.close and trial.is_unequal:
            detail = "Equal from the same state; before this call the two had counted to different numbers."
            return self._told(subject, "match", again, detail)
        if again.close:
            detail = f"{_sentence(difference)} Called again from the same state, the two were equal."
            return self._told(subject, "nondeterministic", difference, detail)
        if subject == "update":
            verdict = self._of_update(again, trial, call)
        elif again.is_fault:
            verdict = self._told(subject, "differ", again, _sentence(again))
        else:
            verdict = self._of_rounding(subject, again, trial, call, may_compile=may_compile)
        return dataclasses.replace(verdict, detail=f"{verdict.detail} This is {_ONE_STREAM}") if draws else verdict

    def _of_eager_alone(
        self, subject: str, finding: Finding, trial: Trial, call: Call, again: Difference
    ) -> Numerics | None:
        """A verdict where eager cannot be called twice with one result."""
        one, two = trial.eagers
        spread, difference = compared(subject, one, two, call), finding.difference
        if self._is_more_than_rounding(spread):
            same_kind = spread.is_rounding == difference.is_rounding and spread.is_fault == difference.is_fault
            is_as_far = again.gap.rms <= OWN_SPREADS * spread.gap.rms
            if same_kind and is_as_far and difference.flipped <= OWN_SPREADS * spread.flipped:
                extent = f" by up to {spread.max_abs_error:.3g}" if spread.max_abs_error else ""
                detail = f"Eager differs from itself{extent}, so the two cannot be told apart."
                return self._told(subject, "nondeterministic", difference, detail)
        if call.eager is not None and subject != "update":
            before = compared(subject, call.eager.copied(trial.device), one, call)
            strays = spread.close or before.gap.rms > OWN_SPREADS * spread.gap.rms
            if strays and self._is_more_than_rounding(before):
                return self._told(subject, "not_checked", difference, f"{_sentence(difference)} {_REMEMBERS}")
        return None

    def _is_more_than_rounding(self, difference: Difference) -> bool:
        is_small = difference.is_rounding and difference.gap.rms <= self._limits.share
        return not difference.close and not is_small

    def _of_update(self, again: Difference, trial: Trial, call: Call) -> Numerics:
        """By eager's optimizer, given the compiled model's gradients."""
        before = call.before["eager"].parameters()
        own, given = trial.own_update, trial.update
        if own is None or given is None or not compare_updates(before, trial.eagers[0].update, own).close:
            detail = f"{_sentence(again)} The optimizer cannot be called again by itself."
            return self._told("update", "not_checked", again, detail)
        same = compare_updates(before, given, trial.compiled.update)
        if same.close:
            detail = "With the same gradients, eager's optimizer makes the same update."
            return self._told("update", "match", same, detail)
        return self._told("update", "differ", same, f"{_sentence(same)} Both had the same gradients.")

    def _of_rounding(self, subject: str, again: Difference, trial: Trial, call: Call, *, may_compile: bool) -> Numerics:
        """By what rounding does to eager, and by a wider type."""
        verdict, detail, accuracy = self._weighed(subject, again, trial, trial.compiled)
        # a jump that rounding makes in one call of ten is not in the first few
        if verdict in ("unsettled", "differ") and len(trial.members) == SEEDS:
            self._rerun.more(trial, call, self._limits)
            verdict, detail, accuracy = self._weighed(subject, again, trial, trial.compiled)
        if verdict in ("unsettled", "likely") and may_compile:
            agrees = attempt(lambda: self._agrees_in_wider_type(subject, call), None)
            if agrees is not None:
                verdict = "match" if agrees else "differ"
                name = "fp32" if self._limits.is_half else "double precision"
                detail += f" Both called in {name}, they {'agree' if agrees else 'differ too'}."
        if verdict == "unsettled":
            detail += " In some of these rows rounding did not do it to eager, so that it may be a fault."
        verdict = {"unsettled": "not_checked", "likely": "match"}.get(verdict, verdict)
        return self._told(subject, verdict, again, detail, accuracy.ratio if accuracy is not None else None)

    def _weighed(
        self, subject: str, difference: Difference, trial: Trial, outcome: Outcome
    ) -> tuple[str, str, Accuracy | None]:
        """match, differ, not_checked; unsettled: some rows jumped that do not in eager, but not many; likely: a match
        in which an error of the rows that jump in eager would not show."""
        sentence = _sentence(difference)
        jumped = trial.jumps(subject, outcome, self._limits)
        found = trial.judged(subject, outcome, self._limits, {jump.path: jump.steady for jump in jumped})
        far = sorted((jump for jump in jumped if jump.compiled), key=lambda jump: -jump.compiled)
        if wrong := next((jump for jump in far if jump.is_wrong), None):
            return "differ", f"{sentence} {wrong.fault}", found
        verdict = "likely" if self._limits.is_half and any(jump.own for jump in jumped) else "match"
        if any(jump.new for jump in far) or (difference.flipped and not far):
            verdict = "unsettled"
        detail = " ".join([sentence, *(jump.words for jump in far[:1])])
        if found is None or found.is_of_eager:
            if found is not None and not found.passes:
                return *self._by_precision(difference, trial), found
            if not far:
                detail += " Rounding takes eager's own results as far."
            return verdict, f"{detail} {self._no_wider_type(trial)}", found
        nearer = "nearer to" if found.compiled < found.eager else "further from"
        detail += f" Against {trial.exact_type} the errors are {found.eager:.3g} (eager)"
        detail += f" and {found.compiled:.3g} (compiled, {nearer} the truth)."
        if found.eager_share > self._limits.stray:
            detail += f" Eager's own error is {found.eager_share:.2g} of the values, too much to judge by."
            return "not_checked", detail, found
        return verdict if found.passes else "differ", detail, found

    def _no_wider_type(self, trial: Trial) -> str:
        why = trial.why_not_exact or "its results have another type in it"
        return f"There is no reference in double precision: {why}."

    def _by_precision(self, difference: Difference, trial: Trial) -> tuple[str, str]:
        """Farther than rounding took eager: only what the precision in force cannot explain at all is a difference."""
        share = f"{_sentence(difference)} That is {difference.gap.rms:.2g} of the values"
        if self._limits.explains(difference.gap):
            return "not_checked", f"{share}, which {self._limits.name} may explain. {self._no_wider_type(trial)}"
        return "differ", f"{share}, more than {self._limits.name} explains. {self._no_wider_type(trial)}"

    def _agrees_in_wider_type(self, subject: str, call: Call) -> bool:
        types, precision = (SINGLE, "fp32") if self._limits.is_half else (DOUBLE, "fp64")
        difference = compared(subject, *self._rerun.in_wider_type(call, types), call)
        return difference.close or (difference.is_rounding and TABLE[precision].explains(difference.gap))

    def _without_trial(self, subject: str, finding: Finding, why: str) -> Numerics:
        difference = finding.difference
        may_be_rounding = not difference.is_fault and (
            not difference.is_rounding or self._limits.explains(difference.gap)
        )
        verdict = "not_checked" if may_be_rounding else "differ"
        return self._told(subject, verdict, difference, f"{_sentence(difference)} {why}")

    def _by_stage(self, subject: str, call: Call, trial: Trial) -> Iterator[Numerics]:
        """The same call on backends that leave out a part of the compiler: the first that differs has the fault."""
        for backend in _earlier(self._config.backend):
            try:
                outcome = self._rerun.on_backend(backend, call)
            except Exception as error:  # a backend may fail where another one does not
                detail = f"Failed on this backend: {type(error).__name__}."
                yield Numerics(subject=subject, backend=backend, detail=detail)
                continue
            difference = compared(subject, trial.eagers[0], outcome, call)
            agrees = not difference.is_fault
            if not difference.close and agrees and subject != "update":
                agrees = self._weighed(subject, difference, trial, outcome)[0] != "differ"
            yield Numerics(
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
            detail=" ".join(detail.split()),
        )


def _of_what_was_seen(subject: str, row: Numerics, finding: Finding) -> Numerics | None:
    """A match of nothing is none; where forward returns nothing, what it changes decides."""
    if subject == "outputs" and finding.unseen:
        # an input that is no tensor, such as a random generator, is no result
        detail = f"{finding.unseen} could not be looked into. {row.detail}"
        return dataclasses.replace(row, verdict="not_checked", detail=detail)
    if finding.holds_values or subject not in ("outputs", "state"):
        return row
    if subject == "state" or finding.has_effects:
        return None
    return dataclasses.replace(row, verdict="not_checked", detail=_NOTHING)


def _earlier(backend: str) -> tuple[str, ...]:
    """The backends before this one; a backend of the script's own comes last."""
    stages = STAGES[: STAGES.index(backend)] if backend in STAGES else STAGES
    available = torch.compiler.list_backends(exclude_tags=())
    return tuple(stage for stage in stages if stage in available)


def _sentence(difference: Difference) -> str:
    return difference.reason[:1].upper() + difference.reason[1:] + "."
