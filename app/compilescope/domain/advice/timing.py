"""Advice on time, hardware and results: what is slow and why, what never pays, what cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.domain import cudagraphs, statistics, units
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
from compilescope.domain.measures import measure
from compilescope.domain.verdict import is_undecided

AMPERE = (8, 0)
# a short job is over before this
LONG_BREAK_EVEN_S = 600.0


def cudagraph_skipped(case: Case) -> Iterator[Advice]:
    """CUDA graphs were asked for and not used."""
    rows = [row for row in case.story.cudagraphs if row.state == "skipped"]
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
        launches = measures.compiled_launches
        count = f" and {units.count(launches)} launches" if launches else ""
        yield Advice(
            code="launch_bound",
            title="The GPU waits for Python",
            evidence=f"Kernels run for {units.percent(share)} of the compiled time per call"
            f" ({units.duration(measures.compiled_gpu_busy_s)} of "
            f"{units.duration(measures.compiled.median if measures.compiled else None)}{count}).",
            remedy="Try mode reduce-overhead, which replays all launches as one CUDA graph, or a larger batch.",
            source=CUDAGRAPHS,
        )


def tf32_off(case: Case) -> Iterator[Advice]:
    """fp32 products on a GPU whose tensor cores could do them."""
    capability, workload = case.capability, next((p.workload for p in case.run.processes if p.workload), None)
    if not case.on_cuda or capability is None or capability < AMPERE or workload is None:
        return
    floats = any((row.dtype or "").endswith("float32") for row in workload.inputs)
    if (workload.precision or case.run.workload.precision) == "fp32" and floats:
        yield Advice(
            code="tf32_off",
            title="fp32 products run without tensor cores",
            evidence=f"Precision fp32 on compute capability {capability[0]}.{capability[1]}; TF32 is off by default.",
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
    measures, first = case.measures, case.measures.cold_first_call_s
    if case.run.outcome != "finished" or first is None or measures.speedup is None or not case.story.graphs:
        return
    found = measures.cold_break_even
    is_faster = statistics.difference(measures.speedup, case.noise_floor) == "faster"
    if not is_faster and is_undecided(measures.speedup):
        return  # too noisy to say so
    if found is None or not is_faster:
        yield Advice(
            code="never_pays",
            title="Compiling does not pay off here",
            evidence=f"The first call took {units.duration(first)}, and the time per call is not shown to be lower "
            f"({units.speedup(measures.speedup.value, measures.speedup.spread)}).",
            remedy="Leave it eager, or compile only the part that takes the time.",
            source=FAQ,
        )
    elif found.seconds > LONG_BREAK_EVEN_S:
        yield Advice(
            code="pays_late",
            title="Compiling pays off late",
            evidence=f"The first call took {units.duration(first)}; it has paid for itself after "
            f"{units.duration(found.seconds)} ({units.count(float(f'{found.calls:.3g}'))} calls).",
            remedy="Keep it for long jobs; for short ones leave it eager, or keep the compile cache between starts.",
            source=CACHING,
            severity="note",
        )


def autotune_not_worth_it(case: Case) -> Iterator[Advice]:
    """Searching for faster kernels found nothing that a simpler mode does not have."""
    own, first = case.measures.speedup, case.measures.cold_first_call_s
    if not case.run.config.wants_autotuning or own is None or first is None or case.run.outcome != "finished":
        return
    for other in case.others:
        figures = measure(other)
        plain = not other.config.wants_autotuning and other.workload == case.run.workload
        if not (plain and other.outcome == "finished" and figures.speedup and figures.cold_first_call_s):
            continue
        if figures.speedup.high >= own.low and figures.cold_first_call_s < first:
            yield Advice(
                code="autotune_not_worth_it",
                title="Autotuning found no provable gain",
                evidence=f"{case.run.label} {units.speedup(own.value, own.spread)} after {units.duration(first)}, "
                f"{other.label} {units.speedup(figures.speedup.value, figures.speedup.spread)} after "
                f"{units.duration(figures.cold_first_call_s)}.",
                remedy=f"Use {other.label}.",
                source=COMPILE,
                severity="note",
            )
            return


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
