"""How far rounding alone takes a model: eager called again with its numbers moved by half a unit in the last place.

A model may turn rounding into a jump: routing to an expert, an argmax, a threshold, rounding to int8. Which rows of a
result jump, and how far, is what calls with moved inputs and parameters show. This is stochastic arithmetic, as CESTAC
(J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993) and Verificarlo (C. Denis et al., 2016)
do it: inputs and parameters are moved where they enter, and the result of each operation that rounds is moved in its
own type, since a sum of large numbers loses what was right before it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from compilescope.worker.accuracy import OWN_SPREADS
from compilescope.worker.allowance import Allowance
from compilescope.worker.inputs import Inputs, mapped
from compilescope.worker.norms import in_rows, is_float

SEEDS = 6
# the distance from one to the next number in bf16 and fp16 is no less than this; TF32 has that of fp16
HALF = 2**-9
PRODUCTS = frozenset(
    ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "linear", "mv", "dot", "matmul", "addmv")
)
ROUNDING = frozenset(
    (
        *("add", "sub", "rsub", "mul", "div", "addcmul", "addcdiv", "lerp", "pow", "reciprocal", "sqrt", "rsqrt"),
        *("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "sigmoid", "erf", "gelu", "silu", "softplus", "mish"),
        *("sum", "mean", "var", "std", "var_mean", "cumsum", "logsumexp", "_softmax", "_log_softmax", "elu", "atan2"),
        *("native_layer_norm", "native_group_norm", "native_batch_norm", "linalg_vector_norm", "_grouped_mm"),
        *("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu"),
        *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_euclidean_dist"),
        *("_linalg_solve_ex", "linalg_inv_ex", "linalg_cholesky_ex", "_fused_rms_norm", "gelu_backward"),
        *("native_layer_norm_backward", "native_batch_norm_backward", "_softmax_backward_data", "tanh_backward"),
    )
)
# a row that is so many times as far off as rounding takes rows elsewhere has jumped
OUTLIER = 10.0
# rows of fewer numbers may have come out well by luck, and that much better
SHORT, LUCK = 8, 4
# units in the last place below which nothing is an outlier
UNITS = 8


class Stochastic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Moves the result of each operation that rounds; what selects, compares, copies or counts stays exact."""

    def __init__(self, eps: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._eps = eps
        self._seeds = itertools.count(seed * 1_000_003 + 500_000)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else ""
        if name not in ROUNDING and name not in PRODUCTS:
            return result
        # a product may be made in a coarser type than its own
        eps = self._eps if name in PRODUCTS else 0.0
        return tree_map(lambda value: self._moved(value, eps), result)

    def _moved(self, value: Any, eps: float) -> Any:
        if type(value) is not torch.Tensor or not value.is_floating_point() or value.layout is not torch.strided:
            return value
        own = torch.finfo(value.dtype).eps
        return beside(value, eps if own < eps < HALF else own, next(self._seeds))


@contextlib.contextmanager
def moved(model: nn.Module, eps: float, seed: int) -> Iterator[None]:
    """While this holds, the parameters stand half a unit in the last place beside where they were."""
    kept = [(parameter, parameter.data) for parameter in model.parameters() if parameter.is_floating_point()]
    try:
        for index, (parameter, value) in enumerate(kept):
            parameter.data = beside(value, eps, seed * 100_003 + index)
        yield
    finally:
        for parameter, value in kept:
            parameter.data = value


def moved_inputs(inputs: Inputs, eps: float, seed: int) -> Inputs:
    """The inputs, likewise."""
    count = iter(range(seed * 100_003 + 50_000, (seed + 1) * 100_003))

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.layout is not torch.strided or tensor.is_nested:
            return tensor
        return beside(tensor.detach(), eps, next(count)).requires_grad_(tensor.requires_grad)

    args, kwargs = mapped(inputs.tree, change)
    return Inputs(args=args, kwargs=kwargs)


def beside(value: torch.Tensor, eps: float, seed: int) -> torch.Tensor:
    """Each number moved at random by half a unit in the last place of a type, or by none or one where it is held in
    that type. Whole numbers stay: they are masks, counts and constants, and exact in any arithmetic."""
    source = torch.Generator(value.device).manual_seed(seed)
    wide = torch.promote_types(value.dtype, torch.float32)
    signs = torch.randint(-1, 2, value.shape, generator=source, device=value.device, dtype=torch.int8)
    if torch.finfo(value.dtype).eps < eps:
        step = (signs.clamp(min=0) * 2 - 1).to(wide) * (eps / 2)
    else:
        step = signs.to(wide) * (0.75 * torch.finfo(value.dtype).eps)
    twin = value.to(wide)
    return torch.where(twin == twin.round(), twin, twin + twin * step).to(value.dtype)


@dataclass(frozen=True, kw_only=True)
class Jumps:
    """The rows of one part that rounding sends elsewhere, in eager (`own`: at most in one call) and in the compiled.

    `new`: those that jumped in the compiled alone; `likely`: how many of these are to be expected, by the rows that
    jumped in one call only (I. J. Good's estimate of what was not seen yet); `in_exact`: how many of them a wider type
    sends elsewhere too, of a half type, whose roundings within the model may be coarser than those of its inputs.
    `steady`: the rows that jumped nowhere. `is_farther`: whether one of the compiled jumped farther than any of eager.
    """

    path: str
    rows: int
    compiled: int
    own: int
    new: int
    likely: float
    is_farther: bool
    in_exact: int
    steady: torch.Tensor

    @property
    def is_wrong(self) -> bool:
        allowed = 1 + self.likely if self.own else 0
        return self.is_farther or self.new - self.in_exact > allowed

    @property
    def _head(self) -> str:
        return f"{self.compiled} of {self.rows} rows{f' of {self.path}' if self.path else ''} took another branch"

    @property
    def words(self) -> str:
        return f"{self._head}; rounding alone does this to eager as well ({self.own} rows in one call)."

    @property
    def fault(self) -> str:
        if self.is_farther:
            return f"{self._head}, farther than rounding sends any of eager's."
        where = f"{self.new} of them where it does not send eager's" if self.own else "it sends none of eager's"
        return f"{self._head}, which rounding does not explain: {where}."


def jumps(
    path: str,
    eager: torch.Tensor,
    compiled: torch.Tensor,
    members: Sequence[torch.Tensor],
    exact: torch.Tensor | None,
    limits: Allowance,
) -> Jumps | None:
    """The jumps of one part; None where numbers with a fraction make none in eager. `members`: eager's, moved."""
    if not members or not eager.numel() or any(row.shape != eager.shape for row in (compiled, *members)):
        return None
    if exact is None or exact.shape != eager.shape:
        exact = eager
    near, beyond, *far = [_distance(eager, other) for other in (compiled, exact, *members)]
    each = torch.stack(far)
    least = torch.zeros(())
    if is_float(eager):
        size = in_rows(eager).double().nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt()
        least = torch.maximum(each.median(), UNITS * limits.eps * size)
        # a row that jumps in most calls has one in which it does not; a short row may come out well by luck
        usual = each.sort(0).values[min(1, len(far) - 1)] * (LUCK if in_rows(eager).shape[1] < SHORT else 1)
        least = OUTLIER * torch.maximum(usual, least)
    own, mine, elsewhere = (_outliers(rows, least) for rows in (each, near, beyond))
    if not own.any() and not elsewhere.any() and least.any():
        return None
    any_own = own.any(0)
    new = mine & ~any_own
    is_farther = bool(mine.any() and own.any()) and float(near[mine].max()) > OWN_SPREADS * float(each[own].max())
    return Jumps(
        path=path,
        rows=len(near),
        compiled=int(mine.sum()),
        own=int(own.sum(1).max()),
        new=int(new.sum()),
        likely=OWN_SPREADS * float((own.sum(0) == 1).sum()) / len(far),
        is_farther=is_farther,
        in_exact=int((new & elsewhere).sum()) if limits.is_half else 0,
        steady=~(any_own | mine | elsewhere),
    )


def _outliers(distances: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """The rows that are far off also beside the others of the same call: where most are, it is no jump of a few."""
    if not least.any():
        return distances > 0
    usual = OUTLIER * distances.median(-1, keepdim=True).values
    return (distances > least) & (distances > usual)


def _distance(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Of numbers with a fraction, the root mean square along each row; of whole ones, which differ."""
    if not is_float(one):
        return (one != two).reshape(-1).double()
    return (in_rows(one).double() - in_rows(two).double()).nan_to_num(0.0, 0.0, 0.0).square().mean(1).sqrt()
