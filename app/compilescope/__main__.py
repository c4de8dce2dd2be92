"""`python -m compilescope` and the `compilescope` command."""

from __future__ import annotations

import sys

from compilescope.cli import main

if __name__ == "__main__":
    sys.exit(main())
