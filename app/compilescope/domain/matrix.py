"""The product of configurations and workloads: the rows of a comparison, with a name for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compilescope.domain.config import Config
from compilescope.domain.workload import Phase, Precision, Workload


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run to make. `label`: unique in its comparison, with phase and precision where the rows differ in them."""

    config: Config
    workload: Workload
    label: str

    @property
    def key(self) -> str:
        """A name that stays the same whatever else is ticked."""
        return f"{self.config.label} ({self.workload.phase}, {self.workload.precision})"


def matrix(
    configs: Sequence[Config], workload: Workload, phases: Iterable[Phase], precisions: Iterable[Precision]
) -> list[Row]:
    """Every configuration in every phase and precision; those of one workload follow each other."""
    precisions = list(precisions)
    workloads = [
        # training sets the module's mode itself
        replace(workload, phase=phase, precision=precision, train_mode=workload.train_mode and phase == "inference")
        for phase in phases
        for precision in precisions
    ]
    varying = varying_parts(workloads)
    return [
        Row(config=config, workload=own, label=labelled(config.label, own, varying))
        for own in workloads
        for config in _possible(configs, own.phase)
    ]


def _possible(configs: Sequence[Config], phase: Phase) -> list[Config]:
    """Inference has no step that could be compiled as a whole, so the model is."""
    if phase == "training":
        return list(configs)
    found = [replace(config, scope="model") for config in configs]
    return list({config.label: config for config in found}.values())


def varying_parts(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Of phase, precision and device, those in which these workloads differ."""
    found = list(workloads)
    return tuple(part for part in ("phase", "precision", "device") if len({getattr(one, part) for one in found}) > 1)


def labelled(label: str, workload: Workload, parts: Sequence[str]) -> str:
    """The label with these parts of the workload behind it: "default (training, bf16)"."""
    own = ", ".join(str(getattr(workload, part)) for part in parts)
    return f"{label} ({own})" if own else label


def workload_name(workload: Workload) -> str:
    """What was done, in a sentence: "inference in bf16"."""
    return f"{workload.phase} in {workload.precision}"


def next_label(label: str, taken: Sequence[str]) -> str:
    """The label of one more run of the same: "default (2)"."""
    base = re.sub(r" \(\d+\)$", "", label)
    number = 2
    while f"{base} ({number})" in taken:
        number += 1
    return f"{base} ({number})"
