"""Panes that explain what the compiler did in the shown run."""
