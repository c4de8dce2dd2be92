"""Each batch has another length: the second one compiles again, and from then on the size is a symbol.

Look at the recompile: its guard names the dimension that changed. Compare dynamic "auto" with "on" (no recompile)
and "off" (one compile for every length, until the limit).
"""

import itertools

import torch
from torch import nn

LENGTHS = itertools.cycle((48, 96, 72, 120, 60))


class Pooler(nn.Module):
    """Weighs the positions of a sequence and sums them up."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.norm = nn.LayerNorm(width)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.score(sequence), dim=1)
        return self.norm((weights * sequence).sum(dim=1))


def build_model() -> nn.Module:
    return Pooler()


def get_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(16, next(LENGTHS), 96),)
