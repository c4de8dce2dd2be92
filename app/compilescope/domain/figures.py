"""The table of figures: each figure of a run is declared here, once, and every output goes through the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import partial
from typing import Any, Literal

from compilescope.domain import cudagraphs, kinds, words
from compilescope.domain.kinds import Kind
from compilescope.domain.measures import Measures, measure
from compilescope.domain.run import Run
from compilescope.domain.standing import verdict_word
from compilescope.domain.statistics import NOISE_FLOOR
from compilescope.domain.verdict import Verdict, judge


class Shown(Flag):
    """Where a figure is shown, beside the JSON, which has all of them. OFFERED: in the window's table once its column
    is chosen. LINE: in the terminal's table. FACTS: among what the PDF says of a configuration."""

    TABLE = auto()
    OFFERED = auto()
    LINE = auto()
    MARKDOWN = auto()
    CSV = auto()
    FACTS = auto()
    DIFFERENCE = auto()


@dataclass(frozen=True, kw_only=True)
class Result:
    """A run with all that was made of it."""

    run: Run
    measures: Measures
    verdict: Verdict | None


@dataclass(frozen=True)
class Figure:
    """`path`: in the JSON of a run, dots apart; `of`: its value, None where that is unknown.

    `short`: the title where a column has to be narrow. `better`: of values that differ. `values`: all that there are.
    `is_given`: never unknown. `column`: the name in a CSV, where it was there before the path.
    """

    path: str
    title: str
    kind: Kind
    of: Callable[[Result], Any]
    shown: Shown = Shown.CSV
    short: str = ""
    better: Literal["lower", ""] = ""
    explains: str = ""
    section: str = ""
    tone: Callable[[Any], words.Tone] | None = None
    values: tuple[str, ...] = ()
    is_given: bool = False
    column: str = ""

    @property
    def head(self) -> str:
        """Of a column."""
        return self.short or self.title

    @property
    def csv_paths(self) -> tuple[str, ...]:
        """What a CSV holds of it, by the JSON's names."""
        return tuple(f"{self.path}.{part}" for part in self.kind.parts) or (self.path,)

    def text(self, result: Result) -> str:
        return self.kind.shown(self.of(result))

    def read(self, run: Mapping[str, Any]) -> Any:
        """The value in a run's JSON; None where it is not known, or not there."""
        found = at(run, self.path)
        return None if found is None else self.kind.from_json(found)

    def text_in(self, run: Mapping[str, Any]) -> str:
        return self.kind.shown(self.read(run))


def at(value: Any, path: str) -> Any:
    """The value at a dotted path; None where any part of the way is missing."""
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def result(run: Run, noise_floor: float = NOISE_FLOOR) -> Result:
    return Result(run=run, measures=measure(run), verdict=judge(run, noise_floor))


def _measured(name: str) -> Callable[[Result], Any]:
    return lambda found: getattr(found.measures, name)


def _numerics(name: str) -> Callable[[Result], Any]:
    return lambda found: getattr(found.measures.numerics, name)


def _break_even(start: str, name: str, *, is_bound: bool = False) -> Callable[[Result], float | None]:
    """A part of a break-even: its bounds always, what lies between only where that is known."""

    def of(found: Result) -> float | None:
        even = found.verdict.break_evens.get(start) if found.verdict else None
        return getattr(even, name) if even and (is_bound or even.is_known) else None

    return of


def _first_call(found: Result, *, with_own_cache: bool) -> float | None:
    return found.measures.cold_first_call_s if found.run.uses_own_cache == with_own_cache else None


CSV, OFFERED, DIFFERENCE = Shown.CSV, Shown.OFFERED, Shown.DIFFERENCE
MAIN = Shown.TABLE | Shown.LINE | Shown.MARKDOWN
MORE = CSV | OFFERED
SIDES = (("eager", "Eager"), ("compiled", "Compiled"))
STARTS = (
    ("cold", "Break-even", "with a cold cache"),
    (
        "own",
        "Break-even, own part",
        "with a cold cache, less what it pays for any model (null where that is hardly any),",
    ),
    ("warm", "Break-even, warm", "with a warm cache"),
)

# fmt: off
_TIMING = (
    Figure("timing.eager_ms", "Eager, time per call", kinds.TIMES, _measured("eager"),
           MAIN | CSV | Shown.FACTS | DIFFERENCE, short="Eager",
           explains="Median time per call of the model as it is, measured in turns with this configuration, in the "
           "same process."),
    Figure("timing.compiled_ms", "Compiled, time per call", kinds.TIMES, _measured("compiled"),
           MAIN | CSV | Shown.FACTS | DIFFERENCE, short="Compiled",
           explains="Median time per call, calls back to back, measured in turns with eager in the same process."),
    Figure("timing.speedup", "Speedup", kinds.SPEEDUP, _measured("speedup"), MAIN | CSV | Shown.FACTS | DIFFERENCE,
           explains="Eager over compiled, and half the width of its 95 % interval. It is the median ratio of "
           "neighbouring blocks, so that a machine whose speed wanders slows both alike; the medians beside it wander "
           "with the machine."),
    Figure("timing.speedup_of_means", "Speedup by the mean", kinds.RATIO, _measured("speedup_of_means"), MORE,
           explains="By the mean of single calls instead of their median: a loop waits for the slow ones too."),
    *(Figure(f"timing.{side}_latency_ms", f"{name}, synchronised call", kinds.TIMES, _measured(f"{side}_latency"),
             MORE | Shown.FACTS | DIFFERENCE, short=f"{name} latency",
             explains="Median time of a call that is waited for.") for side, name in SIDES),
    *(Figure(f"timing.{side}_gpu_busy_ms", f"{name}, GPU busy", kinds.MILLISECONDS, _measured(f"{side}_gpu_busy_s"),
             MORE | Shown.FACTS | DIFFERENCE, explains="The sum of kernel times of a call, from the profiler.")
      for side, name in SIDES),
    *(Figure(f"timing.{side}_gpu_busy_share", f"{name}, GPU busy share", kinds.SHARE, _measured(f"{side}_busy_share"),
             MORE | Shown.FACTS, short=f"{name} busy",
             explains="The sum of kernel times as a share of the time per call.") for side, name in SIDES),
    Figure("timing.compiled_gpu_copies_ms", "Compiled, GPU copies", kinds.MILLISECONDS,
           _measured("compiled_gpu_copies_s"), explains="What copies of memory took in a call, from the profiler."),
    *(Figure(f"timing.{side}_launches", f"{name}, launches", kinds.COUNTS, _measured(f"{side}_launches"),
             MORE | Shown.FACTS | DIFFERENCE,
             explains="Kernels that a call launches on the GPU, as the profiler counted them.")
      for side, name in SIDES),
    Figure("timing.launch_bound", "Launch-bound", kinds.FLAG, _measured("launch_bound"), MORE,
           explains="Whether the GPU waits for launches."),
    Figure("timing.clock", "Clock", kinds.TEXT, _measured("clock"), values=("cuda_event", "wall")),
    Figure("timing.stopped_by", "Timing stopped by", kinds.TEXT, _measured("stopped_by"),
           values=("interval", "budget")),
    Figure("timing.processes_disagree", "Processes disagree", kinds.FLAG, _measured("processes_disagree")),
    Figure("timing.void_blocks", "Blocks not counted", kinds.COUNT, _measured("void_blocks"),
           CSV | Shown.FACTS, is_given=True),
    Figure("timing.l2_flush", "L2 cache flushed", kinds.FLAG, _measured("l2_flush"),
           explains="Whether the L2 cache was written over before each call; null where there is none to flush."),
    Figure("timing.queued", "Blocks queued", kinds.FLAG, _measured("queued"),
           explains="Whether blocks followed each other without a pause; null where there is no queue."),
    Figure("timing.restored", "Inputs restored", kinds.FLAG, _measured("restored"),
           explains="Whether each call was timed alone, with inputs and state put back before it; null where nothing "
           "was timed."),
    Figure("compile.eager_first_call_s", "First call, eager", kinds.SECONDS, _measured("eager_first_call_s")),
    Figure("compile.first_call_s", "First call", kinds.SECONDS, _measured("cold_first_call_s"), MAIN,
           explains="The first call, which pays for compiling: with an empty cache, or with your own if you chose it."),
    Figure("compile.first_call_in_eager_calls", "First call, in eager calls", kinds.CALLS,
           _measured("first_call_in_eager_calls"), MORE | Shown.FACTS | DIFFERENCE,
           explains="How many eager calls take as long as the first compiled call."),
    Figure("compile.cold_first_call_s", "First call, cold", kinds.SECONDS, partial(_first_call, with_own_cache=False),
           CSV | DIFFERENCE),
    Figure("compile.own_cache_first_call_s", "First call, your own cache", kinds.SECONDS,
           partial(_first_call, with_own_cache=True), CSV | DIFFERENCE,
           explains="The first call of a run that began with the user's own compiler cache, which may have held "
           "anything; cold_first_call_s is null then."),
    Figure("compile.warm_first_call_s", "First call, warm cache", kinds.SECONDS, _measured("warm_first_call_s"),
           MAIN | CSV | DIFFERENCE, short="Warm call",
           explains="The first call of a second process that finds the first one's cache."),
    Figure("compile.cold_first_use_s", "First use, cold", kinds.SECONDS, _measured("cold_first_use_s"),
           explains="Of the first process's first call, what the process would have paid for any model."),
    Figure("compile.warm_first_use_s", "First use, warm", kinds.SECONDS, _measured("warm_first_use_s"),
           explains="Of the warm first call, what the process would have paid for any model."),
    *(Figure(f"break_even.{start}_calls", f"{title}, calls", kinds.CALLS, _break_even(start, "calls"),
             MORE | DIFFERENCE if start == "cold" else CSV, short=title,
             explains=f"The calls until the first call {cache} has paid off.") for start, title, cache in STARTS),
    *(Figure(f"break_even.{start}_s", f"{title}, time", kinds.SECONDS, _break_even(start, "seconds"),
             explains=f"The time until the first call {cache} has paid off.") for start, title, cache in STARTS),
    *(Figure(f"break_even.{start}_calls_{end}", f"{title}, calls, {end}", kinds.CALLS,
             _break_even(start, f"calls_{end}", is_bound=True),
             explains="The range from the spread of the speedup, of eager's time and of the first call; told also "
             "where it is too wide for a number.") for start, title, _ in STARTS for end in ("low", "high")),
)
_COMPILER = (
    Figure("compile.graphs", "Graphs", kinds.COUNT, lambda found: found.run.graphs, MAIN | CSV | DIFFERENCE,
           tone=lambda number: "bad" if number == 0 else "",
           explains="Captured graphs that hold at least one operation. None means that nothing was compiled."),
    Figure("compile.graph_breaks", "Graph breaks", kinds.COUNT, lambda found: found.run.breaks, MAIN | CSV | DIFFERENCE,
           short="Breaks", better="lower", tone=lambda number: "warn" if number else "", column="graph_breaks",
           explains="Graph breaks: places where the compiler had to leave the graph."),
    Figure("compile.recompiles", "Recompiles", kinds.COUNT, lambda found: found.run.recompiles,
           OFFERED | Shown.LINE | Shown.MARKDOWN | CSV | DIFFERENCE, better="lower", column="recompiles",
           tone=lambda number: "warn" if number else "",
           explains="How often a function was compiled again since a guard failed."),
    Figure("compile.ops", "Operations", kinds.COUNT, lambda found: found.run.ops, MORE | DIFFERENCE,
           explains="Operations in all captured graphs."),
    Figure("compile.guards", "Guards", kinds.COUNT, lambda found: found.run.guards, MORE | DIFFERENCE,
           explains="Checks before compiled code runs."),
    # a count of zero may be a backend that tells of none
    Figure("compile.kernels", "Kernels", kinds.COUNT, lambda found: len(found.run.story.kernels) or None
           if found.run.story else None, MORE | DIFFERENCE, explains="Kernels in the generated code."),
    Figure("compile.entries_per_call", "Entries per call", kinds.COUNTS, lambda found: found.run.story and
           found.run.story.entries_per_call,
           explains="How often a call of the compiled model enters compiled code, counted in calls that nobody timed; "
           "0 where it ran eager all the same."),
    Figure("cudagraphs.captured", "CUDA graphs recorded", kinds.FLAG, lambda found: cudagraphs.captured(found.run)),
)
_MEMORY = (
    Figure("memory.eager_peak_bytes", "Peak memory, eager", kinds.BYTES, _measured("eager_peak_bytes"),
           MORE | Shown.FACTS | DIFFERENCE, short="Eager peak",
           explains="The most device memory that eager calls hold."),
    Figure("memory.compiled_peak_bytes", "Peak memory, compiled", kinds.BYTES, _measured("compiled_peak_bytes"),
           MORE | Shown.FACTS | DIFFERENCE, short="Compiled peak",
           explains="The most device memory that compiled calls hold."),
    Figure("memory.compile_peak_bytes", "Peak memory, first call", kinds.BYTES, _measured("compile_peak_bytes"),
           MORE | Shown.FACTS | DIFFERENCE, short="First call peak",
           explains="The most device memory during the first compiled call."),
    Figure("memory.process_rss_bytes", "Memory of the process", kinds.BYTES, _measured("process_rss_bytes"), MORE,
           explains="The most memory of the host that one process held, both sides included."),
)
_RESULTS = (
    Figure("compile.cudagraphs", "CUDA graphs", kinds.TEXT, lambda found: cudagraphs.fate(found.run) or None,
           MORE | DIFFERENCE, explains="What became of CUDA graphs."),
    Figure("numerics.verdict", "Results against eager", kinds.AGREEMENT, _numerics("verdict"),
           OFFERED | Shown.MARKDOWN | CSV | Shown.FACTS | DIFFERENCE, short="Results", is_given=True,
           tone=lambda word: words.AGREEMENT_TONES.get(word, "")),
    Figure("numerics.max_abs_error", "Largest difference", kinds.ERROR, _numerics("max_abs_error"), MORE | Shown.FACTS,
           explains="The largest absolute difference from eager."),
    Figure("numerics.reference_ratio", "Error against fp64, over eager's", kinds.RATIO, _numerics("reference_ratio"),
           CSV | Shown.FACTS, explains="The error against an fp64 reference, over eager's own."),
    Figure("numerics.detail", "How it was checked", kinds.TEXT, _numerics("detail"), CSV | Shown.FACTS, is_given=True),
    Figure("numerics.subject", "What was checked", kinds.TEXT, _numerics("subject")),
    Figure("numerics.backend", "First backend that differs", kinds.TEXT, _numerics("backend"),
           explains="The first backend whose results differ."),
    Figure("verdict_word", "Verdict", kinds.TEXT, lambda found: verdict_word(found.run, found.verdict), MAIN | CSV,
           is_given=True,
           explains="What the run came to or does, in the word that every output has for it."),
)
# fmt: on
_TABLE = {"Timing": _TIMING, "Compiler": _COMPILER, "Memory": _MEMORY, "Checks": _RESULTS}
FIGURES = tuple(replace(figure, section=section) for section, group in _TABLE.items() for figure in group)
_BY_PATH = {figure.path: figure for figure in FIGURES}


def figure(path: str) -> Figure:
    return _BY_PATH[path]


def shown_in(place: Shown) -> list[Figure]:
    """The figures that are shown there, in their order."""
    return [figure for figure in FIGURES if figure.shown & place]


def figures_json(found: Result) -> dict[str, Any]:
    """All figures as the JSON has them, by their paths."""
    tree: dict[str, Any] = {}
    for one in FIGURES:
        *way, name = one.path.split(".")
        branch = tree
        for key in way:
            branch = branch.setdefault(key, {})
        value = one.of(found)
        branch[name] = None if value is None else one.kind.to_json(value)
    return tree
