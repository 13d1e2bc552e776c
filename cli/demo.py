"""`crystalperf demo`: the answer about a recorded run that is part of the package."""

from __future__ import annotations

from pathlib import Path

from crystalperf.cli.answering import analyze
from crystalperf.cli.output import say
from crystalperf.cli.text import shell_word
from crystalperf.indexes.errors import InputError

SAID = (
    "a recorded run that comes with CrystalPerf: TPC-H q9, joins of six tables, on two small machines with a slow"
    " network of 10 Mbit/s"
)


def demo(*, as_json: bool) -> int:
    """Analyze it like any other.  Raises InputError where the package came without it."""
    import crystalperf

    folder = Path(crystalperf.__file__).parent / "demo"
    if not folder.is_dir():
        raise InputError(f"{folder}: the recorded run is not part of this installation; install CrystalPerf anew")
    code = analyze([str(folder)], "", "", [], as_json=as_json)
    say(f"This was {SAID}; `crystalperf analyze {shell_word(folder)}` says the same")
    return code
