"""CompileScope: see what torch.compile did, measure it against eager, and decide."""

__version__ = "0.1.0"
