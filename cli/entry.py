"""Where the console script begins: an interrupt while the commands are still being imported is one like any other."""

from __future__ import annotations

import sys


def main() -> None:
    """cli.main.main; an interrupt before that has begun to listen ends in silence, too."""
    try:
        from crystalperf.cli.main import main as commands

        commands()
    except KeyboardInterrupt:
        sys.exit(130)
