"""The key-value cache is an argument that forward writes to, which CUDA graphs refuse.

Look at "reduce-overhead" on a GPU: the strip says that CUDA graphs were skipped, with the line that writes. On a CPU
there are none to skip. As a registered buffer of the module the cache is no obstacle.
"""

import torch
import torch.nn.functional as F
from torch import nn

HEADS, LENGTH, WIDTH = 4, 128, 128


class DecodeStep(nn.Module):
    """Attention of one new token over all tokens so far."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, token: torch.Tensor, cache: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        batch = token.shape[0]
        q, k, v = self.qkv(token).view(batch, 3, HEADS, 1, WIDTH // HEADS).unbind(dim=1)
        cache[0].index_copy_(2, position, k)
        cache[1].index_copy_(2, position, v)
        seen = (torch.arange(LENGTH, device=token.device) <= position).view(1, LENGTH)
        mixed = F.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=seen)
        return self.project(mixed.reshape(batch, WIDTH))


model = DecodeStep()


def get_inputs() -> dict[str, torch.Tensor]:
    return {
        "token": torch.randn(8, WIDTH),
        "cache": torch.zeros(2, 8, HEADS, LENGTH, WIDTH // HEADS),
        "position": torch.tensor([5]),
    }
