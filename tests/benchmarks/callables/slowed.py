"""A call of a hundred equal parts, whose copy does some more of them: a known slowdown inside the callable.

Arguments: how many parts more (each is a slowdown of 1 %; 0 makes two equal sides), and the size of a part: 64 for some
tens of microseconds on a processor, 1024 for as much on a large GPU.
"""

import sys

import torch
from torch import nn

PARTS = 100
MORE, SIZE = (int(word) for word in sys.argv[1:3])


class Model(nn.Module):
    def __init__(self, parts: int = PARTS) -> None:
        super().__init__()
        self.parts = parts
        self.weight = nn.Parameter(torch.randn(SIZE, SIZE) / SIZE**0.5)

    def __deepcopy__(self, memo: dict) -> "Model":
        twin = Model(self.parts + MORE).to(self.weight.device).train(self.training)
        twin.load_state_dict(self.state_dict())
        return twin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.parts):
            y = torch.mm(x, self.weight)
        return y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(max(SIZE, 256), SIZE)]
