"""Two runs side by side: what was asked, what the compiler did, what came of it, and whether they can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compilescope.domain import units, words
from compilescope.domain.cacheledger import cache_name
from compilescope.domain.comparability import cautions
from compilescope.domain.comparison import interval_text
from compilescope.domain.config import Config
from compilescope.domain.figures import Result, Shown, result, shown_in
from compilescope.domain.measures import measure
from compilescope.domain.pipeline import self_times
from compilescope.domain.ranking import is_apart, relative
from compilescope.domain.run import ProcessStory, Run
from compilescope.domain.statistics import NOISE_FLOOR, Interval
from compilescope.domain.words import Tone

# below this, a phase's time is noise beside the first call's
LEAST_PHASE_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: the same thing on both sides. `tone`: good or bad for the second side, else empty."""

    section: str
    name: str
    before: str
    after: str
    tone: Tone = ""

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, kw_only=True)
class Difference:
    """`cautions`: what makes the figures hard to compare, a sentence each; `summary`: the speeds in a sentence."""

    cautions: tuple[str, ...]
    summary: str
    rows: tuple[Row, ...]


def difference(
    before: Run,
    after: Run,
    *,
    sources: tuple[str | None, str | None] = (None, None),
    noise_floor: float = NOISE_FLOOR,
) -> Difference:
    """What changed from one run to another. `sources`: the scripts' texts as they were, where they are known."""
    rows = [
        *_options(before, after),
        *_figures(result(before, noise_floor), result(after, noise_floor), noise_floor),
        *_compiler_phases(before, after),
        *_counted("Graph breaks", _breaks(before), _breaks(after)),
        *_counted("Recompiles", _recompiles(before), _recompiles(after)),
        *_caches(before, after),
        *_kernels(before, after),
        *_counted("CUDA graphs skipped", _skips(before), _skips(after)),
        Row(section="Checks", name="Outcome", before=_outcome(before), after=_outcome(after)),
    ]
    return Difference(
        cautions=tuple(cautions(before, after, sources=sources)),
        summary=_summary(before, after, noise_floor),
        rows=tuple(rows),
    )


def _summary(before: Run, after: Run, noise_floor: float) -> str:
    one, two = measure(before).speedup, measure(after).speedup
    if one is None or two is None:
        missing = [run.label for run, found in ((before, one), (after, two)) if found is None]
        return f"No speed to compare: {' and '.join(dict.fromkeys(missing))} was not measured to the end."
    if not is_apart(one, two, noise_floor):
        return f"No provable difference in speed: {interval_text(one)} and {interval_text(two)} against eager."
    word, between = ("faster", relative(two, one)) if two.value > one.value else ("slower", relative(one, two))
    return (
        f"The second is {word}: {interval_text(two)} against eager, {interval_text(one)} for the first; "
        f"that is {interval_text(between)} between them."
    )


def _options(before: Run, after: Run) -> Iterator[Row]:
    old, new = _settings(before.config), _settings(after.config)
    for name in dict.fromkeys([*old, *new]):
        yield Row(section="Options", name=name, before=old.get(name, words.UNKNOWN), after=new.get(name, words.UNKNOWN))


def _settings(config: Config) -> dict[str, str]:
    states = {None: "auto", True: "on", False: "off"}
    options = {f"options[{key}]": str(value) for key, value in (config.options or {}).items()}
    return {
        "backend": config.backend,
        "mode": config.mode or "default",
        "dynamic": states[config.dynamic],
        "fullgraph": states[config.fullgraph],
        "compiled": "the whole step" if config.scope == "step" else "the model",
        **options,
    }


def _figures(before: Result, after: Result, noise_floor: float) -> Iterator[Row]:
    for figure in shown_in(Shown.DIFFERENCE):
        old, new = figure.of(before), figure.of(after)
        tone: Tone = ""
        if isinstance(old, Interval) and isinstance(new, Interval):
            if is_apart(old, new, noise_floor):
                tone = "good" if new.value > old.value else "bad"
        elif figure.better and None not in (old, new) and old != new:
            tone = "good" if new < old else "bad"
        texts = figure.kind.shown(old), figure.kind.shown(new)
        yield Row(section=figure.section, name=figure.title, before=texts[0], after=texts[1], tone=tone)


def _compiler_phases(before: Run, after: Run) -> Iterator[Row]:
    old, new = _phases(before.cold), _phases(after.cold)
    for group in words.PHASES:
        a, b = old.get(group), new.get(group)
        if max(a or 0.0, b or 0.0) >= LEAST_PHASE_S:
            yield Row(
                section="Compiler",
                name=f"{words.upper(words.phase(group))}, cold start",
                before=units.duration(a),
                after=units.duration(b),
            )


def _phases(process: ProcessStory | None) -> dict[str, float]:
    return self_times(process.phases, process.last_at) if process else {}


def _breaks(run: Run) -> Mapping[str, int]:
    found = Counter[str]()
    for row in run.story.graph_breaks.values() if run.story else ():
        found[f"{words.place(row.event.file, row.event.line)}  {row.event.reason or row.event.kind}"] += row.count
    return found


def _recompiles(run: Run) -> Mapping[str, int]:
    found = Counter[str]()
    for row in run.story.recompiles.values() if run.story else ():
        cause = row.event.source or row.event.guard or row.event.reason or "an unknown guard"
        found[f"{row.event.function or 'a function'}  {cause}"] += row.count
    return found


def _counted(section: str, old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[Row]:
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name, 0), new.get(name, 0)
        tone: Tone = "" if a == b else "bad" if b > a else "good"
        yield Row(section=section, name=name, before=_times(a), after=_times(b), tone=tone)


def _times(count: int) -> str:
    return f"{count}×" if count else "none"


def _caches(before: Run, after: Run) -> Iterator[Row]:
    """Lookups by cache, and how many keys both have: with the same keys, one's cache serves the other."""
    for start in ("cold", "warm"):
        old, new = _lookups(before, start), _lookups(after, start)
        for cache in dict.fromkeys([*old, *new]):
            yield Row(
                section="Caches",
                name=f"{cache_name(cache)}, {start} start",
                before=old.get(cache, "no lookup"),
                after=new.get(cache, "no lookup"),
            )
    keys = _keys(before), _keys(after)
    if keys[0] and keys[1]:
        shared = keys[0] & keys[1]
        told = [f"{units.plural(len(own), 'key')}, {len(shared) or 'none'} shared" for own in keys]
        if keys[0] == keys[1]:
            told = [f"{units.plural(len(shared), 'key')}, all shared"] * 2
        yield Row(section="Caches", name="Keys", before=told[0], after=told[1])


def _lookups(run: Run, start: str) -> dict[str, str]:
    process = run.cold if start == "cold" else run.warm
    told: dict[str, list[str]] = {}
    for (cache, state), number in sorted(process.lookups.items(), key=lambda item: item[0][1]) if process else ():
        told.setdefault(cache, []).append(f"{number} {state}")
    return {cache: ", ".join(states) for cache, states in told.items()}


def _keys(run: Run) -> set[str]:
    return {row.key for row in run.cold.cache if row.key} if run.cold else set()


def _kernels(before: Run, after: Run) -> Iterator[Row]:
    old, new = _kernel_counts(before), _kernel_counts(after)
    for name in dict.fromkeys([*old, *new]):
        yield Row(section="Kernels", name=name, before=_times(old.get(name, 0)), after=_times(new.get(name, 0)))


def _kernel_counts(run: Run) -> Mapping[str, int]:
    found = Counter[str]()
    for row in run.story.kernels if run.story else ():
        found[row.name] += row.launches or 1
    return found


def _skips(run: Run) -> Mapping[str, int]:
    return Counter(row.reason or "no reason given" for row in (run.story.skipped_cudagraphs if run.story else ()))


def _outcome(run: Run) -> str:
    return words.OUTCOMES.get(run.outcome or "", "running")
