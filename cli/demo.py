"""`crystalperf demo`: analyze the recorded run that is part of the package."""

from __future__ import annotations

from pathlib import Path

from crystalperf.cli.output import print_message
from crystalperf.cli.run_commands import analyze
from crystalperf.cli.text import shell_word
from crystalperf.indexes.errors import InputError

DESCRIPTION = (
    "a recorded run that ships with CrystalPerf: TPC-H q9, joins of six tables, on two small machines with a slow"
    " network of 10 Mbit/s"
)


def demo(*, as_json: bool) -> int:
    """Analyze the demo run like any other.  Raises InputError if the installation lacks it."""
    import crystalperf

    folder = Path(crystalperf.__file__).parent / "demo"
    if not folder.is_dir():
        raise InputError(f"{folder}: the recorded run is missing from this installation; reinstall CrystalPerf")
    code = analyze([str(folder)], "", "", [], keeps=False, as_json=as_json)
    print_message(f"This was {DESCRIPTION}; `crystalperf analyze {shell_word(folder)}` prints the same")
    return code
