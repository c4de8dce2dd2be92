"""Too little work: the checks before each compiled call cost more than the call itself.

Look at the verdict, slower. A call takes microseconds, and the guards that compiled code needs take some too. On a
GPU the same holds for small kernels: there it is launches that cost, and "reduce-overhead" helps.
"""

import torch
from torch import nn

model = nn.Linear(4, 4)
example_inputs = torch.randn(2, 4)
