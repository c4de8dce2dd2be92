"""Advice on time, hardware and results: what is slow and why, what never pays, what cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.domain import cudagraphs, units
from compilescope.domain.advice.rule import (
    CACHING,
    COMPILE,
    CUDAGRAPHS,
    FAQ,
    TF32,
    TROUBLESHOOTING,
    Advice,
    Case,
    one_line,
    place_text,
    places_of,
)
from compilescope.domain.comparison import interval_text, judge
from compilescope.domain.measures import measure
from compilescope.domain.playoff import between
from compilescope.domain.ranking import choose, relative
from compilescope.domain.run import COMPILED, Run
from compilescope.domain.statistics import TOO_NOISY, difference

AMPERE = (8, 0)
# a short job is over before this
LONG_BREAK_EVEN_S = 600.0


def cudagraph_skipped(case: Case) -> Iterator[Advice]:
    """CUDA graphs were asked for and not used."""
    rows = case.story.skipped_cudagraphs
    if not rows or not case.on_cuda:
        return
    reason = one_line(rows[0].reason)
    places = places_of(rows)
    remedy = cudagraphs.remedy(rows[0]) or "See the reason and its line."
    yield Advice(
        code="cudagraph_skipped",
        title="CUDA graphs were skipped",
        evidence=f"{case.run.config.asks_by} asked for CUDA graphs, and {units.plural(len(rows), 'graph')} did without"
        f"{place_text(places)}: {reason}",
        remedy=f"{remedy} Without CUDA graphs that code runs as in mode default.",
        source=CUDAGRAPHS,
        severity="problem",
        places=places,
    )


def cudagraph_warning(case: Case) -> Iterator[Advice]:
    """torch says that CUDA graphs do less here than they could."""
    rows = [row for row in case.story.cudagraphs if row.state == "warning"]
    for row in {row.reason: row for row in rows}.values():
        reason = one_line(row.reason)
        is_pending = cudagraphs.PENDING_BACKWARD.search(reason)
        yield Advice(
            code="cudagraph_warning",
            title="CUDA graphs wait for a backward" if is_pending else "torch warns about CUDA graphs",
            evidence=f"{case.run.config.asks_by}{place_text(places_of([row]))}: {reason}",
            remedy=cudagraphs.remedy(row) or "See the warning, and the page on CUDA graphs.",
            source=CUDAGRAPHS,
            places=places_of([row]),
        )


def cudagraphs_without_cuda(case: Case) -> Iterator[Advice]:
    """A mode that lives on CUDA graphs, on a device that has none."""
    if case.run.config.wants_cudagraphs and case.device == "cpu":
        yield Advice(
            code="cudagraphs_without_cuda",
            title="CUDA graphs need a CUDA device",
            evidence=f"{case.run.config.asks_by} ran on the CPU, where there are no CUDA graphs.",
            remedy="On a CPU compare default with max-autotune-no-cudagraphs; reduce-overhead is the same as default.",
            source=COMPILE,
            severity="note",
        )


def launch_bound(case: Case) -> Iterator[Advice]:
    """The GPU waits for Python, and nothing was done about it."""
    share, measures = case.measures.compiled_busy_share, case.measures
    if measures.launch_bound and share is not None and case.story.graphs and not case.run.config.wants_cudagraphs:
        launches, whole = measures.compiled_launches, measures.profiled(COMPILED)
        count = f" and {units.count(launches)} launches" if launches else ""
        yield Advice(
            code="launch_bound",
            title="The GPU waits for Python",
            evidence=f"Kernels run for {units.percent(share)} of the compiled time per call"
            f" ({units.duration(measures.compiled_gpu_busy_s)} of "
            f"{units.duration(whole.median if whole else None)}{count}).",
            remedy="Try mode reduce-overhead, which replays all launches as one CUDA graph, or a larger batch.",
            source=CUDAGRAPHS,
        )


def tf32_off(case: Case) -> Iterator[Advice]:
    """fp32 matrix products on a GPU whose tensor cores could do them. Convolutions have a setting of their own."""
    capability, workload = case.capability, next((p.workload for p in case.run.processes if p.workload), None)
    if not case.on_cuda or capability is None or capability < AMPERE or workload is None:
        return
    floats = any((row.dtype or "").endswith("float32") for row in workload.inputs)
    # weights of another type make products of that type
    own_types = any(row.code == "own_precision" for process in case.run.processes for row in process.warnings)
    is_off = workload.float32_matmul_precision == "highest" and not own_types
    if (workload.precision or case.run.workload.precision) == "fp32" and floats and is_off:
        yield Advice(
            code="tf32_off",
            title="fp32 matrix products run without tensor cores",
            evidence=f"Precision fp32 on compute capability {capability[0]}.{capability[1]}, and torch's precision of "
            "float32 matrix products is highest, which leaves TF32 out.",
            remedy='Compare precision tf32 (torch.set_float32_matmul_precision("high")) or bf16: both change rounding, '
            "so check your own metric.",
            source=TF32,
            severity="note",
        )


def old_gpu(case: Case) -> Iterator[Advice]:
    """A GPU from before Ampere."""
    capability = case.capability
    if case.on_cuda and capability is not None and capability < AMPERE:
        need = " Triton needs 7.0." if capability < (7, 0) else ""
        yield Advice(
            code="old_gpu",
            title="An older GPU than Ampere",
            evidence=f"Compute capability {capability[0]}.{capability[1]}; published speedups are mostly from 8.0 on."
            f"{need}",
            remedy="Expect less, and trust only figures from the GPU that you will use.",
            source=FAQ,
            severity="note",
        )


def never_pays(case: Case) -> Iterator[Advice]:
    """The first call's cost does not come back, or only after long."""
    verdict, speedup, first = case.verdict, case.measures.speedup, case.measures.cold_first_call_s
    if verdict is None or speedup is None or first is None:
        return
    found = verdict.break_evens.get("cold")
    if verdict.kind in ("slower", "no_difference"):
        yield Advice(
            code="never_pays",
            title="Compiling does not pay off here",
            evidence=f"The first call took {units.duration(first)}, and the time per call is not shown to be lower "
            f"({units.speedup(speedup.value, speedup.spread)}).",
            remedy="Leave it eager, or compile only the part that takes the time.",
            source=FAQ,
        )
    elif found is not None and (found.seconds if found.is_known else found.seconds_low) > LONG_BREAK_EVEN_S:
        yield Advice(
            code="pays_late",
            title="Compiling pays off late",
            evidence=f"The first call took {units.duration(first)}; it {verdict.pays_off}.",
            remedy="Keep it for long jobs; for short ones leave it eager, or keep the compile cache between starts.",
            source=CACHING,
            severity="note",
        )


def autotune_not_worth_it(case: Case) -> Iterator[Advice]:
    """Searching for faster kernels found nothing that a simpler mode does not have."""
    own, first, verdict = case.measures.speedup, case.measures.cold_first_call_s, case.verdict
    if not case.run.config.wants_autotuning or own is None or first is None or verdict is None:
        return
    plain = [other for other in case.others if _does_without_autotuning(other, case)]
    if verdict.kind not in ("faster", "slower", "no_difference", "too_noisy") or not plain:
        return
    other = choose(plain, case.noise_floor)
    figures = measure(other)
    yield Advice(
        code="autotune_not_worth_it",
        title="Autotuning found no provable gain",
        evidence=f"{case.run.label} {units.speedup(own.value, own.spread)} after {units.duration(first)}, "
        f"{other.label} {interval_text(figures.speedup)} after {units.duration(figures.cold_first_call_s)}.",
        remedy=f"Use {other.label}.",
        source=COMPILE,
        severity="note",
    )


def _does_without_autotuning(other: Run, case: Case) -> bool:
    """Whether another run is faster than eager without a search, after a cheaper first call, and as good as this one:
    the search was not shown to gain anything over it, and no gain that matters is left open."""
    own, first = case.measures.speedup, case.measures.cold_first_call_s
    figures, verdict = measure(other), judge(other, case.noise_floor)
    if other.config.wants_autotuning or other.workload != case.run.workload:
        return False
    # what was found in the user's own cache did not have to be searched for
    if other.uses_own_cache or case.run.uses_own_cache or first is None or figures.cold_first_call_s is None:
        return False
    if own is None or figures.speedup is None or verdict is None or verdict.kind != "faster":
        return False
    played = between(case.play_offs, (case.run.id,), (other.id,))
    gain = (played and played.ratio) or relative(own, figures.speedup)
    is_as_good = difference(gain, case.noise_floor) != "faster" and gain.high <= 1 + TOO_NOISY
    return is_as_good and figures.cold_first_call_s < first


def results_differ(case: Case) -> Iterator[Advice]:
    """Wrong results, and where they become wrong."""
    found = case.measures.numerics
    if found.verdict != "differ":
        return
    stage = f" The first backend that differs is {found.backend}." if found.backend else ""
    error = "" if found.max_abs_error is None else f" by up to {found.max_abs_error:.3g}"
    yield Advice(
        code="results_differ",
        title="Compiled results differ from eager",
        evidence=f"The {found.subject} differ{error}, more than rounding explains.{stage} {found.detail}".strip(),
        remedy="Do not use this configuration. Try mode default, then backend aot_eager and eager, to see the stage at "
        "fault; report it with the run's trace.",
        source=TROUBLESHOOTING,
        severity="problem",
    )


def cache_bypassed(case: Case) -> Iterator[Advice]:
    """Graphs that no cache can keep: every start is cold."""
    rows = [row for row in case.story.cache if row.state == "bypass"]
    if rows:
        yield Advice(
            code="cache_bypassed",
            title="The compile cache was bypassed",
            evidence=f"{units.plural(len(rows), 'lookup')} of {', '.join(sorted({row.cache for row in rows}))} "
            f"bypassed: {one_line(rows[0].reason)}",
            remedy="Every new process compiles again. Remove what cannot be hashed, or plan for the cold start.",
            source=CACHING,
            severity="note",
        )


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (
    results_differ,
    cudagraph_skipped,
    cudagraph_warning,
    cudagraphs_without_cuda,
    launch_bound,
    tf32_off,
    old_gpu,
    never_pays,
    autotune_not_worth_it,
    cache_bypassed,
)
