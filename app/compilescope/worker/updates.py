"""What a training step makes of the parameters, beside what the same gradients give in eager.

Adam's first steps are as long for a tiny gradient as for a large one, so that rounding of a gradient that is nearly
zero turns a whole step around. Two updates are therefore compared for the same gradients: eager's optimizer, in the
state that the step began from, is given the compiled model's gradients. What then differs is the optimizer's doing.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compilescope.worker.norms import norm
from compilescope.worker.numerics import Difference, worst
from compilescope.worker.steps import Side

# of a step's own size, and units in the last place of the value: what rounding in the optimizer's formula may come to
OF_STEP, UNITS = 1e-3, 4


def update(side: Side) -> dict[str, torch.Tensor]:
    """The parameters that the optimizer has, and the tensors of its state."""
    found = {}
    for name, parameter in side.model.named_parameters():
        state = getattr(side.optimizer, "state", {}).get(parameter, {})
        if parameter.requires_grad:
            found[name] = parameter.detach()
        found |= {f"{name}: {key}": value for key, value in state.items() if isinstance(value, torch.Tensor)}
    return found


def with_gradients(side: Side, gradients: Mapping[str, torch.Tensor | None]) -> dict[str, torch.Tensor]:
    """What the side's optimizer makes of some gradients, from where its parameters and its state stand."""
    assert side.optimizer is not None
    finite = True
    for name, parameter in side.model.named_parameters():
        gradient = gradients.get(name)
        parameter.grad = None if gradient is None else gradient.to(parameter.device, copy=True)
        finite = finite and (gradient is None or bool(gradient.isfinite().all()))
    if finite or side.scaler is None:
        with side.home():
            side.optimizer.step()
    return update(side)


def compare_updates(
    before: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], actual: Mapping[str, torch.Tensor]
) -> Difference:
    """Whether two updates are the same but for rounding; `before`: the parameters that both began from."""
    if odd := expected.keys() ^ actual.keys():
        return Difference(equal=False, reason=f"update[{min(odd)!r}] is in one of the two only")
    return worst([_of_one(name, before.get(name), one, actual[name].to(one.device)) for name, one in expected.items()])


def _of_one(name: str, start: torch.Tensor | None, one: torch.Tensor, two: torch.Tensor) -> Difference:
    if one.shape == two.shape and torch.equal(one, two):
        return Difference(max_abs_error=0.0)
    if one.shape != two.shape or not one.is_floating_point():
        return Difference(equal=False, reason=f"update[{name!r}] is another one")
    wide = torch.float64
    began = torch.zeros_like(one, dtype=wide) if start is None else start.to(one.device, wide)
    gap, step = (two.to(wide) - one.to(wide)).abs(), (one.to(wide) - began).square().mean().sqrt()
    allowed = UNITS * torch.finfo(one.dtype).eps * torch.maximum(one.to(wide).abs(), began.abs()) + OF_STEP * step
    wrong = int((~(gap <= allowed) & ~(one.isnan() & two.isnan())).sum())
    largest = float(gap.nan_to_num().max())
    reason = f"{wrong} of {one.numel()} elements of update[{name!r}] differ, by up to {largest:.3g}" if wrong else ""
    share = norm(two, one).of(norm(one).rms)
    return Difference(equal=False, reason=reason, is_rounding=bool(wrong), max_abs_error=largest, gap=share)
