"""What came out of a call that was made again: jumps that rounding makes, and errors beside what rounding explains."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from compilescope.worker.accuracy import Accuracy, accuracy, numbers_in
from compilescope.worker.allowance import Allowance
from compilescope.worker.check import COMMON_SCALE, Outcome
from compilescope.worker.ensemble import Jumps, jumps


@dataclass(kw_only=True)
class Trial:
    """What came out: eager's two calls, and the compiled one. `exact`: in a wider type, `exact_type`, or else
    `why_not_exact`, a clause. `members`: eager with its numbers moved. `update`: what eager's optimizer makes of the
    compiled model's gradients; `own_update`, of eager's own. `overflows`: whether a loss scale made eager's gradients
    infinite. `is_unequal`: whether the two sides had counted to other numbers before the call. `device`: where the
    outcomes are kept.
    """

    eagers: tuple[Outcome, Outcome]
    compiled: Outcome
    exact: Outcome | None = None
    exact_type: str = "double precision"
    why_not_exact: str = ""
    members: list[Outcome] = field(default_factory=list)
    update: Any = None
    own_update: Any = None
    overflows: bool = False
    is_unequal: bool = False
    device: torch.device | None = None

    def jumps(self, subject: str, outcome: Outcome, limits: Allowance) -> list[Jumps]:
        """Where rounding sends rows of eager's results elsewhere, and where those of an outcome went."""
        exact = numbers_in(self.exact.part(subject)) if self.exact is not None else {}
        mine, theirs = (numbers_in(row.part(subject)) for row in (self.eagers[0], outcome))
        moved_parts = [numbers_in(row.part(subject)) for row in self.members]
        found = []
        for path, one in mine.items():
            rows = [part[path] for part in moved_parts if isinstance(part.get(path), torch.Tensor)]
            two = theirs.get(path)
            if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
                found.append(jumps(path, one, two, rows, exact.get(path), limits))
        return [row for row in found if row is not None]

    def judged(
        self, subject: str, outcome: Outcome, limits: Allowance, rows: Mapping[str, torch.Tensor]
    ) -> Accuracy | None:
        """The errors of an outcome against a wider type, and whether what eager errs by, also where rounding moves it,
        allows them; without a wider type, against eager itself."""
        eagers = [row.part(subject) for row in (*self.eagers, *self.members)]
        judge = partial(accuracy, compiled=outcome.part(subject), common=subject in COMMON_SCALE, rows=rows)
        if self.exact is not None:
            found = judge(self.exact.part(subject), eagers, limits=limits)
            if found is not None:
                return found
        strict = dataclasses.replace(limits, floor=min(limits.floor, 8 * limits.eps))
        found = judge(_in_double(eagers[0]), eagers[1:], limits=strict)
        return found and dataclasses.replace(found, is_of_eager=True)


def _in_double(value: Any) -> dict[str, Any]:
    return {path: part.double() if _is_real(part) else part for path, part in numbers_in(value).items()}


def _is_real(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.is_floating_point()
