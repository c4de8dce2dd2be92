"""A small residual CNN: batch norm, activation and addition fold into the code around each convolution.

Look at the number of kernels against the number of operations: everything between two convolutions becomes one loop.
The convolutions themselves stay library calls, and they set the limit of the gain.
"""

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(x + self.second_norm(self.second(y)))


class SmallResNet(nn.Module):
    """A stem, residual blocks at one resolution, and a linear classifier."""

    def __init__(self, channels: int = 32, blocks: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.blocks(torch.relu(self.stem(images)))
        return self.classifier(features.mean(dim=(2, 3)))


def build_model() -> nn.Module:
    return SmallResNet()


def get_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(4, 3, 64, 64),)
