"""An `if` on a tensor's value splits the model in two graphs, with Python in between.

Look at the graph break: it names the line of the `if`. Then tick fullgraph, which makes the break an error with the
compiler's reasons. The cure is `torch.where` or `torch.cond`, or to decide outside of forward.
"""

import torch
from torch import nn


class Model(nn.Module):
    """Normalises its features only when they are large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = nn.Linear(width, width)
        self.decode = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = torch.tanh(self.encode(x)) * 3.0
        if features.abs().mean() > 0.5:
            features = features / features.norm(dim=-1, keepdim=True)
        return self.decode(features)


def get_init_inputs() -> list[int]:
    return [256]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 256)]
