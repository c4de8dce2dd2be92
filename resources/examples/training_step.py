"""A training step with its own loss and optimizer: forward and backward are compiled, the optimizer is not.

Choose the training phase. Look at the two halves of the first call, forward and backward, and at the check of the
gradients. `get_loss` and `get_optimizer` are optional; without them the app takes a default of each.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    """Classifies points; returns the loss of each sample, so that the labels are an input like any other."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden),
            nn.LayerNorm(hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.SiLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, points: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.body(points), labels, reduction="none")


def get_init_inputs() -> list[int]:
    return [64, 256, 10]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(256, 64), torch.randint(0, 10, (256,))]


def get_loss(output: torch.Tensor) -> torch.Tensor:
    return output.mean()


def get_optimizer(params: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=0.01, momentum=0.9)
