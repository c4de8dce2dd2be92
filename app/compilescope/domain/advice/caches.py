"""Advice on caches: what was looked up, what was built again although it was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compilescope.domain.advice.rule import CACHING, Advice, Case
from compilescope.domain.cacheledger import rebuilds


def hit_but_built(case: Case) -> Iterator[Advice]:
    """The counters say "hit", and the C++ compiler ran all the same."""
    for found in rebuilds(case.run):
        yield Advice(
            code="hit_but_built",
            title="Cache hits, and yet the C++ compiler ran again",
            evidence=found.sentence,
            remedy="Keep the whole cache folder (TORCHINDUCTOR_CACHE_DIR) from one start to the next: artifacts saved "
            "by torch.compiler.save_cache_artifacts do not hold compiled C++ code.",
            source=CACHING,
        )


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (hit_but_built,)
