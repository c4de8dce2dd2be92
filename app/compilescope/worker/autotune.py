"""What Inductor measured among its choices for one operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compilescope.domain.events import Autotune

_CHOICES = 20


def autotuned(timings: Mapping[Any, float], name: str, inputs: Iterable[Any], *, at: float) -> Autotune:
    """The fastest choices, in order. `timings`: milliseconds by choice; `inputs`: Inductor's nodes."""
    ranked = sorted(timings.items(), key=lambda item: item[1])
    choices = tuple(_choice(choice, milliseconds) for choice, milliseconds in ranked[:_CHOICES])
    return Autotune(
        at=at,
        operation=name,
        inputs=tuple("x".join(str(size) for size in node.get_size()) for node in inputs),
        choices=choices,
        winner=choices[0]["name"] if choices else None,
    )


def _choice(choice: Any, milliseconds: float) -> dict[str, Any]:
    failed = milliseconds in (float("inf"), float("-inf")) or milliseconds != milliseconds
    detail = str(getattr(choice, "description", "") or "")[:300]
    return {
        "name": str(getattr(choice, "name", choice)),
        "seconds": None if failed else milliseconds / 1e3,
        "detail": detail,
    }
