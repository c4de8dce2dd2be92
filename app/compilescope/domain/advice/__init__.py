"""What to try next: rules that look at one run's story and figures, each with its evidence and its source.

No rule speaks of what another setting would do: a run with fullgraph on fails or succeeds for reasons of its own and
is only ever judged by running it.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.domain.advice import breaks, caches, noise, recompiles, timing
from compilescope.domain.advice.rule import Advice, Case, Source
from compilescope.domain.events import Warning
from compilescope.domain.faults import HINT, fault
from compilescope.domain.measures import measure
from compilescope.domain.playoff import PlayOff
from compilescope.domain.run import Run
from compilescope.domain.statistics import NOISE_FLOOR

__all__ = ["Advice", "Source", "advise"]

_SEVERITIES = ("problem", "cost", "note")


def advise(
    run: Run, others: Sequence[Run] = (), noise_floor: float = NOISE_FLOOR, play_offs: Sequence[PlayOff] = ()
) -> tuple[Advice, ...]:
    """Advice on a run, the gravest first; `others` are the other runs of its comparison."""
    return advise_with_faults(run, others, noise_floor, play_offs)[0]


def advise_with_faults(
    run: Run, others: Sequence[Run] = (), noise_floor: float = NOISE_FLOOR, play_offs: Sequence[PlayOff] = ()
) -> tuple[tuple[Advice, ...], tuple[Warning, ...]]:
    """The same, with a warning for each rule that failed: what was measured must not be lost by what comments on it."""
    if run.story is None:
        return (), ()
    others = [other for other in others if other is not run]
    case = Case(
        run=run,
        story=run.story,
        measures=measure(run),
        others=others,
        noise_floor=noise_floor,
        play_offs=play_offs,
    )
    rules = (*breaks.RULES, *recompiles.RULES, *timing.RULES, *caches.RULES, *noise.RULES)
    found: list[Advice] = []
    faults: list[Warning] = []
    for rule in rules:
        try:
            found += rule(case)
        except Exception as error:  # a fault of ours, whatever it is
            faults.append(_fault(error))
    return tuple(sorted(found, key=lambda advice: _SEVERITIES.index(advice.severity))), tuple(faults)


def _fault(error: Exception) -> Warning:
    return Warning(
        code="internal",
        message=fault("A piece of advice is missing", error),
        hint=HINT,
    )
