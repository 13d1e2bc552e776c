"""The CPU time of the steps of an analysis: `python -m lab.costs.steps INPUT…` prints each step when it ends.

    | step | CPU s | peak MiB |
    |---|---:|---:|
    | start: Python and imports | 0.31 | 61 |

Seconds are of the whole process, including DuckDB's threads.  The last row is the floor of reading: every line of the
plain files is decoded, and nothing is made of it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from crystalperf.query.run import Run
from crystalperf.query.runfile.pipeline import profile_inputs
from lab.pages import head


class Steps:
    """Prints the cost of a step when the next one begins."""

    def __init__(self) -> None:
        self.said, self.begun_s, self.total_s = "start: Python and imports", 0.0, 0.0

    def __call__(self, said: str) -> None:
        now = time.process_time()
        if self.said:
            peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"| {self.said} | {now - self.begun_s:.2f} | {peak_mib:.0f} |", flush=True)
            self.total_s += now - self.begun_s
        self.said, self.begun_s = said, now


class _NoFields(msgspec.Struct):
    """An object of which no field is kept."""


def floor(logs: Sequence[Path]) -> tuple[float, int]:
    """CPU seconds to decode each line of plain logs, and their bytes."""
    decode, begun_s, size = msgspec.json.Decoder(_NoFields).decode, time.process_time(), 0
    for each in logs:
        with each.open("rb") as lines:
            for line in lines:
                decode(line)
                size += len(line)
    return time.process_time() - begun_s, size


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path)
    given = parser.parse_args()
    steps = Steps()
    print(*head("step | >CPU s | >peak MiB"), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        steps("")
        Run(profile_inputs(given.inputs, Path(scratch) / "run.duckdb", None, (), steps)).verdict(steps)
        steps("")
    print(f"| total | {steps.total_s:.2f} | |")
    plain = [each for each in given.inputs if each.is_file() and each.open("rb").read(1) == b"{"]
    if plain:
        cpu_s, size = floor(plain)
        print(f"| floor: decoding {size / 1e6:.0f} MB | {cpu_s:.2f} | |")


if __name__ == "__main__":
    main()
