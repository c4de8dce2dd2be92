"""nn.TransformerEncoder in eval mode runs one fused operation per layer, and so does its graph: little to gain.

Look at the operations: three, one a layer, where a training step has dozens. Run both phases; the fused path is
off in training, and there is more for the compiler to do. On a GPU compare "default" with "reduce-overhead".
"""

import torch
from torch import nn

layer = nn.TransformerEncoderLayer(d_model=128, nhead=4, dim_feedforward=256, dropout=0.0, batch_first=True)
model = nn.TransformerEncoder(layer, num_layers=3, enable_nested_tensor=False)

example_inputs = (torch.randn(4, 64, 128),)
