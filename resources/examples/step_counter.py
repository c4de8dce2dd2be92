"""A Python int that counts calls on the module makes every call compile anew, until the limit.

Look at the recompiles: the guard is on `self.steps`. After eight of them torch gives up and runs eager. Keep such a
counter in a tensor buffer, or outside of the module.
"""

import torch
from torch import nn


class WarmUpScale(nn.Module):
    """Scales its output up over the first thousand calls."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return torch.relu(self.linear(x)) * min(1.0, self.steps / 1000)


model = WarmUpScale()
inputs = torch.randn(32, 64)
