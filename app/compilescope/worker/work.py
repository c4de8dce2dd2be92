"""How much a call computes and moves: FLOPs and bytes of each operator of an eager call, from its tensors.

FLOPs are those of matrix products, convolutions and attention, by the formulas of torch.utils.flop_counter. Bytes are
those of the tensors that an operator reads and writes, each once: the least that has to pass through memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from compilescope.worker.environment import attempt
from compilescope.worker.operators import Key, does_work, key_of_call

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_FIRST_WITH_TF32 = 8
# these read a part of what they are given, and nobody knows which
PARTIAL = ("embedding", "index", "gather", "scatter", "select", "slice", "unfold", "masked", "take", "narrow", "split")
# what stands in the place of the result is overwritten, not read
_OVERWRITES = ("aten::copy_", "aten::fill_", "aten::zero_")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One call of an operator. None where it is not known, or where calls of the same shapes differ."""

    flops: int | None = None
    bytes: int | None = None
    dtype: str | None = None


class WorkCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While this mode holds, every operator that runs is counted. `calls`: how many did work."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = 0
        self.flops: Counter[str] = Counter()
        self._known: dict[Key, Work] = {}

    def find(self, key: Key) -> Work:
        """The work of a call with these shapes. A compiled call names the tensor for its result last."""
        name, shapes = key
        return self._known.get(key) or self._known.get((name, shapes[:-1])) or Work()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind not in _PLAIN for kind in types):
            # a tensor class with operators of its own, which come here again on the plain tensors inside it
            return NotImplemented
        kwargs = kwargs or {}
        packet = getattr(func, "_overloadpacket", None)
        if packet is not None and packet not in flop_registry and func is not torch.ops.prim.device.default:
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        if packet is not None:
            attempt(lambda: self._count(func, args, kwargs, result), None)
        return result

    def _count(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = func.name().partition(".")[0]
        if not does_work(name):
            return
        self.calls += 1
        direct = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        work = _work(func, name, args, kwargs, result)
        key = key_of_call(name, direct)
        self._known[key] = work if self._known.get(key, work) == work else Work()
        if work.flops:
            self.flops[work.dtype or "other"] += work.flops


def _work(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> Work:
    formula = flop_registry.get(func._overloadpacket)
    flops = attempt(lambda: int(formula(*args, **kwargs, out_val=result)), None) if formula else None
    read = list(_tensors((args, tuple(kwargs.values()))))
    written = list(_tensors(result))
    if name in _OVERWRITES:
        read = read[1:]
    is_partial = any(word in name for word in PARTIAL)
    return Work(
        flops=flops,
        # single elements are few bytes, and calls with and without them look the same in the profiler
        bytes=None if is_partial else sum(size_of(tensor) for tensor in read + written if tensor.dim()),
        dtype=_dtype(name, read) if flops else None,
    )


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of memory behind a tensor's elements: an expanded one repeats the same."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _dtype(name: str, tensors: list[torch.Tensor]) -> str | None:
    """What the products are made in: TF32 where the device's libraries may round fp32 to it."""
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    names = {_NAMES.get(tensor.dtype) for tensor in floats}
    if len(names) != 1:
        return None
    found = names.pop()
    is_product = "conv" not in name
    if found == "fp32" and floats[0].device.type == "cuda" and _rounds_to_tf32(is_product=is_product):
        return "tf32"
    return found


def _rounds_to_tf32(*, is_product: bool) -> bool:
    if torch.cuda.get_device_capability()[0] < _FIRST_WITH_TF32:
        return False
    if is_product:
        return torch.get_float32_matmul_precision() != "highest"
    return bool(torch.backends.cudnn.allow_tf32)
