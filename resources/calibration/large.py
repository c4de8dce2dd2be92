"""A call of some milliseconds: arithmetic and memory decide, on a GPU too, for which the batch is larger.

Its argument is the device.
"""

import sys

import torch
from torch import nn

ON_GPU = sys.argv[1].startswith("cuda") if len(sys.argv) > 1 else torch.cuda.is_available()


class Model(nn.Module):
    """Two wide linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16384 if ON_GPU else 64, 512)]
