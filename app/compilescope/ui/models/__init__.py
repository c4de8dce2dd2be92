"""Item models over the domain's rows."""
