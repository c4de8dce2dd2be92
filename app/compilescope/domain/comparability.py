"""Whether two runs measured the same thing, and on the same machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compilescope.domain.measures import measure
from compilescope.domain.run import Run
from compilescope.domain.words import file_name


def cautions(before: Run, after: Run, *, sources: tuple[str | None, str | None] = (None, None)) -> Iterator[str]:
    """What was measured differently besides the options of torch.compile."""
    old, new = before.workload, after.workload
    names = file_name(old.script), file_name(new.script)
    if names[0] != names[1]:
        yield f"Different scripts: {names[0]} and {names[1]}."
    elif None not in sources and sources[0] != sources[1]:
        yield f"{names[0]} was edited between the two runs."
    facts_before, facts_after = _facts(before), _facts(after)
    for name, value in facts_before.items():
        other = facts_after[name]
        if value and other and value != other:
            yield f"{name} differs: {value} and {other}."


def _facts(run: Run) -> dict[str, str]:
    """What has to be the same on both sides for a fair comparison, in words."""
    story = run.story
    found, machine = (story.workload, story.environment) if story else (None, None)
    asked = run.workload
    inputs = [f"{row.name} {_shape(row.shape)} {row.dtype or ''}".strip() for row in (found.inputs if found else ())]
    return {
        "The model": (found.entry if found else None) or asked.entry or "",
        "The phase": asked.phase,
        "The precision": asked.precision,
        "Training mode": "on" if asked.train_mode else "off",
        "The mode without gradients": asked.grad_mode if asked.phase == "inference" else "",
        "The L2 cache between calls": {True: "flushed", False: "left as it is", None: ""}[measure(run).l2_flush],
        "The way that calls are timed": {True: "each alone", False: "back to back", None: ""}[measure(run).restored],
        "The input": ", ".join(inputs),
        "The device": (machine.device if machine else None) or (found.device if found else None) or asked.device or "",
        "The processor": (machine.cpu or "") if machine else "",
        "torch": (machine.torch or "") if machine else "",
        "Triton": (machine.triton or "") if machine else "",
        "Python": (machine.python or "") if machine else "",
        "The driver": (machine.driver or "") if machine else "",
        "The number of threads": str(machine.threads or "") if machine else "",
    }


def _shape(shape: Iterable[int] | None) -> str:
    return "?" if shape is None else "×".join(map(str, shape)) or "scalar"
