"""Matrix products dominate: the library already does the work, so compiling has little left to gain.

Look at the speedup beside the cold first call: the break-even says how many calls it takes to earn the
compile time back. With `--precision bf16` or on a GPU the small pointwise parts weigh more, and the answer changes.
"""

import torch
from torch import nn


class Model(nn.Module):
    """Three wide linear layers with an activation between them."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        return self.layers(samples)


def get_init_inputs() -> list[int]:
    return [256, 1024, 10]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]
