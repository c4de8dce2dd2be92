"""nn.LSTM is left to eager without an error: torch.compile returns a model that it hardly compiled.

Look at the verdict and at the operations per graph. The recurrence is one library call that Dynamo does not enter,
so nothing is gained; only what stands around it is compiled.
"""

import torch
from torch import nn


class Tagger(nn.Module):
    """A bidirectional LSTM; its outputs are the features."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.lstm(sequence)[0]


def get_model() -> nn.Module:
    return Tagger(features=32, hidden=64)


def make_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(8, 40, 32),)
