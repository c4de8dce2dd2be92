"""Dropout draws other random numbers when compiled, so outputs differ and yet nothing is wrong.

Run it with the module in training mode and look at the numerics: the difference is named as one of random streams.
In eval mode dropout does nothing, and the outputs match.
"""

import torch
from torch import nn


class Regularised(nn.Module):
    """Linear layers with dropout and noise, which are drawn inside the fused loops."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.dropout(torch.relu(self.first(x)))
        if self.training:
            x = x + 0.01 * torch.randn_like(x)
        return self.second(self.dropout(x))


def get_model() -> tuple[nn.Module, tuple[torch.Tensor]]:
    return Regularised(), (torch.randn(256, 256),)
