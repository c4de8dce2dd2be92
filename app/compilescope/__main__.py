"""`python -m compilescope` and the `compilescope` command."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; returns the exit status."""
    try:
        from compilescope import cli

        return cli.main()
    except KeyboardInterrupt:  # while the modules are still being loaded
        return 130


if __name__ == "__main__":
    sys.exit(main())
