"""The parts of the window, one a module."""
