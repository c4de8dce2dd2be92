"""What a model holds: its state, its memory, and parts that its script compiled or left without a shape."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from compilescope.worker.reach import inner_tensors


def unwrap(model: nn.Module) -> tuple[nn.Module, list[str]]:
    """The model without its script's own torch.compile, on the outside, within, or in place."""
    found: list[str] = []
    if _is_compiled(model):
        model = _inside(model)
        found.append("the model")
    for name, module in list(model.named_modules()):
        for key, child in list(module._modules.items()):
            if child is not None and _is_compiled(child):
                module._modules[key] = _inside(child)
                found.append(f"{name}.{key}".lstrip("."))
    for name, module in model.named_modules():
        if getattr(module, "_compiled_call_impl", None) is not None:
            module._compiled_call_impl = None
            found.append(name or "the model")
    return model, found


def _inside(module: Any) -> Any:
    while _is_compiled(module):
        module = module._orig_mod
    return module


def _is_compiled(module: nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule" and hasattr(module, "_orig_mod")


def holds_compiled_functions(model: nn.Module) -> bool:
    """A compiled bound method stays bound to the original when its module is copied."""
    return any(
        hasattr(value, "_torchdynamo_orig_callable") for module in model.modules() for value in vars(module).values()
    )


def has_lazy_parameters(model: nn.Module) -> bool:
    """Parameters that get their shape at the first call cannot be copied before it."""
    return any(torch.nn.parameter.is_lazy(tensor) for tensor in state(model))


def state(model: nn.Module) -> Iterator[torch.Tensor]:
    yield from model.parameters()
    yield from model.buffers()


def room(device: torch.device) -> int | None:
    """Bytes that are free on a device; None where that is not known."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    try:
        match = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Memory that tensors hold, shared storage counted once; of a wrapper, what is inside."""
    seen: dict[object, int] = {}
    for tensor in tensors:
        for part in inner_tensors(tensor):
            with contextlib.suppress(Exception):  # sparse ones, or of a class that keeps its values elsewhere
                storage = part.untyped_storage()
                seen[part.device, storage.data_ptr()] = storage.nbytes()
    return sum(seen.values())
