"""How it was measured, how to measure it again, and what was not looked at."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator, Sequence

from compilescope.domain import units
from compilescope.domain.breakeven import FIRST_CALL_SPREAD, MOST_APART
from compilescope.domain.comparison import Comparison
from compilescope.domain.config import Config
from compilescope.domain.hotspots import is_profiled
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.statistics import ERROR_SHARE, LEAST_SPREAD, SCATTER_SHARE, TOO_NOISY
from compilescope.domain.verdict import is_as_narrow_as_asked, noise_floor_text
from compilescope.domain.workload import Measurement, Workload

_SWITCH = {None: "auto", True: "on", False: "off"}
_ALONE = (
    "the time of a call by itself, waited for, with inputs and state put back before it, outside of the time; a block "
    "is worth the median of its calls."
)
_PLAY_OFF = (
    "A play-off compiles two that their own runs could not tell apart in one process, each for a model of its own, and "
    "times them in turns in a cold and in a warm one; it says how the two compare, and not their speedups over eager."
)


def commands(runs: Sequence[Run], measurement: Measurement | None = None) -> list[str]:
    """Command lines that repeat the comparison: one where the configurations are a product, else one each."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        # a product has one backend and one set of options
        own = [run.workload.to_json(), run.config.backend, dict(run.config.options or {}), run.uses_own_cache]
        groups.setdefault(json.dumps(own, sort_keys=True), []).append(run)
    return [line for group in groups.values() for line in _group_commands(group, measurement)]


def _group_commands(runs: Sequence[Run], measurement: Measurement | None) -> list[str]:
    configs: list[Config] = []
    for run in runs:
        if run.config not in configs:
            configs.append(run.config)
    common = ["compilescope", "bench", *_workload_arguments(runs[0].workload, measurement)]
    common += ["--cache", "mine"] if runs[0].uses_own_cache else []
    whole = _product_arguments(configs)
    parts = [whole] if whole is not None else [_config_arguments(config) for config in configs]
    return [shlex.join([*common, *part]) for part in parts]


def _workload_arguments(workload: Workload, measurement: Measurement | None) -> list[str]:
    found = [workload.script]
    for option, value in (("--entry", workload.entry), ("--device", workload.device)):
        found += [option, value] if value else []
    found += ["--phase", workload.phase, "--precision", workload.precision]
    for name, sizes in (workload.inputs or {}).items():
        found += ["--inputs", f"{name}={';'.join(','.join(map(str, size)) for size in sizes)}"]
    found += ["--train-mode"] if workload.train_mode else []
    found += ["--grad-mode", workload.grad_mode] if workload.grad_mode != "inference_mode" else []
    found += ["--threads", str(workload.threads)] if workload.threads else []
    found += [part for word in workload.arguments for part in ("--arg", word)]
    if measurement:
        found += ["--budget", f"{measurement.budget_s:g}", *["--l2-flush"] * measurement.l2_flush]
        found += ["--queue", _SWITCH[measurement.queued]] if measurement.queued is not None else []
    return found


def _product_arguments(configs: Sequence[Config]) -> list[str] | None:
    """Options whose product is exactly these configurations of one backend; None where there are none such."""
    modes = list(dict.fromkeys(config.mode or "default" for config in configs))
    dynamics = list(dict.fromkeys(config.dynamic for config in configs))
    fullgraphs = list(dict.fromkeys(config.fullgraph for config in configs))
    scopes = list(dict.fromkeys(config.scope for config in configs))
    product = set(itertools.product(modes, dynamics, fullgraphs, scopes))
    if product != {(config.mode or "default", config.dynamic, config.fullgraph, config.scope) for config in configs}:
        return None
    first = configs[0]
    found = ["--backend", first.backend] if first.backend != "inductor" else []
    if first.options:
        found += [part for key, value in first.options.items() for part in ("--option", f"{key}={value}")]
    elif first.backend == "inductor":
        found += [part for mode in modes for part in ("--mode", mode)]
    found += [part for value in dynamics for part in ("--dynamic", _SWITCH[value])] if dynamics != [None] else []
    found += [part for value in fullgraphs for part in ("--fullgraph", _SWITCH[value])] if any(fullgraphs) else []
    found += [part for value in scopes for part in ("--scope", value)] if scopes != ["model"] else []
    return found


def _config_arguments(config: Config) -> list[str]:
    return _product_arguments([config]) or []


def method_sentences(comparison: Comparison) -> list[str]:
    """What the numbers mean and how they came about."""
    measured = [measure(run) for run in comparison.runs]
    clocks = {found.clock for found in measured if found.clock}
    flushed = any(found.l2_flush for found in measured)
    where = "each call" if flushed else "each block"
    clock = f"CUDA events around {where}" if clocks == {"cuda_event"} else "the wall clock"
    return [
        "Each configuration runs in two processes of its own, one after the other. "
        f"{_what_a_start_is(comparison.runs)} Both are measured.",
        f"Eager and compiled {_what_the_sides_are(comparison.runs)}. They are timed in turn in alternating blocks in "
        f"the same process, after warm-up, by {clock}. {_what_a_call_is(measured)}",
        *_work_sentences(comparison.runs),
        "The speedup is the median, in each process, of the ratios between compiled blocks and the eager blocks right "
        "before and after, so that a machine whose speed wanders slows both sides of a ratio alike. The medians of "
        "each side, which stand beside it, wander with the machine and need not give the same ratio. Its 95 % interval "
        "takes in the spread between blocks and that between the two processes’ ratios; "
        "since two cannot show all of that, a half-Cauchy prior stands in for the rest. Its scale is the largest of "
        f"{ERROR_SHARE:g} standard errors of one process’s ratio, a share of the scatter of its blocks’ ratios "
        f"where the sides are unlike ({SCATTER_SHARE['wall']:g} on a CPU, {SCATTER_SHARE['cuda_event']:g} on a GPU; "
        "less below a difference of 10 %), and what processes are taken to differ by at least: "
        f"{100 * LEAST_SPREAD['wall']:g} % on a CPU, {100 * LEAST_SPREAD['cuda_event']:g} % on a GPU.",
        "“Faster” and “slower” are said only where the interval excludes 1 and the estimate lies beyond the noise "
        "floor; “no difference” only where the interval leaves no room for one of "
        f"{100 * TOO_NOISY:g} %; else it is too noisy to tell. {noise_floor_text(comparison.noise_floor)}",
        "Of configurations that cannot be told apart from the fastest, the simplest is recommended. Those of the same "
        "generated code count once. What is said of the one chosen among k holds for all k intervals at once (each of "
        "1 − 0.05 / k), and that it is the best for all k − 1 comparisons with the others at once."
        + (f" {_PLAY_OFF}" if comparison.play_offs else ""),
        "Results (outputs, inputs and buffers after the call; loss and gradients of parameters in training, but not "
        "the optimizer’s update) are compared with eager’s on the same inputs, the same state and the same random "
        "numbers, and with a float64 reference where one can be made. A sweep is compared at each size; its verdict is "
        "that of the first.",
        "Break-even is the cost of a cold first call over the time that a compiled call saves, told where it was shown "
        "to be faster. Its range holds the speedup’s interval, how far eager’s time differs between blocks and "
        f"processes, and {FIRST_CALL_SPREAD:.0%} for the first call, which is timed once. Where the range spans more "
        f"than a factor of {MOST_APART:g} it is not known. What the first call would have paid for any model is in it; "
        "the break-even without that is told beside it.".replace("%", "\u00a0%"),
        *_profile_sentences(comparison.runs),
    ]


def _profile_sentences(runs: Sequence[Run]) -> Iterator[str]:
    if any(map(is_profiled, runs)):
        yield (
            "Where the time goes was told by the profiler after all timing, so that it touches no other figure. FLOPs "
            "are those of matrix products, convolutions and attention, by torch.utils.flop_counter; bytes those of the "
            "tensors that a kernel reads and writes, each once."
        )


def _what_a_start_is(runs: Sequence[Run]) -> str:
    own = [run.label for run in runs if run.uses_own_cache]
    if own and len(own) == len(runs):
        return "The first one begins with your own compile cache, whatever that holds, the second with what it left."
    text = (
        "The cold one starts with an empty compile cache and pays the full first call, the warm one shows what the "
        "cache gives back."
    )
    return text + (f" Your own cache was there from the first on for {_names(own)}." if own else "")


def _what_the_sides_are(runs: Sequence[Run]) -> str:
    copies = [process.workload.copies for run in runs for process in run.processes if process.workload]
    if set(copies) == {"shared"}:
        return "share one model, since it could be neither loaded twice nor copied"
    words = {
        "loaded_twice": "are two models from two loads of the script",
        "copied": "are two copies of one model",
        "rebuilt": "are two models that the script built one after the other",
        "shared": "share one that could be neither loaded twice nor copied",
    }
    return ", or ".join(words[name] for name in words if name in copies) or "are separate copies of the model"


def _what_a_call_is(measured: Sequence[Measures]) -> str:
    timed = [found for found in measured if found.clock]
    others = [found for found in timed if not found.restored]
    if timed and not others:
        return f"The figure compared is {_ALONE}"
    text = _what_a_free_call_is(measured)
    return text if len(others) == len(timed) else f"{text} Where calls change their inputs or state, it is {_ALONE}"


def _what_a_free_call_is(measured: Sequence[Measures]) -> str:
    queued = (
        " Blocks followed each other without a pause, at the clock that the card holds under steady load."
        if any(found.queued for found in measured)
        else ""
    )
    if any(found.l2_flush for found in measured):
        return (
            "The L2 cache was written over before each call, outside of the time: the figure compared is the time of a "
            "call that finds its data in the device's memory and not in the cache; a block is worth the median of its "
            f"calls.{queued}"
        )
    text = "The figure compared is the time per call, back to back: what a training loop or a busy server gets."
    if any(found.clock == "wall" for found in measured):
        text += (
            " On a CPU, where calls take 0.1 ms or more, a block is worth the median of its calls; where their mean "
            "tells another speedup, the verdict says so."
        )
    cached = any(found.l2_flush is False for found in measured)
    return text + (" The L2 cache was not flushed between calls." if cached else "") + queued


def _work_sentences(runs: Sequence[Run]) -> Iterator[str]:
    """What one call is, and how it was made."""
    workloads = [run.workload for run in runs]
    if any(work.phase == "training" for work in workloads):
        yield _training_sentence([run for run in runs if run.workload.phase == "training"])
    modes = dict.fromkeys(work.grad_mode for work in workloads if work.phase == "inference")
    if modes:
        yield f"Inference runs under {' or '.join(f'torch.{mode}()' for mode in modes)}."
    threads = dict.fromkeys(str(work.threads) for work in workloads if work.threads)
    if threads:
        yield f"torch was held to this number of threads on the CPU: {', '.join(threads)}."


def _training_sentence(runs: Sequence[Run]) -> str:
    text = "A call in training is a step: zero_grad, forward, loss, backward and optimizer"
    text += ", in fp16 with a gradient scaler." if any(run.workload.precision == "fp16" for run in runs) else "."
    whole, some = [run.config.scope == "step" for run in runs], "The configurations named “whole step” compile"
    if all(whole):
        some = "What is compiled is"
    if not any(whole):
        return f"{text} What is compiled is the model, with its backward pass; loss and optimizer run eager."
    return f"{text} {some} the step as one function, without zero_grad: model, loss and optimizer."


def not_checked(comparison: Comparison) -> list[str]:
    """What this comparison does not show."""
    found = [*_unmeasured_runs(comparison.runs), *_unchecked_results(comparison.runs)]
    measured = [(run, measure(run)) for run in comparison.runs if run.outcome == "finished"]
    wide = [run.label for run, its in measured if its.speedup and not is_as_narrow_as_asked(its.speedup)]
    if wide:
        found.append(
            f"The interval is wider than the ± {units.percent(Measurement.interval)} that were asked for: "
            f"{_names(wide)}. More time narrows what blocks leave open, not how far two processes may differ."
        )
    disagree = [run.label for run, its in measured if its.processes_disagree]
    if disagree:
        found.append(f"The two processes disagree, so that the interval is wide: {_names(disagree)}.")
    found += _missing_measures([its for _, its in measured])
    return [*found, *_scope(comparison.runs)]


def _unmeasured_runs(runs: Sequence[Run]) -> Iterator[str]:
    failed = [run.label for run in runs if run.is_over and run.outcome != "finished"]
    if failed:
        yield f"Not measured to the end, since the run failed or was stopped: {_names(failed)}."
    going = [run.label for run in runs if not run.is_over]
    if going:
        yield f"Still going on when the report was written: {_names(going)}."


def _unchecked_results(runs: Sequence[Run]) -> Iterator[str]:
    verdicts = [(run.label, measure(run).numerics.verdict) for run in runs if run.outcome == "finished"]
    unchecked = [label for label, verdict in verdicts if verdict == "not_checked"]
    if unchecked:
        yield f"Whether results agree with eager’s was not checked, or could not be told: {_names(unchecked)}."
    unsure = [label for label, verdict in verdicts if verdict == "nondeterministic"]
    if unsure:
        yield f"Results vary from call to call, so that correctness could not be shown: {_names(unsure)}."


def _missing_measures(measured: Sequence[Measures]) -> Iterator[str]:
    if measured and all(found.compiled_gpu_busy_s is None for found in measured):
        yield "How busy the device is during a call was not measured."
    if measured and all(found.compiled_peak_bytes is None for found in measured):
        yield "Peak memory was not measured."
    if measured and all(found.warm_first_call_s is None for found in measured):
        yield "The first call with a warm cache was not measured."


def _scope(runs: Sequence[Run]) -> Iterator[str]:
    phases = {run.workload.phase for run in runs}
    if phases == {"inference"}:
        yield "Training (backward pass and optimizer step) was not measured."
    elif phases == {"training"}:
        yield "Inference alone was not measured."
    if not any(measure(run).shapes for run in runs):
        yield "One set of input sizes was timed; other batch sizes and lengths may behave otherwise."
    yield "One device on one machine, alone: several devices, other loads, and hours of running were not tried."
    yield (
        "Agreement of outputs on the script’s own inputs is no proof for all inputs, and accuracy by the model’s own "
        "metric was not evaluated."
    )


def _names(labels: Sequence[str], limit: int = 6) -> str:
    shown = ", ".join(labels[:limit])
    return shown if len(labels) <= limit else f"{shown} and {len(labels) - limit} more"
