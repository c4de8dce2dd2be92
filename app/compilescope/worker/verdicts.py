"""Judges what the check found: rounding, another random stream, eager's own spread, or a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from compilescope.domain.config import Config
from compilescope.domain.events import Numerics
from compilescope.worker.accuracy import OWN_SPREADS, Accuracy, apart, within
from compilescope.worker.allowance import allowance
from compilescope.worker.check import COMMON_SCALE, Call, Checker, Finding, Outcome
from compilescope.worker.environment import attempt
from compilescope.worker.numerics import FEW_FLIPS, Difference, compare
from compilescope.worker.rerun import Pause, Rerun, Trial
from compilescope.worker.steps import Side

# each leaves out a later part of the compiler
STAGES = ("eager", "aot_eager", "aot_eager_decomp_partition")
# the share of whole numbers that ties may decide in a coarse type although eager's are those of double precision
FEW_TIES = 0.01
_REMEMBERS = (
    "But eager itself tells another result when it is called again from the same parameters and buffers: the model "
    "keeps state elsewhere, such as in a plain attribute, which cannot be put back. As a buffer it could."
)
WORST_FIRST = ("differ", "nondeterministic", "not_checked", "match")
_ONE_STREAM = "when both draw the same random numbers; by default the compiled model draws from another random stream."


class Judge:
    """One verdict a subject. Comes after the timing, since it may compile once more, with capture paused."""

    def __init__(self, eager: Side, compiled: Side, config: Config, pause: Pause) -> None:
        self._eager = eager
        self._config = config
        self._rerun = Rerun(eager, compiled, config, pause)
        self._limits = allowance(eager.recipe, eager.model)

    def verdicts(self, checker: Checker, *, may_compile: bool) -> Iterator[Numerics]:
        """What needs a compile is left out where none may be made."""
        for subject, finding in checker.findings.items():
            for row in self._of(subject, finding, checker, may_compile=may_compile):
                # an input that is no tensor, such as a random generator, is no result
                if finding.unseen and (subject, row.verdict, row.backend) == ("outputs", "match", self._config.backend):
                    detail = f"{finding.unseen} could not be looked into. {row.detail}"
                    row = dataclasses.replace(row, verdict="not_checked", detail=detail)
                yield row

    def _of(self, subject: str, finding: Finding, checker: Checker, *, may_compile: bool) -> Iterator[Numerics]:
        if finding.difference.close or finding.call is None:
            yield self._match(subject, finding, checker.calls)
            return
        self._limits = allowance(self._eager.recipe, self._eager.model, self._rerun.types(finding.call))
        if self._varies_by_itself(finding):
            yield self._nondeterministic(subject, finding)
        elif may_compile or not self._rerun.draws(checker):
            yield from self._second_look(subject, checker, finding.call, may_compile=may_compile)

    def _match(self, subject: str, finding: Finding, calls: int) -> Numerics:
        detail = "Bitwise equal." if finding.difference.equal else "Equal within the tolerance of the type."
        if finding.spread is not None and not finding.spread.equal:
            detail += " Eager itself varies from call to call."
        detail = " ".join([detail, f"{calls} call{'' if calls == 1 else 's'} compared.", *finding.layout])
        return self._told(subject, "match", finding.difference, detail)

    def _varies_by_itself(self, finding: Finding) -> bool:
        """Whether eager differs from itself by more than rounding, and as much as from the compiled model."""
        spread, difference = finding.spread, finding.difference
        if spread is None or spread.close:
            return False
        if not spread.is_rounding:
            return not difference.is_rounding and difference.path == spread.path
        if difference.flipped > OWN_SPREADS * spread.flipped:
            return False
        is_within = (difference.max_abs_error or 0.0) <= OWN_SPREADS * (spread.max_abs_error or 0.0)
        return finding.spread_share > self._limits.share and difference.is_rounding and is_within

    def _nondeterministic(self, subject: str, finding: Finding) -> Numerics:
        error = finding.spread.max_abs_error if finding.spread else None
        extent = f" by up to {error:.3g}" if error else ""
        detail = f"Eager differs from itself{extent}, so the two cannot be told apart."
        return self._told(subject, "nondeterministic", finding.difference, detail)

    def _second_look(self, subject: str, checker: Checker, call: Call, *, may_compile: bool) -> Iterator[Numerics]:
        """Both sides once more from the same state, with the same random numbers, beside double precision."""
        finding, draws = checker.findings[subject], self._rerun.draws(checker)
        trial = attempt(lambda: self._rerun.of(checker, call), None)
        if trial is not None:
            verdict = self._of_trial(subject, finding, trial, is_one_stream=draws)
        elif draws:
            detail = "The model draws random numbers, and could not be compiled to draw the same as eager."
            verdict = self._told(subject, "not_checked", finding.difference, detail)
        else:
            verdict = self._unreferenced(subject, finding, "the model cannot be copied", None)
        if verdict.verdict == "differ" and attempt(lambda: self._rerun.remembers(subject, call, self._limits), False):
            verdict = self._told(subject, "not_checked", finding.difference, f"{verdict.detail} {_REMEMBERS}")
        yield verdict
        if verdict.verdict == "differ" and may_compile:
            yield from self._by_stage(subject, call, trial)

    def _of_trial(self, subject: str, finding: Finding, trial: Trial, *, is_one_stream: bool) -> Numerics:
        expected, actual = trial.eagers[0].part(subject), trial.compiled.part(subject)
        again = compare(expected, actual, subject)
        if subject == "gradients" and trial.overflows:
            detail = "Eager's gradients overflow fp16 at this loss scale, so that the step is skipped."
            return self._told(subject, "not_checked", finding.difference, detail)
        if again.close and is_one_stream:
            return self._told(subject, "match", again, f"Equal {_ONE_STREAM}")
        if again.close:
            detail = f"{_sentence(finding.difference)} Called again from the same state, the two were equal."
            return self._told(subject, "nondeterministic", finding.difference, detail)
        if is_one_stream or again.is_fault:
            gap = apart(expected, actual, common=subject in COMMON_SCALE) if again.is_rounding else finding.gap
            finding = dataclasses.replace(finding, difference=again, gap=gap, flips=again)
        judged = trial.judged(subject, self._limits) if finding.difference.is_rounding else None
        if judged is None:
            why = trial.why_no_truth or "its results have another type in it"
            verdict = self._unreferenced(subject, finding, why, trial)
        else:
            verdict = self._with_flips(subject, finding, self._referenced(subject, finding, judged), trial)
        return (
            dataclasses.replace(verdict, detail=f"{verdict.detail} This is {_ONE_STREAM}") if is_one_stream else verdict
        )

    def _with_flips(self, subject: str, finding: Finding, verdict: Numerics, trial: Trial | None) -> Numerics:
        """The worse of a verdict on numbers with a fraction and that on whole ones."""
        if not finding.flips.flipped:
            return verdict
        return min(
            verdict, self._flipped(subject, finding.flips, trial), key=lambda row: WORST_FIRST.index(row.verdict)
        )

    def _flipped(self, subject: str, difference: Difference, trial: Trial | None) -> Numerics:
        """Of whole numbers that differ: whether rounding may decide them, as where an argmax finds two alike."""
        share, path, limits = difference.flipped, difference.flip_path, self._limits
        own = trial.flips_of_eager(subject, path) if trial else None
        detail = f"{share:.2g} of the whole numbers of {path} differ"
        if not difference.is_rounding:
            detail = _sentence(difference).removesuffix(".")
        if own is not None:
            detail += f"; in double precision {own:.2g} of eager's would be others"
        # what a reference shows is surer than what a type may do
        ties = 0.0 if limits.name == "fp32" else FEW_FLIPS if own is None else FEW_TIES
        if share <= max(OWN_SPREADS * (own or 0.0), ties):
            detail += f". Ties, as an argmax finds them in {limits.name}, fall either way."
            return self._told(subject, "not_checked", difference, detail)
        return self._told(subject, "differ", difference, f"{detail}.")

    def _referenced(self, subject: str, finding: Finding, judged: Accuracy) -> Numerics:
        nearer = "nearer to" if judged.compiled < judged.eager else "further from"
        detail = (
            f"{_sentence(finding.difference)} Against double precision the errors are {judged.eager:.3g} (eager) and "
            f"{judged.compiled:.3g} (compiled, {nearer} the truth)."
        )
        verdict = "match" if judged.passes else "differ"
        if judged.eager_share > self._limits.stray:
            verdict = "not_checked"
            detail += f" Eager's own error is {judged.eager_share:.2g} of the values, too much to judge by."
        return self._told(subject, verdict, finding.difference, detail, judged.ratio)

    def _unreferenced(self, subject: str, finding: Finding, why: str, trial: Trial | None) -> Numerics:
        difference = finding.difference
        if difference.is_fault:
            return self._told(subject, "differ", difference, _sentence(difference))
        if not difference.is_rounding:
            return self._flipped(subject, finding.flips, trial)
        return self._with_flips(subject, finding, self._by_precision(subject, finding, why), trial)

    def _by_precision(self, subject: str, finding: Finding, why: str) -> Numerics:
        """Without eager's own error, only what the precision in force cannot explain is a difference."""
        difference, gap, limits = finding.difference, finding.gap, self._limits
        share = f"{_sentence(difference)} That is {gap.rms:.2g} of the values"
        no_reference = f"There is no reference in double precision: {why}."
        if finding.spread_share and gap.rms <= OWN_SPREADS * finding.spread_share:
            detail = f"{share}; eager differs from itself by {finding.spread_share:.2g}. {no_reference}"
            return self._told(subject, "nondeterministic", difference, detail)
        if within(gap, limits):
            detail = f"{share}, which {limits.name} may explain. {no_reference}"
            return self._told(subject, "not_checked", difference, detail)
        detail = f"{share}, more than {limits.name} explains. {no_reference}"
        return self._told(subject, "differ", difference, detail)

    def _by_stage(self, subject: str, call: Call, trial: Trial | None) -> Iterator[Numerics]:
        """The same call on backends that leave out a part of the compiler: the first that differs has the fault."""
        if trial is None:
            return
        for backend in _earlier(self._config.backend):
            try:
                outcome = self._rerun.on_backend(backend, call)
            except Exception as error:  # a backend may fail where another one does not
                detail = f"Failed on this backend: {type(error).__name__}."
                yield Numerics(subject=subject, backend=backend, detail=detail)
                continue
            yield self._stage_verdict(subject, backend, trial, outcome)

    def _stage_verdict(self, subject: str, backend: str, trial: Trial, outcome: Outcome) -> Numerics:
        expected, actual = trial.eagers[0].part(subject), outcome.part(subject)
        difference = compare(expected, actual, subject)
        agrees = not difference.is_fault
        if difference.is_rounding:
            judged = trial.judged(subject, self._limits, outcome)
            gap = apart(expected, actual, common=subject in COMMON_SCALE)
            agrees = judged.passes if judged is not None else within(gap, self._limits)
        if difference.flipped:
            agrees = agrees and self._flipped(subject, difference, trial).verdict != "differ"
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


def _earlier(backend: str) -> tuple[str, ...]:
    """The backends before this one; a backend of the script's own comes last."""
    stages = STAGES[: STAGES.index(backend)] if backend in STAGES else STAGES
    available = torch.compiler.list_backends(exclude_tags=())
    return tuple(stage for stage in stages if stage in available)


def _sentence(difference: Difference) -> str:
    return difference.reason[:1].upper() + difference.reason[1:] + "."
