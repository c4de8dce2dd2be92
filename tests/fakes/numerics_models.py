"""Models with a known truth: right, discontinuous, ill-conditioned, random, stateful; and compilers that are wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

Graph = Callable[..., Any]
Backend = Callable[[torch.fx.GraphModule, list[Any]], Graph]


class Mlp(nn.Module):
    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 32, dtype=dtype), nn.Linear(32, 16, dtype=dtype)

    def forward(self, x: torch.Tensor) -> Any:
        return self.two(F.gelu(self.one(x)))


class Asserting(Mlp):
    """Refuses double precision, as custom kernels do."""

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype is torch.float32
        return super().forward(x)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.two(F.relu(self.norm(self.one(x))).mean((2, 3)))


class Routed(nn.Module):
    """Each token goes to two of eight experts."""

    def __init__(self, *, asserts: bool = False) -> None:
        super().__init__()
        self.asserts = asserts
        self.inner, self.gate = nn.Linear(16, 16), nn.Linear(16, 8)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(8))

    def forward(self, x: torch.Tensor) -> Any:
        assert not self.asserts or x.dtype is torch.float32
        x = torch.tanh(self.inner(x))
        weight, index = self.gate(x).topk(2, -1)
        every = torch.stack([expert(x) for expert in self.experts], -2)
        chosen = every.gather(-2, index[..., None].expand(*index.shape, 16))
        return (chosen * weight.softmax(-1)[..., None].to(chosen.dtype)).sum(-2)


class Choosing(Mlp):
    """Gives indices, or what depends on one side of an edge."""

    def __init__(self, choose: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.choose = choose

    def forward(self, x: torch.Tensor) -> Any:
        return self.choose(super().forward(x))


class Int8(nn.Module):
    """Rounds activations to int8, layer after layer, and refuses double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype is torch.float32
        for layer in self.layers:
            scale = x.abs().amax(-1, keepdim=True) / 127
            x = x + F.gelu(layer((x / scale).round() * scale))
        return x


class IllConditioned(nn.Module):
    """Solves with a Hilbert matrix, which makes an error of 1e-7 one of 1e-2."""

    def __init__(self) -> None:
        super().__init__()
        n = torch.arange(5, dtype=torch.float64)
        self.register_buffer("matrix", (1 / (n[:, None] + n[None] + 1)).float())

    def forward(self, x: torch.Tensor) -> Any:
        return torch.linalg.solve(self.matrix, x.T * 1.25).T


class Cancelling(Mlp):
    def forward(self, x: torch.Tensor) -> Any:
        return (super().forward(x) + 1e3) * 3 - 3e3


class Summing(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return (x * 1.1).exp().sum(-1)


class Dropping(Mlp):
    def forward(self, x: torch.Tensor) -> Any:
        return F.dropout(super().forward(x), 0.5, training=True)


class OwnGenerator(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.source = torch.Generator().manual_seed(5)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            noise = noise_of(self.source, x.shape)
        return super().forward(x) + noise


@torch._dynamo.disable
def noise_of(source: torch.Generator, shape: torch.Size) -> torch.Tensor:
    return torch.randn(shape, generator=source)


@torch._dynamo.disable
def noise_of_the_system(x: torch.Tensor) -> torch.Tensor:
    return torch.frombuffer(bytearray(os.urandom(x.numel())), dtype=torch.uint8).view(x.shape) / 255


class Noisy(Mlp):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) + noise_of_the_system(x)


class Counting(Mlp):
    """Counts its calls in a tensor that is a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = torch.zeros(())

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return super().forward(x) * self.calls


class CountingPlainly(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return super().forward(x) * self.calls


class Averaging(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
        return y + self.mean


class Remembering(Mlp):
    """A cache in a list that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        self.seen.append(y)
        return torch.stack(self.seen).mean(0)


class Storing(Mlp):
    """Returns nothing, and leaves its result in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.result: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> Any:
        self.result = super().forward(x)


class Empty(Mlp):
    def forward(self, x: torch.Tensor) -> Any:
        super().forward(x)


class Scaled(Mlp):
    """Its gradients are of the size of 1e-8."""

    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) * 1e-4


# --- compilers ----------------------------------------------------------------------------------------------------


class Rounding(torch.fx.Interpreter):
    """Rounds each result otherwise, as other orders of summation do."""

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.op in ("placeholder", "output") or not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return result
        if any(
            isinstance(arg, torch.Tensor) and arg.data_ptr() == result.data_ptr()
            for arg in self.fetch_args_kwargs_from_env(n)[0]
        ):
            return result  # written in place, or a view
        noise = torch.sin(result.detach().double() * 12345.6789) * torch.finfo(result.dtype).eps
        return result + (result.detach().double() * noise).to(result.dtype)


def rounds(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Graph:
    return lambda *args: Rounding(graph).run(*args)


def changes(change: Callable[[torch.Tensor], torch.Tensor]) -> Backend:
    """A compiler that is wrong in the first output."""

    def backend(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Graph:
        def run(*args: Any) -> Any:
            first, *rest = graph(*args)
            return (change(first), *rest)

        return run

    return backend


def at_one(size: float) -> Backend:
    """Wrong at one element."""

    def change(first: torch.Tensor) -> torch.Tensor:
        place = (torch.arange(first.numel()) == 3).reshape(first.shape)
        return torch.where(place, first + torch.tensor(size).to(first.dtype), first)

    return changes(change)


def writes_wrongly(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Graph:
    """Wrong in what is written in place."""

    def run(*args: Any) -> Any:
        versions = [arg._version if isinstance(arg, torch.Tensor) and not arg.is_inference() else None for arg in args]
        kept = [arg.clone() if isinstance(arg, torch.Tensor) and not arg.requires_grad else None for arg in args]
        results = graph(*args)
        for arg, version, old in zip(args, versions, kept, strict=True):
            if version is not None and old is not None and not torch.equal(arg, old):
                arg.add_(1e-3)
        return results

    return run


def swaps_experts(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Graph:
    """Two experts have each other's weights."""
    names = [node.target for node in graph.graph.nodes if node.op == "placeholder"]
    pairs = [(i, names.index(n.replace("_0_", "_1_"))) for i, n in enumerate(names) if "experts" in n and "_0_" in n]
    assert pairs

    def run(*args: Any) -> Any:
        swapped = list(args)
        for one, two in pairs:
            swapped[one], swapped[two] = args[two], args[one]
        return graph(*swapped)

    return run


def in_backward(change: Callable[[torch.Tensor], torch.Tensor]) -> Backend:
    """Wrong in gradients alone."""

    def backward(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Graph:
        def run(*args: Any) -> Any:
            results = graph(*args)
            return [row if row is None else change(row) for row in results]

        return make_boxed_func(run)

    backend: Backend = aot_autograd(fw_compiler=lambda graph, _: make_boxed_func(graph.forward), bw_compiler=backward)
    return backend
