"""Every cache lookup of a run, what the caches gave back, and what a warm start still pays for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.domain import events as e
from compilescope.domain import units, words
from compilescope.domain.firstcall import first_call
from compilescope.domain.pipeline import self_times
from compilescope.domain.run import ProcessStory, Run

NAMES = {
    "fx_graph": "FX graph (Inductor)",
    "aot_autograd": "AOTAutograd",
    "triton": "Triton",
    "autotune": "autotune",
}
_BUILD = "compile_file"
# a header that every process prepares takes less; built again is what takes a good part of what was saved
REBUILT_S = 1.0
REBUILT_SHARE = 0.25
LEAST_SHOWN_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """One lookup, and which of the run's processes made it."""

    process: int
    start: str
    event: e.Cache

    @property
    def name(self) -> str:
        return cache_name(self.event.cache)


@dataclass(frozen=True, kw_only=True)
class Rebuild:
    """A process that was given everything by the caches and yet ran the C++ compiler again."""

    start: str
    seconds: float
    files: int

    @property
    def sentence(self) -> str:
        return (
            f"Every lookup of the {self.start} start was a hit, and yet the C++ compiler ran again: "
            f"{units.plural(self.files, 'build')}, {units.duration(self.seconds)}. The cache held the code but not "
            "what was built from it."
        )


def cache_name(cache: str) -> str:
    return NAMES.get(cache, cache.replace("_", " "))


def lookups(run: Run) -> list[Lookup]:
    """Every lookup, in order."""
    return [
        Lookup(process=number, start="–" if run.is_trace else process.start, event=event)
        for number, process in enumerate(run.processes)
        for event in process.cache
    ]


def saved_s(rows: Sequence[e.Cache]) -> float | None:
    """What hits saved by torch's own account. What AOTAutograd's hit saves holds what Inductor's would have."""
    by_compile: dict[str | None, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.state == "hit" and row.saved_s is not None:
            saved = by_compile[row.compile_id]
            saved[row.cache] = saved.get(row.cache, 0.0) + row.saved_s
    return sum(max(saved.values()) for saved in by_compile.values()) if by_compile else None


def gained_s(run: Run, process: ProcessStory) -> float | None:
    """By how much a warm start's first call was shorter than the cold one; None where there are not both to compare."""
    if process is not run.warm or run.uses_own_cache:
        return None
    cold, warm = first_call(run.cold), first_call(run.warm)
    return cold.duration_s - warm.duration_s if cold and warm else None


def remains(process: ProcessStory) -> dict[str, float]:
    """Seconds that a process spent compiling although the caches knew the result, by part of the compiler."""
    times = self_times(process.phases, process.last_at)
    named = {words.phase(group): seconds for group, seconds in times.items() if group != "other"}
    return {name: s for name, s in sorted(named.items(), key=lambda item: -item[1]) if s >= LEAST_SHOWN_S}


def rebuilds(run: Run) -> list[Rebuild]:
    """Processes that hit and yet built C++ again."""
    found = []
    for process in run.processes:
        states = {row.state for row in process.cache if row.cache in ("fx_graph", "aot_autograd")}
        builds = [row.duration_s for row in process.phases if row.name == _BUILD and row.duration_s]
        least = max(REBUILT_S, REBUILT_SHARE * (saved_s(process.cache) or 0.0))
        if states == {"hit"} and sum(builds) >= least:
            found.append(Rebuild(start=process.start, seconds=sum(builds), files=len(builds)))
    return found


def process_sentence(process: ProcessStory, gained: float | None = None) -> str:
    """One process's lookups in words: "2 hits, first call 4.1 s shorter; what remains after a hit: Dynamo 0.9 s".

    `gained`: see `gained_s`. Where it is known it is told instead of torch's own account, which adds up what hits
    within each other save, and what was compiled at once.
    """
    counts = Counter(row.state for row in process.cache)
    if not counts:
        return "no lookup"
    plurals = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}
    order = [state for state in plurals if counts[state]] + [state for state in counts if state not in plurals]
    told = ", ".join(units.plural(counts[state], state, plurals.get(state, "")) for state in order)
    saved = saved_s(process.cache)
    if gained is not None and saved:
        told += f", first call {units.duration(gained)} shorter" if gained > 0 else ", first call no shorter"
    elif saved:
        told += f", saved {units.duration(saved)} by torch's own account"
    if set(counts) == {"hit"} and (left := remains(process)):
        parts = ", ".join(f"{name} {units.duration(seconds)}" for name, seconds in list(left.items())[:4])
        told += f"; what remains after a hit: {parts}"
    return told


def sentences(run: Run) -> list[str]:
    """The totals in words, a process each."""
    return [
        f"{_title(run, process)}: {process_sentence(process, gained_s(run, process))}."
        for process in run.processes
        if process.cache
    ]


def _title(run: Run, process: ProcessStory) -> str:
    # a trace does not say whether its cache was empty before
    return "This process" if run.is_trace else process.start.capitalize()


def empty_sentence(run: Run | None) -> str:
    """Why there is no lookup."""
    if run is None or run.story is None:
        return "Cache lookups appear here while the model is compiled."
    story = run.story
    if not (story.has_compiled or run.is_over):
        return "No cache lookup so far."
    if not story.graphs:
        return "No cache was asked, since no graph was captured."
    if run.config.backend != "inductor":
        return f"The backend {run.config.backend} asks no cache."
    return "No cache was asked: caches are switched off (force_disable_caches)."
