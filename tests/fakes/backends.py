"""A model script with compilers of its own, of which each leaves out more of the work that eager does in vain."""

# eager makes 72 products and needs 24; `lean` makes those, `close` one more, `thrice` as many as eager
SCRIPT = """
import torch
from torch import nn
from torch._dynamo import list_backends, register_backend


def without_dead_code(gm, extra):
    gm.graph.eliminate_dead_code()
    gm.recompile()

    def run(*arguments):
        for _ in range(extra):
            gm.forward(*arguments)
        return gm.forward(*arguments)

    return run


def lean(gm, _):
    return without_dead_code(gm, 0)


def thrice(gm, _):
    return without_dead_code(gm, 2)


def close(gm, _):
    work = without_dead_code(gm, 0)

    def run(*arguments):
        arguments[-1] @ arguments[-1]
        return work(*arguments)

    return run


def meddling(gm, _):
    torch._dynamo.config.verbose = not torch._dynamo.config.verbose
    return without_dead_code(gm, 0)


for backend in (lean, thrice, close, meddling):
    if backend.__name__ not in list_backends(exclude_tags=()):
        register_backend(backend)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(128, 128) / 12)

    def forward(self, x):
        for _ in range(24):
            for _ in range(2):
                in_vain = x @ self.weight
            x = x @ self.weight
        return x


def get_inputs():
    return [torch.randn(128, 128)]
"""
