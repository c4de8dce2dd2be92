"""A call of some tens of microseconds: what the interpreter and the launch of kernels add to noise shows here."""

import torch
from torch import nn


class Model(nn.Module):
    """Two small linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 64)]
