"""The entry point of the console script; it also handles an interrupt while the commands are being imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run cli.main.main; an interrupt during the import ends without a traceback."""
    try:
        from crystalperf.cli.main import main as commands

        commands()
    except KeyboardInterrupt:
        sys.exit(130)
