"""What the precision in force lets two right results differ by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compilescope.worker.environment import attempt
from compilescope.worker.norms import Norm
from compilescope.worker.steps import Recipe

_SMALL, _FEW = 500, 10
_FIRST_WITH_TF32 = 8


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """Limits, as shares of the root mean square of the values.

    `eps`: from one to the next number. `floor`: below it no error counts. `factor`: how many times eager's own error
    the compiled one may be. `share`: how far the two may be apart where no reference tells eager's error. `stray`: an
    eager error beyond it says more about the model, or the reference, than about rounding. Single elements may err by
    `PEAK` times as much as the whole.
    """

    name: str
    eps: float
    floor: float
    factor: float
    share: float
    stray: float

    PEAK = 10.0

    @property
    def is_half(self) -> bool:
        return self.name in ("fp16", "bf16")

    def explains(self, gap: Norm) -> bool:
        """Whether two results may be so far apart."""
        return gap.rms <= self.share and gap.peak <= self.PEAK * self.share

    def factor_for(self, elements: int) -> float:
        """Of few elements, eager's error may be small by luck; these factors are torch._dynamo.utils.same's."""
        return 10.0 if elements <= _FEW else 8.0 if elements <= _SMALL else self.factor


TABLE = {
    "fp64": Allowance(name="fp64", eps=2**-52, floor=1e-10, factor=2.0, share=1e-9, stray=1e-2),
    "fp32": Allowance(name="fp32", eps=2**-23, floor=1e-4, factor=2.0, share=1e-4, stray=1e-2),
    "tf32": Allowance(name="TF32", eps=2**-10, floor=1e-3, factor=3.0, share=1e-2, stray=0.1),
    "fp16": Allowance(name="fp16", eps=2**-10, floor=1e-3, factor=3.0, share=2e-2, stray=0.2),
    "bf16": Allowance(name="bf16", eps=2**-7, floor=1e-3, factor=3.0, share=5e-2, stray=0.5),
}


def allowance(recipe: Recipe, model: nn.Module, computed: Iterable[torch.dtype] = ()) -> Allowance:
    """The limits for this model as it runs: by autocast, by its own types, by what the device's libraries may use.

    `computed`: types that a call was seen to compute in, such as those of an autocast within `forward`.
    """
    return TABLE[_coarsest(recipe, model, computed)]


def types_of(work: Callable[[], Any]) -> frozenset[torch.dtype]:
    """The types of all tensors that the operations of some work make."""
    seen = Types()
    with seen:
        work()
    return frozenset(seen.types)


class Types(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the type of each tensor that an operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.types.update(value.dtype for value in tree_leaves(result) if isinstance(value, torch.Tensor))
        return result


def _coarsest(recipe: Recipe, model: nn.Module, computed: Iterable[torch.dtype]) -> str:
    types = {tensor.dtype for tensor in (*model.parameters(), *model.buffers())}.union(computed)
    if recipe.precision == "bf16" or torch.bfloat16 in types:
        return "bf16"
    if recipe.precision == "fp16" or torch.float16 in types:
        return "fp16"
    floats = {dtype for dtype in types if dtype.is_floating_point}
    if floats == {torch.float64}:
        return "fp64"
    return "tf32" if _uses_tf32(recipe.device, model) else "fp32"


def _uses_tf32(device: torch.device, model: nn.Module) -> bool:
    """Whether matrix products or convolutions may round to ten bits; for cuDNN's, that is torch's default."""
    if device.type != "cuda" or attempt(lambda: torch.cuda.get_device_capability(device)[0], 0) < _FIRST_WITH_TF32:
        return False
    if attempt(torch.get_float32_matmul_precision, "highest") != "highest":
        return True
    return _has_convolutions(model) and bool(attempt(lambda: torch.backends.cudnn.allow_tf32, True))


def _has_convolutions(model: nn.Module) -> bool:
    def is_one(module: Any) -> bool:
        return isinstance(module, (nn.RNNBase, nn.modules.conv._ConvNd))

    # a weight of three or more dimensions is a convolution's where its forward calls the function itself
    return any(map(is_one, model.modules())) or any(parameter.dim() > 2 for parameter in model.parameters())
