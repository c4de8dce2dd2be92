"""A call of a hundred equal parts; the first of two loads of this script does some more: a known slowdown.

Arguments: how many parts more (each is a slowdown of 1 %; 0 makes two sides that do the same), and the size of a part:
64 for some 100 us on one thread of a processor, 1024 for some tens of microseconds on a large GPU.

Neither side is compiled. The way into compiled code takes more time than a plain call, up to hundreds of microseconds
where the call before has emptied the caches: that is a real slowdown, and no false alarm.
"""

import sys

import torch
from torch import nn

PARTS = 100
MORE, SIZE = (int(word) for word in sys.argv[1:3])
# Torch is all that two loads share. Their numbers and flags are made equal; what a function does is not.
if hasattr(torch, "slowed_was_loaded"):

    def parts() -> range:
        return range(PARTS)
else:
    torch.slowed_was_loaded = True

    def parts() -> range:
        return range(PARTS + MORE)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # it keeps the length of what it is multiplied with
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(SIZE, SIZE))[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight
        for _ in parts():
            x = torch.mm(x, weight)
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(max(SIZE, 1024), SIZE)]
