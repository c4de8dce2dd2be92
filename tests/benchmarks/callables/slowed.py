"""A call of a hundred equal parts, and a backend whose compiled code does some more of them: a known slowdown inside
what is compiled, where no way to build the two models can lose it.

Arguments: how many parts more (each is a slowdown of 1 %; 0 makes two sides that do the same), and the size of a part:
64 for some 100 us on one thread of a processor, 1024 for some tens of microseconds on a large GPU. On a processor the
way into compiled code costs some 20 us more a call than a plain call, which is kept small beside it: 0.2 %.
"""

import sys
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch._dynamo import list_backends, register_backend

PARTS = 100
MORE, SIZE = (int(word) for word in sys.argv[1:3])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # it keeps the length of what it is multiplied with
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(SIZE, SIZE))[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight
        for _ in range(PARTS):
            x = torch.mm(x, weight)
        return x


def slowed(graph: torch.fx.GraphModule, _inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
    """The graph as it is, after some more parts whose result nobody takes."""

    def run(*args: torch.Tensor) -> object:
        x, weight = sorted(args, key=len, reverse=True)
        for _ in range(MORE):
            x = torch.mm(x, weight)
        return graph.forward(*args)

    return run


# a script may be loaded more than once in a process
if "slowed" not in list_backends():
    register_backend(slowed, name="slowed")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(max(SIZE, 1024), SIZE)]
