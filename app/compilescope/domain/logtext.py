"""A log as one text that keeps when its lines came."""

from __future__ import annotations

from collections.abc import Iterable

# a line of its own: this mark and seconds since the run began, for the lines that follow
_MARK = "\x1f"


def timed_log(lines: Iterable[tuple[float, str]]) -> str:
    """One text of lines with their times."""
    parts: list[str] = []
    last: float | None = None
    for at, line in lines:
        if at != last:
            parts.append(f"{_MARK}{at:.3f}")
            last = at
        parts.append(line.replace(_MARK, " "))
    return "\n".join(parts)


def log_portions(text: str) -> list[tuple[float, list[str]]]:
    """The lines again, in portions that came at once; those whose time is not known came at 0."""
    portions: list[tuple[float, list[str]]] = [(0.0, [])]
    for line in text.split("\n") if text else ():
        if line.startswith(_MARK):
            portions.append((_seconds(line[1:]), []))
        else:
            portions[-1][1].append(line)
    return [portion for portion in portions if portion[1]]


def _seconds(text: str) -> float:
    try:
        return max(float(text), 0.0)
    except ValueError:
        return 0.0
