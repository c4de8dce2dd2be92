"""What CompileScope talks about, in plain values: no Qt, no torch, standard library only."""
